"""A simple reader of cubins (headers, sections, segments, names), independent of the linker's."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

from pylink.diagnostics.stream import printable
from pylink.facts import elf
from pylink.facts.headers import FileHeader, SectionHeader, SegmentHeader
from pylink.facts.objectformats import sm_of_cubin
from pylink.facts.records import EHDR, PHDR, SHDR, SYM
from pylink.inspect.embedded import ELF_MARK

# Sizes of headers in bytes.
FILE_HEADER_SIZE = EHDR.size
SECTION_HEADER_SIZE, SEGMENT_HEADER_SIZE = SHDR.size, PHDR.size
RELA_PREFIXES = (".rela", ".nv.merc.rela", ".nv.resolvedrela", ".nv.merc.nv.resolvedrela")


class MalformedCubin(ValueError):
    """A file cannot be read as a cubin; the text names the place."""


@dataclass(frozen=True)
class Section:
    """One section header; `key` is the name and the number of earlier sections of this name.

    `name_offset` is sh_name. The offset and size of a `bare` section cover the table of section
    headers, so with a type like NOBITS it has no bytes of its own.
    """

    index: int
    key: tuple[str, int]
    name_offset: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entsize: int
    bare: bool = False

    @property
    def name(self) -> str:
        return self.key[0]

    @property
    def file_size(self) -> int:
        """The number of bytes in the file.

        Sections of types like NOBITS have none, with one exception: up to CUDA 13.4, the mercury
        form of reserved shared memory of sm_110 has bytes.
        """
        if self.index == 0 or (self.type in elf.NO_BYTES and (self.bare or not self.mercury)):
            return 0
        return self.size

    @property
    def mercury(self) -> bool:
        """Whether this is the mercury form of a section: the portable form, from sm_100 on."""
        return bool(self.flags & elf.SHF_MERCURY)


def is_relocations(section: Section) -> bool:
    return section.name.startswith(RELA_PREFIXES) or is_rel(section)


def is_rel(section: Section) -> bool:
    """Return whether a section has relocations whose addends are in the fields to relocate.

    `.nv.rel.action` is not such a section.
    """
    return section.name.startswith(".rel.")


class Image:
    """A cubin with its headers decoded and checked; MalformedCubin if they are invalid."""

    def __init__(self, data: bytes) -> None:
        if len(data) < EHDR.size:
            raise MalformedCubin(f"{len(data)} bytes are too few for an ELF header")
        if not data.startswith(ELF_MARK):
            raise MalformedCubin("not a 64-bit little-endian ELF file")
        self.data = data
        self.header = FileHeader._make(EHDR.unpack_from(data))
        if self.header.machine != elf.EM_CUDA:
            raise MalformedCubin(f"e_machine is {self.header.machine}, not EM_CUDA ({elf.EM_CUDA})")
        self.sections = self._read_sections()
        self.segments = self._read_segments()

    def _read_sections(self) -> list[Section]:
        """Read and check the section headers and the names of sections."""
        header, shoff = self.header, self.header.shoff
        if shoff == 0:
            return []
        self._check_range("section headers", shoff, SECTION_HEADER_SIZE)
        if header.shentsize != SECTION_HEADER_SIZE:
            raise MalformedCubin(f"e_shentsize is {header.shentsize}, not {SECTION_HEADER_SIZE}")
        count, names = elf.section_counts(
            header.shnum, header.shstrndx, SHDR.unpack_from(self.data, shoff)
        )
        self._check_range(f"{count} section headers", shoff, count * SECTION_HEADER_SIZE)
        table = memoryview(self.data)[shoff : shoff + count * SECTION_HEADER_SIZE]
        headers = list(map(SectionHeader._make, SHDR.iter_unpack(table)))
        if names >= count:
            raise MalformedCubin(f"e_shstrndx is {names}, and there are {count} sections")
        start, size = headers[names].offset, headers[names].size  # of the names
        self._check_range(f"section names (section {names})", start, size)
        sections = []
        seen: Counter[str] = Counter()  # number of sections by name
        for index, section_header in enumerate(headers):
            offset, end = section_header.name, -1
            if offset < size:
                end = self.data.find(b"\0", start + offset, start + size)
            if end < 0:
                raise MalformedCubin(f"section {index}: sh_name {offset:#x} is not a name")
            name = printable(self.data[start + offset : end])
            section = Section(index, (name, seen[name]), *section_header)
            if section.offset <= shoff < section.offset + section.size:
                section = replace(section, bare=True)
            seen[name] += 1
            self._check_range(f"section {index} {name}", section.offset, section.file_size)
            sections.append(section)
        return sections

    def _read_segments(self) -> list[SegmentHeader]:
        """Read and check the program headers."""
        phoff, count = self.header.phoff, self.header.phnum
        if count and self.header.phentsize != SEGMENT_HEADER_SIZE:
            raise MalformedCubin(
                f"e_phentsize is {self.header.phentsize}, not {SEGMENT_HEADER_SIZE}"
            )
        self._check_range(f"{count} program headers", phoff, count * SEGMENT_HEADER_SIZE)
        table = memoryview(self.data)[phoff : phoff + count * SEGMENT_HEADER_SIZE]
        return list(map(SegmentHeader._make, PHDR.iter_unpack(table)))

    def _check_range(self, title: str, offset: int, size: int) -> None:
        """Raise MalformedCubin if the file lacks these bytes, which the message calls `title`."""
        limit = len(self.data)
        if size and (offset > limit or size > limit - offset):
            raise MalformedCubin(
                f"{title}: {size:#x} bytes at {offset:#x} run past the end of the file, {limit:#x}"
            )

    @property
    def sm(self) -> int:
        return sm_of_cubin(self.data)

    @property
    def abi_version(self) -> int:
        return self.data[elf.EI_ABIVERSION]

    def content(self, section: Section) -> bytes:
        """Return the bytes of a section; empty if it has none in the file."""
        return self.data[section.offset : section.offset + section.file_size]

    def section(self, name: str) -> Section | None:
        """Return the first section of this name; None if missing."""
        return self._first_of_name.get(name)

    @cached_property
    def _first_of_name(self) -> dict[str, Section]:
        return {section.name: section for section in reversed(self.sections)}

    def section_name(self, index: int) -> str:
        """Return the name of a section by its number, which may be special, such as SHN_ABS."""
        if index in elf.SPECIAL_SECTIONS and (index == 0 or index >= len(self.sections)):
            return elf.SPECIAL_SECTIONS[index]
        return self.sections[index].name if index < len(self.sections) else f"section {index:#x}?"

    def string(self, offset: int) -> str:
        """Return the string at an offset of `.strtab`."""
        table = self._strings
        end = table.find(b"\0", offset)
        if offset >= len(table) or end < 0:
            raise MalformedCubin(f".strtab: no string at {offset:#x}")
        return printable(table[offset:end])

    @cached_property
    def _strings(self) -> bytes:
        section = self.section(".strtab")
        return self.content(section) if section else b""

    @cached_property
    def symbols(self) -> list[str]:
        """The names of symbols in .symtab; for an unnamed one, its section's name in brackets."""
        return self._symbol_names(".symtab")

    @cached_property
    def mercury_symbols(self) -> list[str]:
        """The names of symbols in .nv.merc.symtab, to which mercury sections refer."""
        return self._symbol_names(".nv.merc.symtab")

    def _symbol_names(self, table: str) -> list[str]:
        """Return the names in the symbol table `table`; empty if it is missing."""
        symtab = self.section(table)
        if symtab is None:
            return []
        names = []
        for i, (name, _, _, shndx, _, _) in enumerate(self.entries(symtab, SYM.format)):
            text = self.string(name)
            names.append(text or f"({self.section_name(self.section_of_symbol(symtab, i, shndx))})")
        return names

    def section_of_symbol(self, symtab: Section, index: int, shndx: int) -> int:
        """Return the number of a symbol's section: st_shndx, or the entry in the _shndx table."""
        if shndx != elf.SHN_XINDEX:
            return shndx
        section = self.section(f"{symtab.name}_shndx")
        data = self.content(section) if section else b""
        if 4 * index + 4 > len(data):
            raise MalformedCubin(f"{symtab.name}[{index}]: no section number in its _shndx table")
        return int.from_bytes(data[4 * index : 4 * index + 4], "little")

    def entries(self, section: Section, form: str) -> list[tuple[int, ...]]:
        """Unpack the entries of a table, with the struct format `form`."""
        size = struct.calcsize(form)
        data = self.content(section)
        if len(data) % size:
            raise MalformedCubin(
                f"{section.name}: {len(data):#x} bytes are not a multiple of {size}"
            )
        return list(struct.iter_unpack(form, data))

    def symbol_name(self, index: int, section: Section) -> str:
        """Return the name of a symbol that an entry of `section` refers to by number."""
        names = self.mercury_symbols if section.mercury else self.symbols
        return names[index] if index < len(names) else f"symbol {index}?"
