"""A cubin that is being changed: its bytes, with its section headers as rows that can be set.

Nothing is checked: what an edit writes is what the file has. Contents that grow move to the end of
the file, so that everything else stays where it is.
"""

from __future__ import annotations

import struct

from helpers.cubin_builder import EHDR, SHDR, SYM

NAME, TYPE, FLAGS, ADDR, OFFSET, SIZE, LINK, INFO, ALIGN, ENTSIZE = range(10)
# Where each field of a section header lies in it, and how many bytes it has.
FIELDS = ((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8))
SYMBOL_FIELDS = ((0, 4), (4, 1), (5, 1), (6, 2), (8, 8), (16, 8))
RELA_FIELDS = ((0, 8), (8, 4), (12, 4), (16, 8))
# A damaged header may tell of any number of sections.
MOST_SECTIONS = 1 << 14


class Draft:
    """One cubin; `sections` are lists in the order of the fields above."""

    def __init__(self, image: bytes) -> None:
        self.data = bytearray(image)
        header = EHDR.unpack_from(image)
        self.table, self.count, self.names = header[6], min(header[12], MOST_SECTIONS), header[13]
        self.sections = [
            list(SHDR.unpack_from(image, self.table + number * SHDR.size))
            for number in range(self.count)
            if self.table + (number + 1) * SHDR.size <= len(image)
        ]

    def name(self, number: int) -> bytes:
        if self.names >= len(self.sections):
            return b""
        names = self.contents(self.names)
        start = self.sections[number][NAME]
        return names[start:].split(b"\0", 1)[0]

    def contents(self, number: int) -> bytes:
        row = self.sections[number]
        if row[TYPE] == 8:  # no contents
            return b""
        return bytes(self.data[row[OFFSET] : row[OFFSET] + row[SIZE]])

    def put(self, number: int, contents: bytes) -> None:
        """Give a section other contents, at its place where they fit there."""
        row = self.sections[number]
        start = row[OFFSET]
        if len(contents) > row[SIZE]:
            self.data += bytes(-len(self.data) % 16)
            start = len(self.data)
            self.data += bytes(len(contents))
        self.data[start : start + len(contents)] = contents
        self.set(number, OFFSET, start)
        self.set(number, SIZE, len(contents))

    def set(self, number: int, field: int, value: int) -> None:
        """Write one field of a section header, cut to its width."""
        at, size = FIELDS[field]
        value %= 1 << 8 * size
        self.sections[number][field] = value
        start = self.table + number * SHDR.size + at
        if start + size <= len(self.data):
            self.data[start : start + size] = value.to_bytes(size, "little")

    def poke(self, at: int, size: int, value: int) -> None:
        """Write a number, cut to its width, where the file has room for it."""
        if 0 <= at <= len(self.data) - size:
            self.data[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")

    def peek(self, at: int, size: int) -> int:
        return int.from_bytes(self.data[at : at + size], "little")

    def of_type(self, *types: int) -> list[int]:
        """Numbers of the sections of these types that have contents."""
        return [n for n, row in enumerate(self.sections) if row[TYPE] in types and row[SIZE]]

    def named(self, *beginnings: bytes) -> list[int]:
        """Numbers of the sections whose names begin so and that have contents."""
        return [
            number
            for number, row in enumerate(self.sections)
            if row[SIZE] and row[TYPE] != 8 and self.name(number).startswith(beginnings)
        ]

    @property
    def symtab(self) -> int | None:
        return next(iter(self.of_type(2)), None)

    @property
    def symbol_count(self) -> int:
        symtab = self.symtab
        return 0 if symtab is None else self.sections[symtab][SIZE] // SYM.size

    def symbol_at(self, number: int) -> int:
        """The file offset of a row of the symbol table."""
        symtab = self.symtab
        assert symtab is not None
        return int(self.sections[symtab][OFFSET]) + number * SYM.size

    def symbol_name(self, number: int) -> bytes:
        symtab = self.symtab  # which an edit before this one may have made something else
        strings = len(self.sections) if symtab is None else self.sections[symtab][LINK]
        if strings >= len(self.sections):
            return b""
        (start,) = struct.unpack_from("<I", self.data, self.symbol_at(number))
        return self.contents(strings)[start:].split(b"\0", 1)[0]

    def build(self) -> bytes:
        return bytes(self.data)
