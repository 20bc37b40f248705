"""Converts between the tables of the link and `pylink._native.debug`, from sm_100 on."""

from pylink._native.tables import MergedTables

def find_debug(merged: MergedTables, name: bytes) -> int:
    """The OutRow of the plain debug section of this name, or -1."""

def pieces_of(merged: MergedTables, out: int) -> tuple[bytes, bytes, bytes, bytes]:
    """The inputs for rebuilding section `out`: (pieces, relocations, numbers, inputs).

    The first two are tables of `pylink._native.debug`; `numbers` are the RebuildRow numbers
    (i32) of the relocation rows, `inputs` the input sections (i32) of the pieces.
    """

def headers_of(merged: MergedTables, out: int) -> tuple[bytes, bytes]:
    """Mercury twins of the pieces of line section `out`, and their resolved header fields.

    Both are empty if no field is resolved there, or a piece has no twin.
    """

def live_names(merged: MergedTables) -> bytes:
    """Names of the output's functions, each terminated by NUL."""

def adopt(merged: MergedTables, results: list[tuple[int, bytes, bytes, int]]) -> None:
    """Enter rebuilt sections into `outs` and `emitted`.

    `results` has (OutRow, RebuildRow numbers, moved rows, size in bytes) for each.
    """

def retarget(merged: MergedTables, inputs: bytes, units: bytes, out: int) -> None:
    """Update references to line units to their new offsets, in `fixups` and `emitted`.

    `inputs` and `units` describe the rebuilt section `out`.
    """
