"""The output file: where it is made, contents of its sections, its tables and headers.

Tables are packed rows of ``rows.pxd``; offsets and sizes are bytes. ``ValueError`` for an image of
another size than that of the output, ``OSError`` for a file that cannot be written, ``MemoryError``
when there is too little.
"""

from __future__ import annotations

from pylink._native.tables import Patches, PlacedTables

class Canvas:
    """Where the ``size`` bytes of the output are made, which no one else may hold yet."""

    size: int

    def __init__(self, size: int) -> None:
        """In memory, not zeros at first."""

    @staticmethod
    def on_file(descriptor: int, size: int) -> Canvas | None:
        """In an empty file that is open for writing, and has this size afterwards.

        Disk space for all of it is taken before, where the file system can do that. None, with the
        file of any size but without contents, where it cannot have that size.
        """

    @property
    def image(self) -> bytes:
        """What was written in memory; ``ValueError`` for a file and after ``close``."""

    def close(self) -> None:
        """Let go of the bytes; a file keeps them."""

def write_contents(image: Canvas, placed: PlacedTables, patches: Patches) -> int:
    """Write the contents of every section, with the fields of ``patches`` filled.

    They come from the inputs, from the contents that the link made, and from the relocations that
    stay, newest first; what is not in a section is zeros. Sections that ``stand_ins`` names another
    for are omitted. Capsules get the number of their function's section, and in their records the
    constant offsets that its code reads. Returns the OutRow of the first capsule whose records do
    not follow each other, or -1. The records are described in the source and in
    docs/format-notes/literal-pools.md.
    """

def write_output(image: Canvas, placed: PlacedTables, patches: Patches, preserved: bool) -> int:
    """Write what ``write_contents`` and ``write_tables`` do, from the first byte to the last.

    Each byte is written once. What ``write_header`` writes is zeros until then.
    """

def write_tables(image: Canvas, placed: PlacedTables, preserved: bool) -> None:
    """Write symbol tables, string tables and section headers.

    With ``preserved`` (--preserve-relocs, no debug data) shared variables have internal visibility.
    """

def write_header(
    image: Canvas,
    placed: PlacedTables,
    identity: tuple[bytes, int, int],
    note: int,
    late_compat: int,
) -> None:
    """Write the ELF header, the program headers, and what repeats section headers.

    ``identity`` is OS ABI and ABI version as two bytes, e_version, and e_flags, to which the index
    of a note is added here. ``note`` is by how many bytes nvlink's own note is longer than ours,
    ``late_compat`` how many of .nv.compat the mercury file has not yet:
    .nv.merc.nv.shared.reserved.0 depends on both. ValueError when the ABI has not two bytes.
    """
