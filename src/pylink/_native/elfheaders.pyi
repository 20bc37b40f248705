"""Sections for Python code, of an ELF64 file or of a file of a link; and such a file as bytes.

Plain links do not use this.
"""

from typing_extensions import Buffer

from pylink._native.tables import ObjectTables

class Section:
    """A section header, at the offset `header`.

    `stored` bytes are at `offset`: 0 for NOBITS and the like, -1 if they run past the file.
    """

    name: bytes
    type: int
    link: int
    info: int
    flags: int
    offset: int
    size: int
    stored: int
    header: int
    align: int
    entsize: int

class ElfSections:
    """The sections of a file, with its e_type and e_machine."""

    type: int
    machine: int
    sections: list[Section]

def read_sections(data: Buffer) -> ElfSections:
    """Read the sections of an ELF64 file, by their headers only.

    `ValueError` with the reason for other files and damaged headers.
    """

def find_section(data: Buffer, name: bytes) -> tuple[int, int] | None:
    """Offset and size of the contents of the first section with this name; None without any.

    `ValueError` like `read_sections`, and for a section that runs past the file.
    """

def file_sections(objects: ObjectTables, number: int) -> list[Section]:
    """The sections of file `number` of a link; `offset` is in the arena, `header` is 0.

    An alignment of 0 is given as 1.
    """

def file_image(objects: ObjectTables, number: int) -> bytes:
    """The bytes of file `number` of a link, with the present contents of its sections.

    Contents that the link changed come after the others. Symbols are as in the input.
    """
