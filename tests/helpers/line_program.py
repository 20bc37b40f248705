"""Builds line number programs of DWARF versions 2 to 5, as ptxas would write them.

    lines = Lines(version=2, files=[("k.cu", 1)], directories=["/src"])
    lines.function(symbol, [Row(0, 3), Row(16, 4), Row(32, 9, inlined=(2, name))], size=64)
    lines.add_to(cubin)

A row is an address, a line and a file. Inlined code also has the row of the call, counted from 1 in
the function, and the offset of the callee's name in `.debug_str`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from helpers.cubin_builder import SHT_PROGBITS, Cubin, Section

R_CUDA_64 = 2
LINE_STRINGS = ".debug_line_str"
DW_LNCT_PATH, DW_LNCT_DIRECTORY = 1, 2
DW_FORM_UDATA, DW_FORM_LINE_STRP = 0x0F, 0x1F


def uleb(value: int) -> bytes:
    """Return an unsigned number in LEB128."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def sleb(value: int) -> bytes:
    """Return a signed number in LEB128."""
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value & 0x7F])


def text(value: str) -> bytes:
    """Return a string with a NUL."""
    return value.encode("utf-8", "surrogateescape") + b"\0"


@dataclass
class Row:
    """A row of a function at a code offset; the head describes `inlined`."""

    address: int
    line: int
    file: int = 1
    column: int = 0
    inlined: tuple[int, int] | None = None


@dataclass
class Lines:
    """One unit; `functions` are symbol, rows and size of each function.

    `version` is that of DWARF, and `files` have the name and number of a directory.
    """

    version: int = 2
    files: list[tuple[str, int]] = field(default_factory=lambda: [("k.cu", 1)])
    directories: list[str] = field(default_factory=lambda: ["/src"])
    section: str = ".debug_line"
    functions: list[tuple[int, list[Row], int]] = field(default_factory=list)

    def function(self, symbol: int, rows: list[Row], size: int = 128) -> None:
        """Add a function with its rows and its size in bytes."""
        self.functions.append((symbol, rows, size))

    def add_to(self, cubin: Cubin, *, implicit: bool = False) -> int:
        """Add the section and its relocations, REL with `implicit`, to a cubin.

        Return its index.
        """
        data, entries, strings = self.build()
        index = cubin.section(Section(self.section, SHT_PROGBITS, data, align=1))
        cubin.relocate(index, entries, implicit=implicit)
        if strings:
            cubin.section(Section(LINE_STRINGS, SHT_PROGBITS, strings, align=1))
        return index

    def build(self) -> tuple[bytes, list[tuple[int, int, int, int]], bytes]:
        """Return section, its relocations (offset, type, symbol, addend), and `.debug_line_str`."""
        tables, strings = self._tables()
        # Instructions, is_stmt, line base and range, opcode base, operands of the opcodes 1 to 9.
        fixed = b"\1" + (b"\1" if self.version >= 4 else b"") + b"\1\xfb\x0e\x0a"
        fixed += bytes([0, 1, 1, 1, 1, 0, 0, 0, 1])
        head = struct.pack("<I", len(fixed) + len(tables)) + fixed + tables
        sizes = b"\x08\0" if self.version >= 5 else b""
        before = struct.pack("<H", self.version) + sizes + head
        program = bytearray()
        entries = []
        for symbol, rows, size in self.functions:
            program += b"\0\x09\2"
            entries.append((4 + len(before) + len(program), R_CUDA_64, symbol, 0))
            program += bytes(8) + self._program(rows, size)
        body = before + bytes(program)
        return struct.pack("<I", len(body)) + body, entries, strings

    def _tables(self) -> tuple[bytes, bytes]:
        """Return the tables of directories and files, and the contents of .debug_line_str."""
        if self.version < 5:
            directories = b"".join(map(text, self.directories)) + b"\0"
            files = b"".join(text(name) + uleb(at) + b"\0\0" for name, at in self.files)
            return directories + files + b"\0", b""
        strings = bytearray()
        directories = bytes([1, DW_LNCT_PATH, DW_FORM_LINE_STRP]) + uleb(len(self.directories))
        for directory in self.directories:
            directories += struct.pack("<I", len(strings))
            strings += text(directory)
        form = [DW_LNCT_PATH, DW_FORM_LINE_STRP, DW_LNCT_DIRECTORY, DW_FORM_UDATA]
        files = bytes([2, *form]) + uleb(len(self.files))
        for name, at in self.files:
            files += struct.pack("<I", len(strings)) + uleb(at)
            strings += text(name)
        return directories + files, bytes(strings)

    @staticmethod
    def _program(rows: list[Row], size: int) -> bytes:
        """Return the opcodes for the rows of a function."""
        out = bytearray()
        address, line, file, column = 0, 1, 1, 0
        inlined: tuple[int, int] | None = None
        for row in rows:
            if row.inlined != inlined:
                operands = uleb(row.inlined[0]) + uleb(row.inlined[1]) if row.inlined else b"\0\0"
                out += b"\0" + uleb(1 + len(operands)) + b"\x90" + operands
            if row.file != file:
                out += b"\4" + uleb(row.file)
            if row.column != column:
                out += b"\5" + uleb(row.column)
            step, down = row.address - address, row.line - line
            special = down + 5 + 14 * step + 10
            if -5 <= down < 9 and special < 256:
                out.append(special)
            else:
                out += b"\3" + sleb(down) + b"\2" + uleb(step) + b"\1"
            address, line, file, column = row.address, row.line, row.file, row.column
            inlined = row.inlined
        return bytes(out) + b"\2" + uleb(size - address) + b"\0\1\1"
