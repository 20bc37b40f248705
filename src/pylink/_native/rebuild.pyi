"""Converts between the tables of the link and `pylink._native.debug`, from sm_100 on."""

from typing import TypeAlias

from pylink._native.debug import HeaderPatches, LineUnits, Moved, PieceRelocations, Pieces
from pylink._native.tables import MergedTables

# The RebuildRow number (i32) of each relocation row.
RebuildNumbers: TypeAlias = bytes
# The input section (i32) of each piece.
PieceSections: TypeAlias = bytes

def find_debug(merged: MergedTables, name: bytes) -> int:
    """The OutRow of the plain debug section of this name, or -1."""

def pieces_of(
    merged: MergedTables, out: int
) -> tuple[Pieces, PieceRelocations, RebuildNumbers, PieceSections]:
    """The inputs for rebuilding section `out`."""

def headers_of(merged: MergedTables, out: int) -> tuple[Pieces, HeaderPatches]:
    """Mercury twins of the pieces of line section `out`, and their resolved header fields.

    Both are empty if no field is resolved there, or a piece has no twin.
    """

def live_names(merged: MergedTables) -> bytes:
    """Names of the output's functions, each terminated by NUL."""

def adopt(merged: MergedTables, results: list[tuple[int, RebuildNumbers, Moved, int]]) -> None:
    """Enter rebuilt sections into `outs` and `emitted`.

    `results` has (OutRow, numbers, moved rows, size in bytes) for each.
    """

def retarget(merged: MergedTables, inputs: PieceSections, units: LineUnits, out: int) -> None:
    """Update references to line units to their new offsets, in `fixups` and `emitted`.

    `inputs` and `units` describe the rebuilt section `out`.
    """
