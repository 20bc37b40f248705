"""What a link did, counted over its finished tables.

Tables are those of ``rows.pxd``. ``ValueError`` for columns of different lengths.
"""

def count_sections(
    files: bytes,
    sections: bytes,
    symbols: bytes,
    out_of: bytes,
    stand_ins: bytes,
    outs: bytes,
    section_index: bytes,
    places: bytes,
    fixes: bytes,
) -> tuple[bytes, bytes, bytes]:
    """A row of u64 per file, one with their sums, and one per kind of section.

    ``InputFile`` and ``SectionFamily`` of ``pylink.profile.counted`` name the columns. Section and
    nameless symbols count as symbols only; relocations for the kind of section that they change.
    ``stand_ins`` is that of ``Merged`` and may be empty. ``IndexError`` for a file that runs past
    the tables.
    """

def count_relocations(
    fixes: bytes, keeps: bytes, outs: bytes, section_index: bytes
) -> list[tuple[int, int, int]]:
    """(type, applied, kept) for each type that occurs; 0xffffffff is all types without a name."""

def count_by_section(fixes: bytes, outs: bytes) -> bytes:
    """A u64 per OutRow: the relocations applied to it."""

def fixes_of(fixes: bytes, out: int) -> list[tuple[int, int]]:
    """(offset in the section, type) of each relocation applied to one OutRow."""
