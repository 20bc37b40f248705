"""Converts between the tables of the link and `pylink._native.debug`, from sm_100 on."""

from typing import TypeAlias

from pylink._native.debug import HeaderPatches, LineUnits, Moved, PieceRelocations, Pieces
from pylink._native.results import MergedTables
from pylink._native.tables import Numbers

# The number of the RebuildRow from which each row of PieceRelocations was made.
RebuildNumbers: TypeAlias = Numbers
# The SectionRow number of each row of Pieces.
PieceSections: TypeAlias = Numbers

# A rebuilt debug section: its OutRow, the RebuildRow numbers of its relocations, the relocations
# that stay, and its size in bytes.
RebuiltSection: TypeAlias = tuple[int, RebuildNumbers, Moved, int]

def find_debug_section(merged: MergedTables, name: bytes) -> int:
    """Return the OutRow of the plain debug section of this name, or -1."""

def list_debug_pieces(
    merged: MergedTables, out: int
) -> tuple[Pieces, PieceRelocations, RebuildNumbers, PieceSections]:
    """List the pieces of the section with OutRow `out`, and their relocations.

    A piece is what one input contributes to the section.
    """

def list_header_patches(merged: MergedTables, out: int) -> tuple[Pieces, HeaderPatches]:
    """List the mercury twins of the pieces of a line section, and their resolved header fields.

    `out` is the OutRow of the plain section. Both tables are empty if the link resolves no field
    of the twins, or if a piece has no twin.
    """

def list_live_names(merged: MergedTables) -> bytes:
    """Return the names of the output's functions, each with a NUL at its end."""

def adopt_sections(merged: MergedTables, results: list[RebuiltSection]) -> None:
    """Enter sizes and relocations of rebuilt sections into `outs` and `emitted`."""

def retarget_units(merged: MergedTables, inputs: PieceSections, units: LineUnits, out: int) -> None:
    """Update references to line units to their new offsets, in `fixups` and `emitted`.

    `out` is the OutRow of the rebuilt section, `inputs` the input sections of its pieces, `units`
    its line units.
    """
