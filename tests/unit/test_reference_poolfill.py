"""Contents of the kernels' pools: the kernel against plain concatenation and lookup."""

from __future__ import annotations

from random import Random
from struct import Struct

import pytest
from helpers.poolfill_reference import Piece, Pool, fill_reference
from helpers.tables import merged, objects, table

from pylink._native import poolfill
from pylink._native.results import PlacedTables
from pylink._native.tables import Entities, LiteralPools, Numbers, Outs, Values
from pylink.facts import sectionkinds
from pylink.facts.rownumbers import EntityKind

POOL_LOST, POOL_ALONE = 2, 4  # as in poolrows.pxd, which Python cannot import
RELA = Struct("<QQq")
BANK = 2


class Link:
    """Kernels, the functions that they reach, and copies of both; `fill` runs the kernel."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.arena = bytearray(8)
        self.sections: list[dict[str, int]] = []
        self.symbols: list[dict[str, int]] = []
        self.constants: list[tuple[int, int]] = []  # symbol, number of its piece
        self.rows: list[dict[str, int]] = []
        self.pieces: list[Piece] = []
        self.null_value = 0
        count = rng.randrange(1, 4)
        self.own = [self.pool(lost=False) if rng.random() < 0.6 else None for _ in range(count)]
        self.sources = [self.write(pool) if pool else -1 for pool in self.own]
        self.sizes = [len(pool.data) if pool else 0 for pool in self.own]
        for kernel, own in enumerate(self.own):
            for _ in range(rng.choice((0, 0, 1, 2))):
                # Copies that lost alone: their tables lead to code without any.
                stays = own or Pool(b"")
                self.add(kernel, [kernel], self.pool(lost=True), stays, self.sizes[kernel])
                if self.sources[kernel] < 0:
                    self.sources[kernel] = self.rows[-1]["section"]
        for function in range(count, count + rng.randrange(4)):
            users = sorted(rng.sample(range(count), rng.randrange(1, count + 1)), reverse=True)
            stays = self.pool(lost=False)
            self.add(function, users, stays, stays, max(self.sizes[k] for k in users))
            for _ in range(rng.choice((0, 0, 1, 2))):
                at = self.sizes[users[0]]
                self.null_value = self.add(function, users, self.pool(lost=True), stays, at)

    def pool(self, *, lost: bool) -> Pool:
        """Words, of which some are entries of a table: few mercury offsets, one code for each."""
        rng = self.rng
        words = rng.randrange(1, 9)
        data = bytearray(rng.randbytes(4 * words + rng.choice((0, 2))))
        where = [4 * n for n in sorted(rng.sample(range(words), rng.randrange(words + 1)))]
        labels = [(at, 16 * rng.randrange(6)) for at in where]
        codes = [rng.getrandbits(32) for _ in range(6)]
        for at, mercury in labels:
            data[at : at + 4] = codes[mercury // 16].to_bytes(4, "little")
        rng.shuffle(labels)
        return Pool(bytes(data), labels, lost)

    def write(self, pool: Pool) -> int:
        """The sections of one copy: code, pool, mercury pool and its relocations. The pool's."""
        text = len(self.sections)
        self.symbols.append({"section": text})
        entries = b"".join(RELA.pack(at, 0x10008, mercury) for at, mercury in pool.labels)
        for kind, target, data in (
            (sectionkinds.TEXT, len(self.symbols) - 1, b""),
            (sectionkinds.CONSTANT_FUNC, text, pool.data),
            (sectionkinds.MERC_CONSTANT_FUNC, text, b""),
            (sectionkinds.MERC_RELA, text + 2, entries),
        ):
            columns = {"kind": kind, "target": target, "bank": BANK * bool(data)}
            self.sections.append({**columns, "offset": len(self.arena), "size": len(data)})
            self.arena += data + bytes(-len(data) % 8)
        return text + 1

    def add(self, function: int, users: list[int], pool: Pool, stays: Pool, end: int) -> int:
        """A piece for all its kernels behind `end`; its offset."""
        offset = end + self.rng.choice((0, 4, 12))
        section = self.write(pool)
        if self.rng.random() < 0.7:
            self.symbols.append({"section": section, "value": 4})
            self.constants.append((len(self.symbols) - 1, len(self.pieces)))
        self.pieces.append(Piece(pool, stays, users, offset))
        end = offset + len(pool.data) + self.rng.choice((0, 6))
        for kernel in users:
            self.sizes[kernel] = end
            row = {"section": section, "kernel": kernel, "offset": offset, "end": end}
            flags = POOL_LOST * pool.lost | POOL_ALONE * (
                function == kernel and self.own[kernel] is None
            )
            row |= {"function": function, "align": 4, "flags": flags}
            self.rows.append(row)
        return offset

    def fill(self) -> PlacedTables:
        whole = merged(
            objects(bytes(self.arena), sections=self.sections, symbols=self.symbols),
            entities=table(
                Entities,
                [{}] * len(self.own)
                + [{"kind": EntityKind.CONSTANT, "winner": symbol} for symbol, _ in self.constants],
            ),
            pools=table(LiteralPools, self.rows),
        )
        outs = []
        for kernel, source in enumerate(self.sources):
            size = self.sections[source]["size"] if self.own[kernel] else 0
            row = {"bank": BANK, "entity": kernel, "source": source, "size": size}
            outs.append({**row, "kind": sectionkinds.CONSTANT_FUNC})
        count = len(self.own) + len(self.constants)
        placed = PlacedTables(
            whole,
            outs=table(Outs, outs),
            values=table(Values, [7] * count),
            homes=table(Numbers, [-1] * count),
        )
        poolfill.apply_pools(placed)
        return placed


@pytest.mark.parametrize("seed", range(200))
def test_pools_agree_with_reference(seed: int) -> None:
    link = Link(Random(seed))
    placed = link.fill()
    got: dict[int, bytes] = {}
    (blob,), (spans,) = placed.blobs, placed.spans
    for span in spans:
        got[span.out] = blob.data[span.offset : span.offset + span.size]
    expected = fill_reference(link.own, link.sizes, link.pieces)
    grown = {kernel for piece in link.pieces for kernel in piece.kernels}
    assert got == {kernel: expected[kernel] for kernel in grown}
    assert placed.outs.column("size") == link.sizes
    assert placed.null_value == link.null_value
    for entity, (_, number) in enumerate(link.constants, len(link.own)):
        piece = link.pieces[number]
        assert placed.values[entity] == piece.offset + 4
        assert placed.homes[entity] in piece.kernels
