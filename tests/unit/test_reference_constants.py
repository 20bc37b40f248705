"""Folding of the constant bank: the kernel against the page of rules, on pieces that repeat."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from helpers.constants_reference import FOLDABLE, Piece, fold_reference, places
from helpers.tables import merged, objects, table

from pylink._native import constants
from pylink._native.results import PlacedTables
from pylink._native.tables import Emitted, Fixups, Numbers, Outs, Values
from pylink.facts import sectionkinds

ALIGNS = (1, 2, 4, 8, 16, 64, 256)
SIZES = (*FOLDABLE, 0, 1, 2, 4, 8, 10, 28, 40, 63, 65, 256)


def fold(
    pieces: list[Piece],
    others: Random,
    relocations: Sequence[int] = (),
    fixes: Sequence[int] = (),
    elsewhere: Sequence[int] = (),
) -> tuple[bytes, int]:
    """Contents of the bank and the null symbol's value, from inputs with other sections between.

    `relocations` and `fixes` are of the bank, `elsewhere` of another section.
    """
    arena = bytearray()
    rows, out_of, base = [], [], []
    for (data, align), place in zip(pieces, places(pieces), strict=True):
        for kind, bank, out in ((sectionkinds.CONSTANT, 3, 1), *OTHERS[: others.randrange(4)]):
            row = {"offset": len(arena), "size": len(data), "align": align, "bank": bank}
            rows.append({**row, "kind": kind})
            out_of.append(out)
            base.append(place)
        arena += data
    lists = [(0, elsewhere), (1, relocations[::2]), (1, relocations[1::2])]
    keeps: list[dict[str, int]] = []
    outs: list[dict[str, int]] = [{"size": 9}, {}]
    for target, offsets in lists:
        for number, offset in enumerate(offsets):
            keeps.append({"offset": offset, "next": len(keeps) - 1 if number else -1})
        head = len(keeps) - 1 if offsets else -1
        outs.append({"kind": sectionkinds.RELOC, "target": target, "head": head})
    written = [{"offset": offset, "out": 1} for offset in fixes]
    written += [{"offset": offset, "out": 0} for offset in elsewhere]
    whole = merged(
        objects(bytes(arena), sections=rows),
        out_of=table(Numbers, out_of),
        base=table(Values, base),
        emitted=table(Emitted, keeps),
        fixups=table(Fixups, written),
    )
    placed = PlacedTables(whole, outs=table(Outs, outs))
    constants.fold_pieces(placed)
    (blob,), (spans,) = placed.blobs, placed.spans
    (span,) = spans
    assert (span.out, span.offset, span.size) == (1, 0, len(blob))
    assert placed.outs.column("size")[:2] == [9, len(blob)]
    return blob.data, placed.null_value


# Neither another bank, nor other data, nor a piece that no section of the output takes.
OTHERS = (
    (sectionkinds.CONSTANT, 4, 0),
    (sectionkinds.GLOBAL_INIT, 3, 0),
    (sectionkinds.CONSTANT, 3, -1),
)


def draw(rng: Random) -> list[Piece]:
    """Pieces of few sizes, alignments and values, so that many are equal or nearly so."""
    sizes, aligns = rng.sample(SIZES, 3), rng.sample(ALIGNS, 2)
    values = [
        bytes(256),
        *(bytes([n]) * 255 + bytes([n + last]) for n in (1, 7) for last in (0, 1)),
    ]
    return [
        # The end of a value: two of one start differ in their last byte alone.
        Piece(rng.choice(values)[256 - size :], rng.choice([*aligns, max(size, 1) & -max(size, 1)]))
        for size in (rng.choice(sizes) for _ in range(rng.randrange(1, 40)))
    ]


@pytest.mark.parametrize("seed", range(200))
def test_fold_agrees_with_the_page(seed: int) -> None:
    rng = Random(seed)
    pieces = draw(rng)
    assert fold(pieces, rng) == fold_reference(pieces)


@pytest.mark.parametrize("size", SIZES)
def test_every_size_with_every_alignment(size: int) -> None:
    for align in ALIGNS:
        for data in (bytes(size), b"\1" * size, bytes(size)[1:] + b"\1" * (size > 0)):
            pieces = [Piece(b"?" * 40, 4), *3 * [Piece(data, align)], Piece(data, 2 * align)]
            assert fold(pieces, Random(0)) == fold_reference(pieces)


def test_many_pieces_fold_to_few() -> None:
    """More distinct pieces than the kernel's table begins with, each many times."""
    rng = Random(1)
    distinct = [Piece(rng.randbytes(rng.choice(FOLDABLE)), 4) for _ in range(500)]
    pieces = [rng.choice(distinct) for _ in range(3000)]
    blob, _ = fold_reference(pieces)
    assert len(blob) < sum(len(piece.data) for piece in distinct) + 4
    assert fold(pieces, rng) == fold_reference(pieces)


@pytest.mark.parametrize("seed", range(200))
def test_pieces_with_relocations_keep_their_bytes(seed: int) -> None:
    """Relocations and fields that the link fills in, of the bank and of another section."""
    rng = Random(seed)
    pieces = draw(rng)
    chosen = rng.sample(range(len(pieces)), min(2, len(pieces)))
    at = [
        places(pieces)[number] + rng.randrange(len(pieces[number].data))
        for number in chosen
        if pieces[number].data
    ]
    split = rng.randrange(len(at) + 1)
    everywhere = range(0, 4096, 4)
    assert fold(pieces, rng, at[:split], at[split:], everywhere) == fold_reference(pieces, at)


@pytest.mark.parametrize("kind", ["relocations", "fixes"])
@pytest.mark.parametrize("table", range(3))
def test_each_place_of_a_table(table: int, kind: str) -> None:
    """The first of equal tables may stay; a dropped one, or one that moves, would lose entries."""
    pieces = [Piece(bytes(16), 8), Piece(bytes(16), 8), Piece(b"?" * 24, 8)]
    for place in range(16 * table, 16 * table + len(pieces[table].data), 8):
        written = {kind: [place]}
        expected = fold_reference(pieces, [place])
        assert fold(pieces, Random(0), **written) == expected
        whole = table == 1 or place >= 40
        assert len(expected[0]) == (56 if whole else 40)
