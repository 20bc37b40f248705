"""Folding of the constant bank: the kernel against the page of rules, on pieces that repeat."""

from __future__ import annotations

from random import Random

import pytest
from helpers.constants_reference import FOLDABLE, Piece, fold_reference, is_cut_reference
from helpers.tables import merged, objects, table

from pylink._native import constants
from pylink._native.tables import Keeps, Numbers, Outs, PlacedTables
from pylink.facts import sectionkinds

ALIGNS = (1, 2, 4, 8, 16, 64, 256)
SIZES = (*FOLDABLE, 0, 1, 2, 4, 8, 10, 28, 40, 63, 65, 256)


def fold(pieces: list[Piece], others: Random) -> tuple[bytes, int]:
    """Contents of the bank and the null symbol's value, from inputs with other sections between."""
    arena = bytearray()
    rows, out_of = [], []
    for data, align in pieces:
        for kind, bank, out in ((sectionkinds.CONSTANT, 3, 1), *OTHERS[: others.randrange(4)]):
            row = {"offset": len(arena), "size": len(data), "align": align, "bank": bank}
            rows.append({**row, "kind": kind})
            out_of.append(out)
        arena += data
    whole = merged(objects(bytes(arena), sections=rows), out_of=table(Numbers, out_of))
    placed = PlacedTables(whole, outs=table(Outs, [{"size": 9}, {}]))
    constants.fold_pieces(placed)
    (blob,), (spans,) = placed.blobs, placed.spans
    (span,) = spans
    assert (span.out, span.offset, span.size) == (1, 0, len(blob))
    assert placed.outs.column("size") == [9, len(blob)]
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


def cut(banks: list[tuple[int, int, int]], lists: list[tuple[int, int, list[int]]]) -> bool:
    """For sections (kind, bank, size) and relocations (kind, target, offsets)."""
    outs = [{"kind": kind, "bank": bank, "size": size} for kind, bank, size in banks]
    keeps: list[dict[str, int]] = []
    for kind, target, offsets in lists:
        for number, offset in enumerate(offsets):
            keeps.append({"offset": offset, "next": len(keeps) - 1 if number else -1})
        outs.append({"kind": kind, "target": target, "head": len(keeps) - 1 if offsets else -1})
    whole = merged(keeps=table(Keeps, keeps))
    return bool(constants.find_cut_relocation(PlacedTables(whole, outs=table(Outs, outs))))


@pytest.mark.parametrize("seed", range(60))
def test_cut_relocations_agree_with_the_page(seed: int) -> None:
    """Entries of the one bank that folds count, whatever those of others hold."""
    rng = Random(seed)
    size = rng.choice((0, 8, 64))
    banks = [(sectionkinds.CONSTANT, 4, 0), (sectionkinds.GLOBAL_INIT, 3, 0)]
    banks.insert(rng.randrange(3), (sectionkinds.CONSTANT, 3, size))
    bank = banks.index((sectionkinds.CONSTANT, 3, size))
    entries = [rng.choice((0, size - 1, size - 8, size, 4)) for _ in range(rng.randrange(4))]
    entries = [max(entry, 0) for entry in entries]
    others = [(sectionkinds.RELOC, at, [1000, 0]) for at in range(3) if at != bank]
    mercury = (sectionkinds.MERC_RELA, -1, [1000])
    lists = [*others, mercury, (sectionkinds.RELOC, bank, entries)]
    rng.shuffle(lists)
    assert cut(banks, lists) == is_cut_reference(size, entries)
