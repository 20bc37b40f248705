"""Small cubins with Mercury sections, built in code."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from helpers.cubin_builder import EHDR, IDENT, SHDR, SYM, Strings

LOCAL, GLOBAL, WEAK = 0, 1, 2
OBJECT, FUNC, SECTION = 1, 2, 3
STRTAB = ".strtab"
SYMTAB = ".nv.merc.symtab"
EM_CUDA = 190


@dataclass(frozen=True)
class Section:
    """A section; `link` and `info` are numbers or names of sections."""

    name: str
    data: bytes = b""
    type: int = 1
    link: int | str = 0
    info: int | str = 0
    align: int = 1


@dataclass(frozen=True)
class Symbol:
    """A symbol, in the section of this name, or undefined."""

    name: str
    bind: int = LOCAL
    type: int = OBJECT
    section: str = ""


@dataclass(frozen=True)
class Cubin:
    """A relocatable cubin."""

    sections: Sequence[Section]
    symbols: Sequence[Symbol]

    def image(self) -> bytes:
        """Return the bytes of the file."""
        strings = Strings()
        names = ["", ".shstrtab", STRTAB, *(section.name for section in self.sections), SYMTAB]
        rows = [bytes(SYM.size)]
        for symbol in self.symbols:
            place = names.index(symbol.section) if symbol.section else 0
            info = symbol.bind << 4 | symbol.type
            rows.append(SYM.pack(strings.add(symbol.name), info, 0, place, 0, 0))
        section_names = Strings()
        for name in names:
            section_names.add(name)
        sections = [
            Section("", type=0),
            Section(".shstrtab", bytes(section_names.data), 3),
            Section(STRTAB, bytes(strings.data), 3),
            *self.sections,
            Section(SYMTAB, b"".join(rows), 0x70000085, STRTAB, 1, 8),
        ]
        body, table = bytearray(EHDR.size), bytearray()
        for section in sections:
            link, info = (
                names.index(value) if isinstance(value, str) else value
                for value in (section.link, section.info)
            )
            fields = section.type, 0, 0, len(body), len(section.data), link, info, section.align, 0
            table += SHDR.pack(section_names.add(section.name), *fields)
            body += section.data
        counts = EHDR.size, 0, 0, SHDR.size, len(sections), 1
        EHDR.pack_into(body, 0, IDENT, 1, EM_CUDA, 1, 0, 0, len(body), 0x6402, *counts)
        return bytes(body + table)

    def with_section(self, name: str, **changes: object) -> Cubin:
        """Return a copy of the cubin with one section changed."""
        return replace(
            self,
            sections=[
                replace(section, **changes) if section.name == name else section  # type: ignore[arg-type] # the caller's fields
                for section in self.sections
            ],
        )

    def with_symbol(self, number: int, symbol: Symbol) -> Cubin:
        """Return a copy of the cubin with symbol `number` (from 1) replaced."""
        symbols = list(self.symbols)
        symbols[number - 1] = symbol
        return replace(self, symbols=symbols)


def rela(*symbols: int) -> bytes:
    """Return relocation entries that name these symbols."""
    return b"".join(
        struct.pack("<QIIq", 8 * i, 0x10002, symbol, 0) for i, symbol in enumerate(symbols)
    )


CODE = ".nv.capmerc.text.k"
FRAME = ".nv.merc.debug_frame"
FRAME_RELA = ".nv.merc.rela.debug_frame"

# A translation unit with one instance of a kernel template. Symbol 1 is the kernel, which is weak;
# its debug frame refers to it and to the frame's own start, symbol 2; 3 is an undefined function.
TEMPLATE = Cubin(
    [
        Section(CODE, b"\x04\0capsule", 0x70000016, SYMTAB, 1, 16),
        Section(FRAME, b"frame"),
        Section(".nv.merc.nv.info", b"info", 0x70000083, SYMTAB),
        Section(FRAME_RELA, rela(1, 2, 3), 0x70000082, SYMTAB, FRAME, 8),
        Section(".nv.global", b"", 8),
        Section(".nv.merc.debug_line", b"line"),
    ],
    [
        Symbol("k", WEAK, FUNC, CODE),
        Symbol(".debug_frame", LOCAL, SECTION, FRAME),
        Symbol("vprintf", GLOBAL, FUNC),
    ],
)
