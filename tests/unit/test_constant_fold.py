"""Folding of constant pieces: what a link that selects kernels writes into .nv.constant3."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from helpers.constants_reference import Piece, places
from helpers.tables import merged, objects, table

import pylink
from pylink._native import constants
from pylink._native.results import PlacedTables
from pylink._native.tables import Numbers, Outs, Values
from pylink.facts import sectionkinds


def fold(*pieces: tuple[bytes, int]) -> tuple[bytes, int]:
    """Contents of the bank and the null symbol's value, for pieces with their alignments."""
    arena = b"".join(data for data, _ in pieces)
    rows, at = [], 0
    for data, align in pieces:
        row = {"offset": at, "size": len(data), "align": align, "bank": 3}
        rows.append({**row, "flags": 2, "type": 1, "kind": sectionkinds.CONSTANT})
        at += len(data)
    whole = merged(
        objects(arena, sections=rows),
        out_of=bytes(4 * len(pieces)),
        base=table(Values, places([Piece(*piece) for piece in pieces])),
    )
    placed = PlacedTables(whole, outs=table(Outs, [{}]))
    constants.fold_pieces(placed)
    (blob,), (spans,) = placed.blobs, placed.spans
    assert spans.column("size") == [len(blob)] == placed.outs.column("size")
    return blob.data, placed.null_value


def vector(value: int, size: int) -> bytes:
    return bytes([value]) * size


@pytest.mark.parametrize("size", [12, 16, 20, 24, 32, 48, 64])
def test_equal_small_piece_is_written_once(size: int) -> None:
    piece = vector(7, size)
    assert fold((piece, 4), (piece, 4)) == (piece, 0)


def test_different_pieces_stay_and_the_last_is_the_null_value() -> None:
    first, second = vector(1, 20), vector(2, 20)
    assert fold((first, 4), (second, 4)) == (first + second, 0x14)


def test_alignment_tells_pieces_apart() -> None:
    piece = vector(3, 20)
    assert fold((piece, 4), (piece, 16)) == (piece + bytes(12) + piece, 32)


@pytest.mark.parametrize("size", [4, 8])
def test_a_word_folds_only_if_it_is_aligned_to_its_size_and_not_zero(size: int) -> None:
    word = vector(5, size)
    assert fold((word, size), (word, size)) == (word, 0)
    assert fold((word, 2), (word, 2)) == (word + word, 0)
    zero = bytes(size)
    assert fold((zero, size), (zero, size)) == (zero + zero, size)


def test_other_sizes_never_fold() -> None:
    piece = vector(9, 40)
    assert fold((piece, 4), (piece, 4)) == (piece + piece, 0)


def test_a_dropped_piece_leaves_the_null_value_alone() -> None:
    small, large = vector(1, 16), vector(2, 40)
    blob, null_value = fold((large, 4), (small, 4), (small, 4), (large, 4))
    assert blob == large + small + large
    assert null_value == len(large)


def test_number_of_sections_must_agree() -> None:
    with pytest.raises(ValueError, match="one row for each"):
        constants.fold_pieces(PlacedTables(merged(out_of=bytes(4))))
    with pytest.raises(ValueError, match="one row for each"):
        constants.fold_pieces(PlacedTables(merged(base=bytes(8))))


def test_the_output_section_must_exist() -> None:
    piece = {"kind": sectionkinds.CONSTANT, "bank": 3, "size": 4}
    whole = merged(
        objects(bytes(4), sections=[piece]), out_of=table(Numbers, [1]), base=table(Values, [0])
    )
    with pytest.raises(ValueError, match="does not exist"):
        constants.fold_pieces(PlacedTables(whole, outs=table(Outs, [{}])))


@pytest.mark.parametrize("left_out", [False, True])
def test_a_link_that_leaves_debug_data_out_folds(*, left_out: bool) -> None:
    inputs = sorted((Path(__file__).parents[1] / "golden" / "75" / "calls").glob("m?.cubin"))
    image = pylink.link(
        inputs,
        arch="sm_75",
        kernels_used="_Z13use_recursionPi",
        debug=left_out,
        suppress_debug_info=left_out,
    ).image
    symbols = ELFFile(io.BytesIO(image)).get_section_by_name(".symtab")
    assert isinstance(symbols, SymbolTableSection)
    assert symbols.get_symbol(0)["st_value"] == 12  # as nvlink's has
