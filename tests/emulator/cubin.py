"""Reading an ELF cubin: sections, symbols, relocations and attributes, by `struct` alone.

This reader shares no code with the package under test. It knows the ELF format and the framing of
attribute records, and nothing about what a section means.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from emulator.errors import BadImage

SHT_SYMTAB = 2
SHT_RELA = 4
SHT_NOBITS = 8
SHT_REL = 9
SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_SHARED = 0x70000007, 0x70000009, 0x7000000A
# Sections that take memory and no bytes of the file; ptxas writes the last three for sm_75.
WITHOUT_CONTENTS = (SHT_NOBITS, SHT_CUDA_GLOBAL, SHT_CUDA_LOCAL, SHT_CUDA_SHARED)
ET_EXEC = 2
EM_CUDA = 190

MOST_ZEROS = 1 << 32  # bytes of a section without contents; no GPU of these chips has more to spare

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
REL = struct.Struct("<QQ")
RELA = struct.Struct("<QQq")

# How an attribute record holds its value: none, one byte, two bytes, or a length and that many.
EIFMT_NVAL, EIFMT_BVAL, EIFMT_HVAL, EIFMT_SVAL = 1, 2, 3, 4


@dataclass(frozen=True)
class Section:
    """One section header with its contents; `data` is zeros where the file has none."""

    index: int
    name: str
    type: int
    flags: int
    link: int
    info: int
    alignment: int
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)


@dataclass(frozen=True)
class Symbol:
    """One row of `.symtab`; `section` is st_shndx."""

    index: int
    name: str
    binding: int
    type: int
    other: int
    section: int
    value: int
    size: int


@dataclass(frozen=True)
class Relocation:
    """One row of a relocation section; `addend` is None in SHT_REL, where the field has it."""

    section: int
    offset: int
    type: int
    symbol: Symbol
    addend: int | None


@dataclass(frozen=True)
class Attribute:
    """One record of an `.nv.info` section; `value` are its bytes, of one or two in the header."""

    number: int
    value: bytes

    def words(self) -> tuple[int, ...]:
        """The value as 32-bit words; bytes beyond the last whole word are left out."""
        count = len(self.value) // 4
        return struct.unpack_from(f"<{count}I", self.value)


class Cubin:
    """The parts of one ELF file; BadImage when it is not a little-endian 64-bit CUDA file."""

    def __init__(self, image: bytes) -> None:
        if image[:6] != b"\x7fELF\x02\x01" or len(image) < HEADER.size:
            raise BadImage("not a little-endian 64-bit ELF file")
        fields = HEADER.unpack_from(image)
        self.type, machine, self.flags = fields[1], fields[2], fields[7]
        if machine != EM_CUDA:
            raise BadImage(f"ELF machine {machine} is not a GPU")
        offset, size, count, names = fields[6], *fields[11:14]
        if size != SECTION.size or offset + size * count > len(image):
            raise BadImage("section header table lies outside the file")
        rows = [SECTION.unpack_from(image, offset + i * size) for i in range(count)]
        if names >= count:
            raise BadImage(f"section {names} with the names of sections is not there")
        strings = self._contents(image, rows[names])
        self.sections = [
            Section(
                index,
                _string(strings, row[0]),
                row[1],
                row[2],
                row[6],
                row[7],
                row[8],
                self._contents(image, row),
            )
            for index, row in enumerate(rows)
        ]
        self.by_name = {section.name: section for section in self.sections}

    @staticmethod
    def _contents(image: bytes, row: tuple[int, ...]) -> bytes:
        if row[1] in WITHOUT_CONTENTS:
            if row[5] > MOST_ZEROS:
                raise BadImage(f"section of {row[5]:#x} zeros")
            return bytes(row[5])
        if row[4] + row[5] > len(image):
            raise BadImage("section contents lie outside the file")
        return image[row[4] : row[4] + row[5]]

    @property
    def sm(self) -> int:
        """The number of the architecture, such as 90: bits 8 to 15 of e_flags, or 0 to 7."""
        new: int = self.flags >> 8 & 0xFF
        return new if self.flags >> 24 or new >= 75 else self.flags & 0xFF

    @cached_property
    def symbols(self) -> list[Symbol]:
        """The rows of `.symtab`."""
        found = []
        for section in self.sections:
            if section.type != SHT_SYMTAB or section.name != ".symtab":
                continue
            if section.link >= len(self.sections) or section.size % SYMBOL.size:
                raise BadImage(".symtab has no string table, or a part of a row")
            strings = self.sections[section.link].data
            for index, row in enumerate(SYMBOL.iter_unpack(section.data)):
                name, info, other, home, value, size = row
                text = _string(strings, name)
                found.append(Symbol(index, text, info >> 4, info & 15, other, home, value, size))
        return found

    def relocations(self, section: Section) -> Iterator[Relocation]:
        """The rows of one section of SHT_REL or SHT_RELA, in file order."""
        form = RELA if section.type == SHT_RELA else REL
        if section.size % form.size:
            raise BadImage(f"{section.name} has a part of a row")
        for offset, info, *addend in form.iter_unpack(section.data):
            if info >> 32 >= len(self.symbols):
                raise BadImage(f"{section.name}: symbol {info >> 32} is not there")
            symbol = self.symbols[info >> 32]
            yield Relocation(
                section.info, offset, info & 0xFFFFFFFF, symbol, addend[0] if addend else None
            )

    def attributes(self, section: Section) -> Iterator[Attribute]:
        """The records of one `.nv.info` section, in file order."""
        data, at = section.data, 0
        while at < len(data):
            if at + 4 > len(data):
                raise BadImage(f"{section.name}+{at:#x}: part of an attribute")
            form, number, short = struct.unpack_from("<BBH", data, at)
            at += 4
            if form == EIFMT_SVAL:
                yield Attribute(number, data[at : at + short])
                at += short
            elif form in (EIFMT_NVAL, EIFMT_BVAL, EIFMT_HVAL):
                yield Attribute(number, data[at - 2 : at])
            else:
                raise BadImage(f"{section.name}+{at - 4:#x}: attribute of unknown format {form}")


def _string(table: bytes, offset: int) -> str:
    end = table.find(0, offset)
    if end < 0:
        raise BadImage(f"name {offset:#x} lies outside its string table of {len(table):#x} bytes")
    return table[offset:end].decode("latin-1")
