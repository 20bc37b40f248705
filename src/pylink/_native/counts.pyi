"""Counts the work of a link in its finished tables.

Tables are those of `rows.pxd`. `ValueError` for columns of different lengths.
"""

from typing import TypeAlias

from pylink._native.tables import Fixups, PlacedTables, Values

# The type, 0xffffffff for all without a name, and how many are applied and kept.
RelocationCount: TypeAlias = tuple[int, int, int]
# Rows of FILE_COUNT and KIND_COUNT of `pylink.rowformats`.
FileCounts: TypeAlias = bytes
KindCounts: TypeAlias = bytes

def count_sections(placed: PlacedTables) -> tuple[FileCounts, FileCounts, KindCounts]:
    """A row per file, one with their sums, and one per kind of section.

    `InputFile` and `SectionFamily` of `pylink.profile.counts` name the columns. Section and
    nameless symbols count as symbols only; relocations for the kind of section that they change.
    `IndexError` for a file that runs past the tables.
    """

def count_relocations(placed: PlacedTables) -> list[RelocationCount]:
    """The relocations of each type that occurs."""

def count_by_section(placed: PlacedTables) -> Values:
    """By OutRow: the relocations applied to it."""

def fixups_of(fixups: Fixups, out: int) -> list[tuple[int, int]]:
    """(offset in the section, type) of each relocation applied to one OutRow."""
