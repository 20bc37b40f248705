"""A plain reader of linked images for the comparison: independent of pylink's own, and slow."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

# NOBITS, CUDA_GLOBAL, CUDA_LOCAL, CUDA_SHARED, CUDA_RESERVED_SHARED: no bytes in the file.
NO_BYTES = frozenset({8, 0x70000007, 0x70000009, 0x7000000A, 0x70000015})
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_MERCURY = 1, 2, 4, 0x10000000


@dataclass(frozen=True)
class Section:
    """One section header; `key` is the name and how many of that name came before."""

    index: int
    key: tuple[str, int]
    name_at: int
    type: int
    flags: int
    addr: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entsize: int

    @property
    def name(self) -> str:
        return self.key[0]

    @property
    def file_size(self) -> int:
        """Bytes in the file: also of sm_110's mercury twin of reserved shared memory."""
        if self.index == 0 or (self.type in NO_BYTES and not self.mercury):
            return 0
        return self.size

    @property
    def mercury(self) -> bool:
        return bool(self.flags & SHF_MERCURY)


@dataclass(frozen=True)
class Segment:
    """One program header."""

    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int


class Image:
    """An ELF64 image with its headers decoded; ValueError or struct.error when unreadable."""

    def __init__(self, data: bytes) -> None:
        if data[:5] != b"\x7fELF\x02" or len(data) < 64:
            raise ValueError("not an ELF64 image")
        self.data = data
        fields = struct.unpack_from("<HHIQQQIHHHHHH", data, 16)
        names = "type machine version entry phoff shoff flags ehsize phentsize phnum shentsize"
        self.header: dict[str, int] = dict(
            zip([*names.split(), "shnum", "shstrndx"], fields, strict=True)
        )
        self.header["ident"] = int.from_bytes(data[:16], "big")
        shoff, shnum = self.header["shoff"], self.header["shnum"]
        shstrndx = self.header["shstrndx"]
        if shnum == 0 and shoff:
            shnum = struct.unpack_from("<Q", data, shoff + 32)[0]
        if shstrndx == 0xFFFF:
            shstrndx = struct.unpack_from("<I", data, shoff + 40)[0]
        raw = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i) for i in range(shnum)]
        names_at = raw[shstrndx][4] if raw else 0
        seen: Counter[str] = Counter()
        self.sections: list[Section] = []
        for index, (name_at, *rest) in enumerate(raw):
            name = self.string(names_at + name_at)
            self.sections.append(Section(index, (name, seen[name]), name_at, *rest))
            seen[name] += 1
        phoff, phnum = self.header["phoff"], self.header["phnum"]
        self.segments = []
        for i in range(phnum):
            kind, flags, *rest = struct.unpack_from("<IIQQQQQQ", data, phoff + 56 * i)
            self.segments.append(Segment(kind, flags, *rest))

    @property
    def sm(self) -> int:
        return (self.header["flags"] >> 8) & 0xFF

    @property
    def relocatable(self) -> bool:
        return self.header["type"] == 1

    def string(self, at: int) -> str:
        end = self.data.find(b"\0", at)
        return self.data[at:end].decode("latin-1")

    def content(self, section: Section) -> bytes:
        return self.data[section.offset : section.offset + section.file_size]

    def section(self, name: str) -> Section | None:
        return next((s for s in self.sections if s.name == name), None)

    def section_name(self, index: int) -> str:
        special = {0: "UNDEF", 0xFFF1: "ABS", 0xFFF2: "COMMON"}
        if index in special:
            return special[index]
        return self.sections[index].name if index < len(self.sections) else f"section {index:#x}?"

    @cached_property
    def symbols(self) -> list[str]:
        """The name of each symbol of .symtab; a section symbol without name has its section's."""
        return self._symbol_names(".symtab")

    @cached_property
    def mercury_symbols(self) -> list[str]:
        return self._symbol_names(".nv.merc.symtab")

    def _symbol_names(self, table: str) -> list[str]:
        symtab, strtab = self.section(table), self.section(".strtab")
        if symtab is None or strtab is None:
            return []
        names = []
        for name, _, _, shndx, _, _ in struct.iter_unpack("<IBBHQQ", self.content(symtab)):
            names.append(self.string(strtab.offset + name) or f"({self.section_name(shndx)})")
        return names

    def symbol_name(self, index: int, section: Section) -> str:
        """Name of the symbol that an entry of `section` gives by number."""
        names = self.mercury_symbols if section.mercury else self.symbols
        return names[index] if index < len(names) else f"symbol {index}?"
