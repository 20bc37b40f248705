"""Writes the output file: contents of its sections, its tables and headers.

Offsets and sizes are bytes. Each function raises `ValueError` for a canvas of the wrong size,
`OSError` for a file that cannot be written, `MemoryError` if memory is exhausted.
"""

from __future__ import annotations

from pylink._native.results import PlacedTables
from pylink._native.tables import Patches

class Canvas:
    """The memory or file in which the `size` bytes of the output are written."""

    size: int

    def __init__(self, size: int) -> None:
        """Allocate memory, which is not zeroed."""

    @staticmethod
    def on_file(descriptor: int, size: int) -> Canvas | None:
        """Return a canvas on an empty file that is open for writing, and set the file's size.

        Disk space is reserved first, if the file system can. None if the file cannot have this
        size.
        """

    @property
    def image(self) -> bytes:
        """The bytes in memory; `ValueError` for a file and after `close`."""

    def close(self) -> None:
        """Release the memory; a file keeps the bytes."""

def write_contents(image: Canvas, placed: PlacedTables, patches: Patches) -> int:
    """Write the contents of every section, with the fields of `patches` filled.

    Contents come from the inputs, from the link itself, and from emitted relocations, newest first;
    bytes outside of sections are zero. Input sections that another one replaces (`stand_ins`) are
    omitted. Capsules get the header index of their function's .text, and in their records the
    constant offsets that its code reads. Returns the lowest OutRow of a capsule that breaks its
    format, or -1. The records are described in `image/capsules.pxd` and in
    docs/format-notes/literal-pools.md.
    """

def write_output(image: Canvas, placed: PlacedTables, patches: Patches, *, preserved: bool) -> int:
    """Do the work of `write_contents` and `write_tables`, from the first byte to the last.

    Each byte is written once. What `write_header` writes later is zero until then. Returns the
    same as `write_contents`.
    """

def write_tables(image: Canvas, placed: PlacedTables, *, preserved: bool) -> None:
    """Write symbol tables, string tables and section headers.

    With `preserved` (--preserve-relocs, no debug data) shared variables of an executable have
    internal visibility.
    """

def write_header(
    image: Canvas,
    placed: PlacedTables,
    identity: tuple[bytes, int, int],
    note: int,
    late_compat: int,
) -> None:
    """Write the ELF header, the program headers, and .nv.merc.nv.shared.reserved.0.

    `identity` is OS ABI and ABI version as two bytes, e_version, and e_flags, to which this adds
    the index of .note.nv.cuinfo in bits 24 to 31. `note` is the number of bytes by which nvlink's
    own .note.nv.tkinfo is longer, `late_compat` the number of bytes of .nv.compat that the mercury
    file does not have yet: .nv.merc.nv.shared.reserved.0 repeats section headers of that file, so
    it depends on both. That section is written if the output has it, and not with TRAIT_LEAN_NAMES.
    ValueError if the ABI does not have two bytes.
    """
