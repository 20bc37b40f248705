"""Line number programs of cubins: `.debug_line`, and `.nv_debug_line_sass`, which maps to PTX.

Both are DWARF line tables of version 2 or 3 (DWARF 2, section 6.2); the second has no file names.
Addresses are set by relocations against functions: in a cubin that was loaded they are in place,
in others they count from the function's symbol. Extended opcodes that are not DWARF's, which ptxas
writes for inlined code, are skipped by their length.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 1, 2, 3, 4
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
_LONGEST = 70  # bits of a number; more are damage, and would take long to add up
_END_SEQUENCE, _SET_ADDRESS, _DEFINE_FILE = 1, 2, 3


class MalformedLines(ValueError):
    """A line table that cannot be read."""


class Row(NamedTuple):
    """From `address` on, instructions come from this line."""

    address: int
    file: str | None  # None ends a sequence, "" is a file without a name
    line: int


@dataclass
class LineTable:
    """Rows in the order of addresses."""

    rows: list[Row] = field(default_factory=list)

    def find(self, address: int) -> tuple[str, int] | None:
        """The file and line of the row that `address` belongs to."""
        at = bisect_right(self.rows, address, key=lambda row: row.address) - 1
        row = self.rows[at] if at >= 0 else None
        return None if row is None or row.file is None else (row.file, row.line)


def read_lines(data: bytes, addresses: dict[int, int]) -> LineTable:
    """The rows of a section; `addresses` are {offset in the section: relocated address}.

    Raises MalformedLines.
    """
    rows: list[Row] = []
    at = 0
    try:
        while len(data) - at >= 4:
            (length,) = struct.unpack_from("<I", data, at)
            if length > len(data) - at - 4:
                raise MalformedLines(f"a line program of {length} bytes at {at:#x} is cut off")
            _Program(data, at + 4, at + 4 + length, addresses, rows).run()
            at += 4 + length
    except (struct.error, IndexError) as error:
        raise MalformedLines(f"a line program at {at:#x} is damaged") from error
    # Of rows for one address the last counts, and the end of a sequence gives way to the next.
    unique: dict[int, Row] = {}
    for row in rows:
        if row.file is not None or row.address not in unique:
            unique[row.address] = row
    return LineTable(sorted(unique.values(), key=lambda row: row.address))


class _Program:
    """Runs one line program."""

    def __init__(
        self,
        data: bytes,
        at: int,
        end: int,
        addresses: dict[int, int],
        rows: list[Row],
    ) -> None:
        self.data, self.at, self.end = data, at, end
        self.addresses, self.rows = addresses, rows
        version, header_length = struct.unpack_from("<HI", data, at)
        if version not in (2, 3):
            raise MalformedLines(f"version {version} of line tables is not known")
        self.start = at + 6 + header_length
        self.step, _, self.line_base, self.line_range, self.opcode_base = struct.unpack_from(
            "<BBbBB", data, at + 6
        )
        if not self.line_range or not self.opcode_base:
            raise MalformedLines("a line program advances by nothing")
        lengths = at + 11
        self.arguments = data[lengths : lengths + self.opcode_base - 1]
        self.at = lengths + self.opcode_base - 1
        self.files = self._file_names()

    def _file_names(self) -> list[str]:
        folders = [""]
        while text := self._string():
            folders.append(text)
        files = [""]
        while text := self._string():
            files.append(self._file(text, folders))
        return files

    def _file(self, name: str, folders: list[str]) -> str:
        folder = self._unsigned()
        self._unsigned()
        self._unsigned()
        if not folder or folder >= len(folders) or name.startswith("/"):
            return name
        return f"{folders[folder]}/{name}"

    def run(self) -> None:
        """Append the rows of the program."""
        self.at = self.start
        address, file, line = 0, 1, 1
        while self.at < self.end:
            opcode = self._byte()
            if opcode >= self.opcode_base:
                advance, step = divmod(opcode - self.opcode_base, self.line_range)
                address += advance * self.step
                line += self.line_base + step
                self._row(address, file, line)
            elif opcode == 0:
                size = self._unsigned()
                place = self.at
                if size > self.end - place:
                    raise IndexError
                extended = self._byte() if size else None
                if extended == _END_SEQUENCE:
                    self.rows.append(Row(address, None, 0))
                    address, file, line = 0, 1, 1
                elif extended == _SET_ADDRESS:
                    stored = int.from_bytes(self.data[self.at : place + size], "little")
                    base = self.addresses.get(self.at, 0)
                    address = stored if stored >= base else base + stored
                elif extended == _DEFINE_FILE:
                    self.files.append(self._file(self._string(), [""]))
                self.at = place + size
            elif opcode == _COPY:
                self._row(address, file, line)
            elif opcode == _ADVANCE_PC:
                address += self._unsigned() * self.step
            elif opcode == _ADVANCE_LINE:
                line += self._signed()
            elif opcode == _SET_FILE:
                file = self._unsigned()
            elif opcode == _CONST_ADD_PC:
                address += (255 - self.opcode_base) // self.line_range * self.step
            elif opcode == _FIXED_ADVANCE_PC:
                address += self._byte() | self._byte() << 8
            else:
                for _ in range(self.arguments[opcode - 1]):
                    self._unsigned()

    def _row(self, address: int, file: int, line: int) -> None:
        name = self.files[file] if file < len(self.files) else ""
        self.rows.append(Row(address, name, line))

    def _byte(self) -> int:
        if self.at >= self.end:
            raise IndexError
        self.at += 1
        return self.data[self.at - 1]

    def _string(self) -> str:
        stop = self.data.find(b"\0", self.at, self.end)
        if stop < 0:
            raise IndexError
        text = self.data[self.at : stop].decode("utf-8", "backslashreplace")
        self.at = stop + 1
        return text

    def _unsigned(self) -> int:
        return self._leb128()[0]

    def _signed(self) -> int:
        value, bits, is_negative = self._leb128()
        return value - (1 << bits) if is_negative else value

    def _leb128(self) -> tuple[int, int, int]:
        """The bits of a number, their count, and the one that is the sign of a signed number."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value, shift, byte & 0x40
            if shift > _LONGEST:
                raise IndexError
