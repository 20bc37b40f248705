"""A naive reference that encodes line number programs of rewritten kernels again."""

from __future__ import annotations

import struct

from helpers.exits_code import Code
from helpers.line_program import sleb


def skip_leb(data: bytes | bytearray, at: int) -> int:
    """Return the offset after a LEB128 number."""
    while data[at] & 0x80:
        at += 1
    return at + 1


def read_uleb(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned LEB128 number and the offset after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def read_sleb(data: bytes, at: int) -> tuple[int, int]:
    """Return a signed LEB128 number and the offset after it."""
    value, end = read_uleb(data, at)
    return (value - (1 << 7 * (end - at)) if data[end - 1] & 0x40 else value), end


class Lines:
    """A section of line number programs, encoded again sequence by sequence.

    `starts` has the symbol of each address with a relocation, by offset in the section, `kernels`
    the rewritten kernels by symbol. `new_offsets` and `units` map old offsets to new ones.
    """

    def __init__(self, data: bytes, starts: dict[int, int], kernels: dict[int, Code]) -> None:
        self.data, self.starts, self.kernels = data, starts, kernels
        self.out = bytearray()
        self.new_offsets: dict[int, int] = {}  # offsets of addresses with a relocation
        self.units: dict[int, int] = {}  # offsets of units
        at = 0
        while at < len(data):
            at = self.unit(at)

    def unit(self, at: int) -> int:
        """Encode the unit at an offset again, and return the offset after it."""
        data = self.data
        length: int
        header: int
        length, _, header = struct.unpack_from("<IHI", data, at)
        end, program, unit = at + 4 + length, at + 10 + header, len(self.out)
        self.units[at] = unit
        for offset in self.starts:
            if at <= offset < program:
                self.new_offsets[offset] = offset - at + unit
        self.out += data[at:program]
        # minimum_instruction_length, default_is_stmt, line_base, line_range, opcode_base
        fields = struct.unpack_from("<BBbBB", data, at + 10)
        self.step, _, self.base, self.range, self.first = fields
        self.operands = data[at + 15 :][: self.first - 1]
        at = program
        while at < end:
            start, begin = at, len(self.out)
            at, code = self.sequence(start, end)
            if code is None:
                self.out[begin:] = data[start:at]
                for offset in self.starts:
                    if start <= offset < at:
                        self.new_offsets[offset] = offset - start + begin
        struct.pack_into("<I", self.out, unit, len(self.out) - unit - 4)
        return end

    def sequence(self, at: int, end: int) -> tuple[int, Code | None]:
        """Encode a sequence again; return the offset after it, and the kernel that it describes."""
        code: Code | None = None
        address = new = line = row = 0
        while at < end:
            start, op = at, self.data[at]
            at += 1
            emit = False
            if op >= self.first:
                address += (op - self.first) // self.range * self.step
                line += self.base + (op - self.first) % self.range
                emit = True
            elif op == 0:
                length, at = read_uleb(self.data, at)
                at += length
                kind = self.data[at - length]
                if kind == 1:
                    place = code.new_target(address) if code else address
                    self.out += b"\x02" + sleb((place - new) // self.step) + b"\x00\x01\x01"
                    return at, code
                if kind == 2:
                    address = new = 0
                    self.new_offsets[start + 3] = len(self.out) + 3
                    code = self.kernels.get(self.starts.get(start + 3, 0))
                self.out += self.data[start:at]
            elif op == 1:
                emit = True
            elif op == 2:
                value, at = read_uleb(self.data, at)
                address += value * self.step
                if at < end and self.data[at] > 1:  # the row that it led to is not there
                    place = code.new_target(address) if code else address
                    self.advance((place - new) // self.step, line - row)
                    new, row = place, line
            elif op == 3:
                value, at = read_sleb(self.data, at)
                line += value
            elif op in (8, 9):
                raise ValueError(f"line number opcode {op}")
            else:
                for _ in range(self.operands[op - 1]):
                    at = skip_leb(self.data, at)
                self.out += self.data[start:at]
            if emit:
                place = code.new_target(address) if code else address
                self.row((place - new) // self.step, line - row)
                new, row = place, line
        return at, code

    def row(self, address: int, line: int) -> None:
        """Append the opcodes for a row: its distance from the last row in addresses and lines."""
        special = self.first + line - self.base + self.range * address
        if address and line and self.base <= line < self.base + self.range and special <= 255:
            self.out.append(special)
            return
        self.advance(address, line, row=True)
        self.out.append(1)

    def advance(self, address: int, line: int, *, row: bool = False) -> None:
        """Append opcodes that advance address and line; with `row`, also one that ends a row."""
        if line or (row and not address):
            self.out += b"\x03" + sleb(line)
        if address:
            self.out += b"\x02" + sleb(address)
