"""Writes the output file: contents of its sections, its tables and headers.

Tables are packed rows of `rows.pxd`; offsets and sizes are bytes. `ValueError` for an image of
the wrong size, `OSError` for a file that cannot be written, `MemoryError` if memory is
exhausted.
"""

from __future__ import annotations

from pylink._native.tables import Patches, PlacedTables

class Canvas:
    """The memory or file in which the `size` bytes of the output are written."""

    size: int

    def __init__(self, size: int) -> None:
        """Allocate memory, which is not zeroed."""

    @staticmethod
    def on_file(descriptor: int, size: int) -> Canvas | None:
        """Use an empty file that is open for writing, and set its size.

        Disk space is reserved first, if the file system can. None if the file cannot have this
        size; it has no contents then.
        """

    @property
    def image(self) -> bytes:
        """The bytes in memory; `ValueError` for a file and after `close`."""

    def close(self) -> None:
        """Release the memory; a file keeps the bytes."""

def write_contents(image: Canvas, placed: PlacedTables, patches: Patches) -> int:
    """Write the contents of every section, with the fields of `patches` filled.

    Contents come from the inputs, from the link itself, and from emitted relocations, newest first;
    bytes outside of sections are zero. Sections with a stand-in are omitted. Capsules get the
    number of their function's section, and in their records the constant offsets that its code
    reads. Returns the OutRow of the first capsule whose records are not contiguous, or -1. The
    records are described in the source and in docs/format-notes/literal-pools.md.
    """

def write_output(image: Canvas, placed: PlacedTables, patches: Patches, *, preserved: bool) -> int:
    """Do the work of `write_contents` and `write_tables`, from the first byte to the last.

    Each byte is written once. The bytes of `write_header` are zero until then.
    """

def write_tables(image: Canvas, placed: PlacedTables, *, preserved: bool) -> None:
    """Write symbol tables, string tables and section headers.

    With `preserved` (--preserve-relocs, no debug data) shared variables have internal visibility.
    """

def write_header(
    image: Canvas,
    placed: PlacedTables,
    identity: tuple[bytes, int, int],
    note: int,
    late_compat: int,
) -> None:
    """Write the ELF header, the program headers, and .nv.merc.nv.shared.reserved.0.

    `identity` is OS ABI and ABI version as two bytes, e_version, and e_flags, to which the index of
    a note is added here. `note` is the number of bytes by which nvlink's own note is longer,
    `late_compat` the number of bytes of .nv.compat that the mercury file does not have yet: the
    section, which repeats section headers, depends on both. ValueError if the ABI does not have two
    bytes.
    """
