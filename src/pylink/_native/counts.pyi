"""Counts the work of a link in its finished tables.

Tables are those of `rows.pxd`. `ValueError` for columns of different lengths.
"""

from typing import TypeAlias

from pylink._native.results import PlacedTables
from pylink._native.tables import Fixups, Values

# A relocation type (0xffffffff stands for all types without a name), how many relocations of this
# type the link applied, and how many it kept in the output.
RelocationCount: TypeAlias = tuple[int, int, int]
# Rows of FILE_COUNT and KIND_COUNT of `pylink.rowformats`.
FileCounts: TypeAlias = bytes
KindCounts: TypeAlias = bytes

def count_sections(placed: PlacedTables) -> tuple[FileCounts, FileCounts, KindCounts]:
    """Count sections, symbols, relocations and bytes: (rows of files, their sum, rows of kinds).

    `InputFile` and `SectionFamily` of `pylink.profile.counts` name the columns. Section symbols and
    symbols without a name are only counted as symbols. A relocation counts for the kind of section
    that it changes. `IndexError` for a file that runs past the tables.
    """

def count_relocations(placed: PlacedTables) -> list[RelocationCount]:
    """Count the applied and the kept relocations of each type that occurs."""

def count_fixups(placed: PlacedTables) -> Values:
    """Count the relocations that are applied to each section of the output.

    The result is by OutRow, and has a uint64 for each.
    """

def list_fixups(fixups: Fixups, out: int) -> list[tuple[int, int]]:
    """List (offset there, type) of each relocation that is applied to output section `out`."""
