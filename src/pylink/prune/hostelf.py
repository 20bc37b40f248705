"""Host ELF files: replaces sections of objects, and reads the symbols of any file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

from pylink.facts.elf import (
    ET_REL,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_NULL,
    SHT_REL,
    SHT_RELA,
    SHT_SYMTAB,
    STT_SECTION,
)
from pylink.facts.headers import FileHeader, SectionHeader
from pylink.facts.records import EHDR, REL_INFO, RELA_INFO, SHDR, SYM
from pylink.inspect.embedded import InMemory, NoSections, read_section_headers, section_name
from pylink.prune.errors import NotPruned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Largest accepted alignment of a section in bytes, more than a large page. It bounds the padding
# between two sections.
_LARGEST_ALIGNMENT = 1 << 22
# Offsets of fields in a symbol and in a RELA entry.
ST_VALUE_OFFSET, R_ADDEND_OFFSET = 8, 16


@dataclass(frozen=True, slots=True)
class HostSymbol:
    """A symbol; `section` is a section's number, 0 if it is undefined, `kind` an STT_ number."""

    name: bytes
    section: int
    value: int
    kind: int


@dataclass(frozen=True)
class HostSection:
    """A section header and its name."""

    name: bytes
    header: SectionHeader

    @property
    def kind(self) -> int:
        return self.header.type

    @property
    def offset(self) -> int:
        return self.header.offset

    @property
    def size(self) -> int:
        return self.header.size

    @property
    def stored(self) -> int:
        """The number of bytes in the file."""
        return 0 if self.kind in (SHT_NULL, SHT_NOBITS) else self.size


class HostElf:
    """A 64-bit host ELF file; NotPruned if its headers are invalid."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name = data, name
        try:
            headers, names = read_section_headers(InMemory(data), len(data))
        except NoSections as error:
            raise NotPruned(f"{name}: {error}") from error
        self.header = FileHeader._make(EHDR.unpack_from(data))
        self.sections = [
            HostSection(section_name(names, header[0]), SectionHeader._make(header))
            for header in headers
        ]
        if any(section.offset + section.stored > len(data) for section in self.sections):
            raise NotPruned(f"{name}: a section runs past the file")

    def contents(self, section: HostSection) -> bytes:
        return self.data[section.offset : section.offset + section.stored]

    def symbols(self, table: HostSection) -> Iterator[HostSymbol]:
        """Yield the symbols of a symbol table."""
        link = table.header.link
        if link >= len(self.sections):
            raise NotPruned(f"{self.name}: its symbol table has no names")
        strings = self.contents(self.sections[link])
        data = self.contents(table)
        for name, info, _, section, value, _ in SYM.iter_unpack(
            data[: len(data) - len(data) % SYM.size]
        ):
            text = strings[name : max(name, strings.find(b"\0", name))]
            yield HostSymbol(text, section, value, info & 15)

    def symbol_names(self, prefix: bytes, *, defined: bool) -> set[bytes]:
        """Return the names with this prefix of the defined symbols, or of the undefined ones."""
        return {
            symbol.name
            for table in self.sections
            if table.kind in (SHT_SYMTAB, SHT_DYNSYM)
            for symbol in self.symbols(table)
            if symbol.name.startswith(prefix) and (symbol.section != 0) is defined
        }


def replace_contents(elf: HostElf, new: dict[int, tuple[bytes, dict[int, int]]]) -> bytes:
    """Return the object with new contents of some sections.

    `new` has, by section number, the new contents and a map from old offsets in the section to new
    ones. Symbols and relocations are updated; NotPruned if one refers to an offset that is not in
    the map.
    """
    if elf.header.type != ET_REL or elf.header.phnum:
        raise NotPruned(f"{elf.name}: it is not a relocatable object")
    if any(section.header.addralign > _LARGEST_ALIGNMENT for section in elf.sections):
        raise NotPruned(f"{elf.name}: a section is aligned to more than {_LARGEST_ALIGNMENT} bytes")
    stored = sorted(
        (section.offset, section.offset + section.stored)
        for section in elf.sections
        if section.stored
    )
    if any(end > start for (_, end), (start, _) in pairwise(stored)):
        raise NotPruned(f"{elf.name}: its sections overlap")
    contents = [bytearray(elf.contents(section)) for section in elf.sections]
    for number, (data, _) in new.items():
        contents[number] = bytearray(data)
    _move_references(elf, contents, {number: offsets for number, (_, offsets) in new.items()})
    in_file_order = sorted(range(len(elf.sections)), key=lambda n: (elf.sections[n].offset, n))
    image = bytearray(EHDR.size)
    headers = [section.header for section in elf.sections]
    for number in in_file_order:
        section = elf.sections[number]
        if section.kind == SHT_NULL:
            continue
        image += bytes(-len(image) % max(1, section.header.addralign))
        headers[number] = headers[number]._replace(offset=len(image))
        if section.kind != SHT_NOBITS:
            headers[number] = headers[number]._replace(size=len(contents[number]))
            image += contents[number]
    image += bytes(-len(image) % 8)
    image[: EHDR.size] = EHDR.pack(*elf.header._replace(shoff=len(image)))
    return bytes(image) + b"".join(SHDR.pack(*header) for header in headers)


def _move_references(
    elf: HostElf, contents: list[bytearray], moved: dict[int, dict[int, int]]
) -> None:
    """Update symbols in changed sections, and relocations that use section symbols of these.

    `contents` has the contents of all sections, which are updated, and `moved` the new offsets in
    changed sections by section number and old offset.
    """
    for number, table in enumerate(elf.sections):
        if table.kind != SHT_SYMTAB:
            continue
        section_of: dict[int, int] = {}  # changed sections by the number of their section symbol
        for index, symbol in enumerate(elf.symbols(table)):
            if symbol.section not in moved:
                continue
            if symbol.kind == STT_SECTION:
                section_of[index] = symbol.section
                continue
            offset = _new_offset(elf, moved[symbol.section], symbol.value, symbol.name)
            value_offset = index * SYM.size + ST_VALUE_OFFSET
            struct.pack_into("<Q", contents[number], value_offset, offset)
        for relocations in elf.sections:
            if relocations.header.link == number and relocations.kind in (SHT_REL, SHT_RELA):
                _move_addends(elf, relocations, contents, section_of, moved)


def _move_addends(
    elf: HostElf,
    table: HostSection,
    contents: list[bytearray],
    section_of: dict[int, int],
    moved: dict[int, dict[int, int]],
) -> None:
    """Update the addends of a relocation section that are offsets in changed sections.

    `section_of` has the changed sections by the number of their section symbol. `moved` has the new
    offsets by section number and old offset.
    """
    number = elf.sections.index(table)
    if table.header.info in moved:
        raise NotPruned(f"{elf.name}: its device code has relocations")
    entry_size = RELA_INFO.size if table.kind == SHT_RELA else REL_INFO.size
    data = contents[number]
    for position in range(0, len(data) - entry_size + 1, entry_size):
        _, info = REL_INFO.unpack_from(data, position)
        symbol = info >> 32
        if symbol not in section_of:
            continue
        if table.kind == SHT_REL:
            raise NotPruned(f"{elf.name}: it refers to device code without addends")
        (addend,) = struct.unpack_from("<q", data, position + R_ADDEND_OFFSET)
        new_addend = _new_offset(elf, moved[section_of[symbol]], addend, table.name)
        struct.pack_into("<q", data, position + R_ADDEND_OFFSET, new_addend)


def _new_offset(elf: HostElf, offsets: dict[int, int], value: int, name: bytes) -> int:
    """Return the new offset for the old one `value`, to which `name` refers; NotPruned if none."""
    if value not in offsets:
        text = name.decode("utf-8", "replace")
        raise NotPruned(f"{elf.name}: '{text}' refers to offset {value:#x} within a container")
    return offsets[value]
