"""Counts the work of a link in its finished tables.

Tables are those of `rows.pxd`. `ValueError` for columns of different lengths.
"""

from pylink._native.tables import Fixups, PlacedTables, Values

def count_sections(placed: PlacedTables) -> tuple[bytes, bytes, bytes]:
    """A row of u64 per file, one with their sums, and one per kind of section.

    `InputFile` and `SectionFamily` of `pylink.profile.counts` name the columns. Section and
    nameless symbols count as symbols only; relocations for the kind of section that they change.
    `IndexError` for a file that runs past the tables.
    """

def count_relocations(placed: PlacedTables) -> list[tuple[int, int, int]]:
    """(type, applied, kept) for each type that occurs; 0xffffffff is all types without a name."""

def count_by_section(placed: PlacedTables) -> Values:
    """By OutRow: the relocations applied to it."""

def fixups_of(fixups: Fixups, out: int) -> list[tuple[int, int]]:
    """(offset in the section, type) of each relocation applied to one OutRow."""
