"""Sections for Python code, of an ELF64 file or of an input of a link; and such an input as bytes.

Plain links do not use this.
"""

from typing_extensions import Buffer

from pylink._native.results import ObjectTables

class Section:
    """A section header, its own offset (`header`), and the bytes that the file has (`stored`)."""

    name: bytes
    type: int
    link: int
    info: int
    flags: int
    offset: int
    size: int
    stored: int
    """Bytes in the file: `size`, 0 for NOBITS and other kinds without, -1 if they run past it."""
    header: int
    """Offset of the header in the file."""
    align: int
    entsize: int

class ElfSections:
    """The sections of a file, with two fields of its header: e_type and e_machine."""

    type: int
    machine: int
    sections: list[Section]

def read_sections(data: Buffer) -> ElfSections:
    """Return the sections of an ELF64 file, of which only headers and names are read.

    `ValueError` with the reason for other files and damaged headers.
    """

def find_section(data: Buffer, name: bytes) -> tuple[int, int] | None:
    """Return offset and size of the first section of this name that has bytes; None without one.

    `ValueError` like `read_sections`, and for a section that runs past the file.
    """

def file_sections(objects: ObjectTables, number: int) -> list[Section]:
    """Return the sections of an input of a link; `offset` is in the buffer of all inputs' bytes.

    `number` is the input's. `header` is 0, and an alignment of 0 is given as 1.
    """

def file_image(objects: ObjectTables, number: int) -> bytes:
    """Return an input of a link as an ELF file, with the contents that the link gave it so far.

    `number` is the input's. Contents that the link gave a section come after those of the file.
    Symbols are as in the input.
    """
