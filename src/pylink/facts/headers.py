"""Headers of ELF files and of entries in fat binaries, as Python's tuples with named fields.

`records.py` and `fatbinentries.py` have their formats. The classes are in a module of their own,
since they need `typing`, which a link, a device-link step and `pylink size` do not import. The
modules that these load unpack records by position. Elsewhere, unpack with
`SectionHeader._make(SHDR.unpack_from(data, offset))` and pack with `SHDR.pack(*header)`.
"""

from __future__ import annotations

from typing import NamedTuple


class FileHeader(NamedTuple):
    """A record of format EHDR; `shstrndx` is the number of the section with section names."""

    ident: bytes
    type: int
    machine: int
    version: int
    entry: int
    phoff: int
    shoff: int
    flags: int
    ehsize: int
    phentsize: int
    phnum: int
    shentsize: int
    shnum: int
    shstrndx: int


class SegmentHeader(NamedTuple):
    """A record of format PHDR."""

    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int


class SectionHeader(NamedTuple):
    """A record of format SHDR; `name` is an offset in the section with section names."""

    name: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    addralign: int
    entsize: int


class EntryHeader(NamedTuple):
    """A record of format ENTRY; docs/inputs.md explains the fields.

    `size` is that of the stored payload with its padding, `packed_size` that of a compressed
    payload without padding, and `full_size` that of the decompressed payload. The latter two are 0
    for a payload that is not compressed. `block` and `name` are offsets in the entry, or 0: of the
    offset and size of compiler options or other data, and of a name.
    """

    kind: int
    mark: int
    header_size: int
    size: int
    packed_size: int
    block: int
    minor: int
    major: int
    sm: int
    name: int
    name_size: int
    flags: int
    key: int
    full_size: int
