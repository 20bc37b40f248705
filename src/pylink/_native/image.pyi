"""The output file: what it is made in, copying section contents, writing tables and headers.

Tables are packed rows of ``rows.pxd``; offsets and sizes are bytes. ``ValueError`` for an image of
another size than that of the output.
"""

from __future__ import annotations

from pylink._native.tables import PlacedTables

class Canvas:
    """The ``size`` bytes of the output while phases fill them, which no one else may hold yet."""

    size: int

    def __init__(self, size: int) -> None:
        """In memory, not zeros at first; ``MemoryError`` when there is too little."""

    @staticmethod
    def of(image: bytes) -> Canvas:
        """Over bytes that exist."""

    @staticmethod
    def on_file(descriptor: int, size: int) -> Canvas | None:
        """In an empty file that is open for reading and writing, and has this size afterwards.

        Disk space for all of it is taken before, so that none can be missing when it is written to.
        None, with the file of any size but without contents, where that cannot be had or would
        be slower than writing: on file systems that are not known to keep their word, and in
        those in memory, whose pages are small.
        """

    @property
    def image(self) -> bytes:
        """What was written in memory; ``ValueError`` for a file and after ``close``."""

    def close(self) -> None:
        """Let go of the bytes; a file keeps them."""

def copy_contents(image: Canvas, placed: PlacedTables, gives_up: bool = False) -> None:
    """Write the contents of every section.

    They come from the inputs or from the contents that the link made; the rest of the image is
    zeros. Sections that ``stand_ins`` names another for are left out. With ``gives_up`` the memory
    of the arena is let go on the way, and all that is left of it are some bytes and zeros: nobody
    may look at it afterwards.
    """

def write_relocations(image: Canvas, placed: PlacedTables) -> None:
    """Write the entries of every relocation section that stays, newest first."""

def write_symbols(image: Canvas, placed: PlacedTables, preserved: bool) -> tuple[int, int]:
    """Write .symtab and .nv.merc.symtab; returns their sh_info values.

    With ``preserved`` (--preserve-relocs, no debug data) shared variables have internal visibility.
    """

def write_headers(
    image: Canvas,
    placed: PlacedTables,
    symtab_info: int,
    mercury_info: int,
    abi: bytes,
    e_version: int,
    e_flags: int,
    note: int,
    late_compat: int,
) -> None:
    """Write string tables, capsule heads, section headers, program headers and the ELF header.

    ``symtab_info`` and ``mercury_info`` are what ``write_symbols`` returned, ``abi`` the bytes of
    OS ABI and ABI version; the index of the note that e_flags have is added here. ``note`` is by
    how many bytes nvlink's own note is longer than ours, ``late_compat`` how many of .nv.compat the
    mercury file has not yet: .nv.merc.nv.shared.reserved.0 depends on both. ValueError when ``abi``
    has not two bytes.
    """
