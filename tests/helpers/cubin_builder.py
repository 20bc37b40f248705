"""Builds relocatable cubins of sm_80, as small as a test needs them, valid or not.

A cubin is a list of sections, symbols and relocations; `build` computes names, indices and offsets.
Tests of damaged inputs change the bytes at an offset of `starts` or `table`, or give the builder
values that no compiler would write.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field

SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_REL = 1, 2, 3, 4, 7, 9
SHT_INFO, SHT_CALLGRAPH, SHT_PROTOTYPE = 0x70000000, 0x70000001, 0x70000002
SHT_GLOBAL, SHT_GLOBAL_INIT, SHT_SHARED = 0x70000007, 0x70000008, 0x7000000A
SHT_CONSTANT0 = 0x70000064
LOCAL, GLOBAL, WEAK = 0, 1, 2
NOTYPE, FUNC, SECTION, OBJECT = 0, 2, 3, 13
COMMON = 0xFFF2
ENTRY = 0x10
IN_GLOBAL, IN_SHARED, IN_CONSTANT = 0x20, 0x40, 0x80

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
SHDR = struct.Struct("<IIQQQQIIQQ")
SYM = struct.Struct("<IBBHQQ")
IDENT = b"\x7fELF\x02\x01\x01\x41\x08".ljust(16, b"\0")
SM_80 = 0x06005004
CODE = bytes(128)


@dataclass
class Section:
    """A section, with the fields of its header; `link` and `info` are indices."""

    name: str
    type: int
    data: bytes = b""
    flags: int = 0
    link: int = 0
    info: int = 0
    align: int = 4
    entsize: int = 0
    size: int | None = None  # of a section without contents


@dataclass
class Symbol:
    """A symbol, with the fields of its row; `section` is an index, 0 for an undefined one."""

    name: str
    type: int = OBJECT
    bind: int = GLOBAL
    other: int = 0
    section: int = 0
    value: int = 0
    size: int = 0


@dataclass
class Cubin:
    """Sections 1 to 3 are the string tables and the symbol table; symbol 0 is the null symbol.

    `calls` are the rows of the call graph by block, a negative number, and `records` the bytes of
    `.nv.info`.
    """

    sections: list[Section] = field(
        default_factory=lambda: [
            Section(".shstrtab", SHT_STRTAB, align=1),
            Section(".strtab", SHT_STRTAB, align=1),
            Section(".symtab", SHT_SYMTAB, link=2, align=8, entsize=SYM.size),
        ]
    )
    symbols: list[Symbol] = field(default_factory=lambda: [Symbol("", NOTYPE, LOCAL)])
    calls: dict[int, list[tuple[int, int | str]]] = field(default_factory=dict)
    records: bytes = b""
    e_flags: int = SM_80
    starts: list[int] = field(default_factory=list)  # file offset by section, from 1 on
    table: int = 0  # file offset of the section headers

    def section(self, section: Section) -> int:
        """Add a section and return its index."""
        self.sections.append(section)
        return len(self.sections)

    def symbol(self, symbol: Symbol) -> int:
        """Add a symbol and return its index."""
        self.symbols.append(symbol)
        return len(self.symbols) - 1

    def function(
        self,
        name: str,
        *,
        code: bytes = CODE,
        kernel: bool = False,
        bind: int = GLOBAL,
        registers: int = 8,
        frame: int = 0,
    ) -> int:
        """Add a function with its code and its attribute records; return its symbol."""
        symbol = len(self.symbols)
        text = self.section(
            Section(f".text.{name}", SHT_PROGBITS, code, 6, 3, symbol | registers << 24, align=128)
        )
        self.symbol(Symbol(name, FUNC, bind, ENTRY if kernel else 0, text, 0, len(code)))
        for attribute, value in ((0x2F, registers), (0x11, frame)):
            self.records += struct.pack("<BBHII", 4, attribute, 8, symbol, value)
        if kernel:
            info = struct.pack("<BBH", 3, 0x1B, 0xFF)
            self.section(Section(f".nv.info.{name}", SHT_INFO, info, 0x40, 3, text))
            parameters = Section(
                f".nv.constant0.{name}", SHT_CONSTANT0, bytes(0x168), 0x42, 0, text
            )
            self.section(parameters)
        return symbol

    def external(self, name: str) -> int:
        """Add an undefined function and return its symbol."""
        return self.symbol(Symbol(name, FUNC))

    def call(self, caller: int, callee: int) -> None:
        """Add a direct call between functions, given by symbol."""
        self.calls.setdefault(-1, []).append((caller, callee))

    def call_through(self, caller: int, prototype: str) -> None:
        """Add a call through a pointer to functions of a prototype."""
        self.calls.setdefault(-3, []).append((caller, prototype))

    def take_address(self, function: int, prototype: str) -> None:
        """Add that the address of a function of this prototype is taken."""
        self.calls.setdefault(-2, []).append((function, prototype))

    def relocate(
        self, section: int, entries: list[tuple[int, int, int, int]], *, implicit: bool = False
    ) -> int:
        """Add relocations (offset, type, symbol, addend) of a section.

        Return the index of their section.
        """
        rows = [
            struct.pack("<QII", *entry[:3]) + (b"" if implicit else struct.pack("<q", entry[3]))
            for entry in entries
        ]
        name = (".rel" if implicit else ".rela") + self.sections[section - 1].name
        kind, size = (SHT_REL, 16) if implicit else (SHT_RELA, 24)
        return self.section(Section(name, kind, b"".join(rows), 0x40, 3, section, 8, size))

    def find(self, name: str) -> int:
        """Return the index of a section by its name."""
        return [section.name for section in self.sections].index(name) + 1

    def build(self) -> bytes:
        """Return the bytes of the file; sets `starts` and `table`."""
        sections = [Section(**vars(section)) for section in self.sections]
        strings = Strings()
        callgraph = b""
        for block in (-1, -2, -3, -4):
            callgraph += struct.pack("<Ii", 0, block)
            for first, second in self.calls.get(block, []):
                number = strings.add(second) if isinstance(second, str) else second
                callgraph += struct.pack("<II", first, number)
        if self.records:
            sections.append(Section(".nv.info", SHT_INFO, self.records, link=3))
        if self.calls:
            sections.append(Section(".nv.callgraph", SHT_CALLGRAPH, callgraph, link=3, entsize=8))
        sections[2].data = b"".join(
            SYM.pack(
                strings.add(symbol.name),
                symbol.bind << 4 | symbol.type,
                symbol.other,
                symbol.section,
                symbol.value,
                symbol.size,
            )
            for symbol in self.symbols
        )
        sections[2].info = sum(symbol.bind == LOCAL for symbol in self.symbols)
        names = Strings()
        name_offsets = [names.add(section.name) for section in sections]
        sections[0].data = bytes(names.data)
        sections[1].data = bytes(strings.data)
        image = bytearray(EHDR.size)
        self.starts = [0]
        for section in sections:
            image += bytes(-len(image) % section.align)
            self.starts.append(len(image))
            image += section.data
        image += bytes(-len(image) % 8)
        self.table = len(image)
        image += bytes(SHDR.size)
        for name, start, section in zip(name_offsets, self.starts[1:], sections, strict=True):
            size = len(section.data) if section.size is None else section.size
            image += SHDR.pack(
                name,
                section.type,
                section.flags,
                0,
                start,
                size,
                section.link,
                section.info,
                section.align,
                section.entsize,
            )
        EHDR.pack_into(
            image,
            0,
            *(IDENT, 1, 190, 1, 0, 0, self.table, self.e_flags),
            *(EHDR.size, 0, 0, SHDR.size, len(sections) + 1, 1),
        )
        return bytes(image)


class Strings:
    """A string table that contains each string once."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self.offsets = {"": 0}

    def add(self, text: str) -> int:
        """Add a string, unless it is in the table, and return its offset."""
        if text not in self.offsets:
            self.offsets[text] = len(self.data)
            self.data += os.fsencode(text) + b"\0"
        return self.offsets[text]


def with_wide_counts(image: bytes) -> bytes:
    """Return the file with its section counts in section 0, like files with too many sections.

    Section 0 then has the number of sections, and that of the section names' table (System V gABI,
    chapter 4).
    """
    header = list(EHDR.unpack_from(image))
    table, count, names = header[6], header[12], header[13]
    row = list(SHDR.unpack_from(image, table))
    header[12:], row[5:7] = [0, 0xFFFF], [count, names]
    changed = bytearray(image)
    EHDR.pack_into(changed, 0, *header)
    SHDR.pack_into(changed, table, *row)
    return bytes(changed)


def one_kernel(name: str = "kernel") -> Cubin:
    """Return the smallest cubin that links."""
    cubin = Cubin()
    cubin.function(name, kernel=True)
    return cubin
