"""One pool for all kernels: the kernel against the page of rules, over small programs."""

from __future__ import annotations

from random import Random

import pytest
from helpers.poolmerge_reference import Merged, Pool, Symbol
from helpers.tables import merged, objects, table

from pylink._native import poolmerge
from pylink._native.results import PlacedTables
from pylink._native.tables import Entities, LiteralPools, Numbers, Outs, Values
from pylink.facts import sectionkinds
from pylink.facts.rownumbers import EntityFlag, EntityKind

POOL_LOST = 2  # as in poolrows.pxd, which Python cannot import
BANK = 2
SIZES = (4, 4, 8, 8, 12, 16, 64, 5, 28, 0)


def draw_pool(rng: Random, *, lost: bool = False) -> Pool:
    """Few different literals, so that most repeat; some bytes have no symbol."""
    align = rng.choice((4, 8))
    pool = Pool(b"", align, lost=lost)
    for _ in range(rng.randrange(1, 6)):
        size = rng.choice((4, 8, 16)) if lost else rng.choice(SIZES)
        if rng.random() < 0.3:
            pool.data += b"gap!"
        pool.data += bytes(-len(pool.data) % 4)
        filler = rng.choice((b"\0", b"\0", b"a", b"b"))
        pool.symbols.append(Symbol(len(pool.data), size))
        pool.data += size * filler
        if lost:
            break
    if lost:
        pool.symbols = []
    pool.data += bytes(-len(pool.data) % 4)
    return pool


class Link:
    """Kernels with pools of their own or none, and functions that some of them reach."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        count = rng.randrange(1, 5)
        self.own = [draw_pool(rng) if rng.random() < 0.7 else None for _ in range(count)]
        self.kernels = [[pool] if pool else [] for pool in self.own]
        self.sizes = [len(pool.data) if pool else 0 for pool in self.own]
        self.null_value = 0
        self.added: list[tuple[int, Pool, list[int]]] = []  # function, pool, kernels
        for kernel in range(count):
            if self.own[kernel] and rng.random() < 0.4:
                self.place(kernel, draw_pool(rng, lost=True), [kernel])
        for function in range(count, count + rng.randrange(5)):
            users = sorted(rng.sample(range(count), rng.randrange(1, count + 1)), reverse=True)
            self.place(function, draw_pool(rng), users)
            while rng.random() < 0.4:
                self.place(function, draw_pool(rng, lost=True), users)
                self.null_value = self.added[-1][1].offset
        self.functions = count + 5

    def place(self, function: int, pool: Pool, kernels: list[int]) -> None:
        pool.offset = -(-max(self.sizes[kernel] for kernel in kernels) // 8) * 8
        for kernel in kernels:
            self.kernels[kernel].append(pool)
            self.sizes[kernel] = pool.offset + len(pool.data)
        self.added.append((function, pool, kernels))

    def placed(self) -> tuple[PlacedTables, list[tuple[Pool, Symbol, list[int]]]]:
        """The link as tables, and its symbols, whose entities follow those of the functions."""
        arena = bytearray()
        sections: list[dict[str, int]] = []
        symbols: list[dict[str, int]] = [{"section": -1}]
        constants: list[tuple[Pool, Symbol, list[int]]] = []

        def write(pool: Pool, kernels: list[int]) -> int:
            row = {"kind": sectionkinds.CONSTANT_FUNC, "bank": BANK, "align": pool.align}
            sections.append({**row, "offset": len(arena), "size": len(pool.data)})
            arena.extend(pool.data)
            for symbol in pool.symbols:
                at = {"section": len(sections) - 1, "value": symbol.value, "size": symbol.size}
                symbols.append(at)
                constants.append((pool, symbol, kernels))
            return len(sections) - 1

        sources = [write(pool, [at]) if pool else -1 for at, pool in enumerate(self.own)]
        rows = []
        for function, pool, kernels in self.added:
            row = {"section": write(pool, kernels), "offset": pool.offset, "function": function}
            row |= {"flags": POOL_LOST * pool.lost, "end": pool.offset + len(pool.data)}
            rows += [{**row, "kernel": kernel} for kernel in kernels]
        entities = [{"flags": EntityFlag.KERNEL}] * len(self.own)
        entities += [{"flags": EntityFlag.DEFINED}] * (self.functions - len(self.own))
        numbers = range(1, len(constants) + 1)
        entities += [{"kind": EntityKind.CONSTANT, "winner": number} for number in numbers]
        outs = [
            {"kind": sectionkinds.CONSTANT_FUNC, "bank": BANK, "entity": kernel, "source": source}
            for kernel, source in enumerate(sources)
        ]
        result = PlacedTables(
            merged(
                objects(bytes(arena), sections=sections, symbols=symbols),
                entities=table(Entities, entities),
                pools=table(LiteralPools, rows),
            ),
            outs=table(Outs, outs),
            values=table(Values, [7] * len(entities)),
            homes=table(Numbers, [-1] * len(entities)),
        )
        return result, constants


@pytest.mark.parametrize("limit", [65536, 200])
@pytest.mark.parametrize("seed", range(200))
def test_one_pool_agrees_with_the_page(seed: int, limit: int) -> None:
    link = Link(Random(seed))
    placed, constants = link.placed()
    expected = Merged(link.kernels, link.null_value, limit)
    before = placed.outs, placed.values
    assert poolmerge.merge_pools(placed, limit) == expected.fits
    if not expected.fits:
        assert (placed.outs, placed.values) == before
        return
    assert [blob.data for blob in placed.blobs] == [expected.data]
    assert placed.outs.column("size") == [len(expected.data)] * len(link.own)
    assert placed.outs.column("align") == [expected.align] * len(link.own)
    assert placed.null_value == expected.null_value
    for entity, (pool, symbol, kernels) in enumerate(constants, link.functions):
        assert placed.values[entity] == expected.value(pool, symbol)
        if pool not in link.own:
            assert placed.homes[entity] in kernels
