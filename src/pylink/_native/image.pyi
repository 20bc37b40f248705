"""The output file: copying section contents, and writing tables and headers.

All but the first function write into the ``bytes`` that ``copy_contents`` returned, which no one
else may hold yet. Tables are packed rows of ``rows.pxd``; offsets and sizes are bytes.
"""

from pylink._native.tables import PlacedTables

def copy_contents(placed: PlacedTables) -> bytes:
    """A new image with the contents of every section.

    They come from the inputs or from the contents that the link made; the rest of the image is
    zeros. Sections that ``stand_ins`` names another for are left out.
    """

def write_relocations(image: bytes, placed: PlacedTables) -> None:
    """Write the entries of every relocation section that stays, newest first."""

def write_symbols(image: bytes, placed: PlacedTables, preserved: bool) -> tuple[int, int]:
    """Write .symtab and .nv.merc.symtab; returns their sh_info values.

    With ``preserved`` (--preserve-relocs, no debug data) shared variables have internal visibility.
    """

def write_headers(
    image: bytes, placed: PlacedTables, symtab_info: int, mercury_info: int, e_flags: int, note: int
) -> None:
    """Write string tables, capsule heads, section headers, program headers and the ELF header.

    ``symtab_info`` and ``mercury_info`` are what ``write_symbols`` returned. ``note`` is by how
    many bytes nvlink's own note is longer than ours: .nv.merc.nv.shared.reserved.0 depends on it.
    """
