"""Sections for Python: of any ELF64 file, of a file of a link; and such a file as bytes again.

A link by itself uses none of these.
"""

from typing_extensions import Buffer

from pylink._native.tables import ObjectTables

class Section:
    """A section header, which lies at ``header``.

    ``stored`` bytes are at ``offset``: 0 of NOBITS and the like, -1 where they run past the file.
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

def read_sections(data: Buffer) -> tuple[int, int, list[Section]]:
    """e_type, e_machine and the sections of an ELF64 file, by their headers alone.

    ``ValueError`` says what is wrong with another file, or with its headers.
    """

def find_section(data: Buffer, wanted: bytes) -> tuple[int, int] | None:
    """Offset and size of the contents of the first section with this name; None without any.

    ``ValueError`` as ``read_sections``, and for a section that runs past the file.
    """

def file_sections(objects: ObjectTables, number: int) -> list[Section]:
    """The sections of file ``number`` of a link; ``offset`` is that in the arena, ``header`` 0.

    An alignment of 0 is 1 here.
    """

def file_image(objects: ObjectTables, number: int) -> bytes:
    """File ``number`` of a link, with the contents that its sections have by now.

    Contents that the link changed stand after the others. Symbols are as they were in the input.
    """
