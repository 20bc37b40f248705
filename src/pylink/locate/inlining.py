"""Finds the inlined call of each row of a line number program.

NVIDIA's extended opcode 0x90 is in front of the first row of inlined code. Its operands, two
ULEB128 numbers, are the row of the call, counted from 1 in the sequence, and the offset of the
inlined function's name in `.debug_str`; row 0 ends inlined code. (By experiment: `nvcc -lineinfo`
of CUDA 13.0 with calls inlined one and two deep.) DWARF readers skip unknown opcodes, so the rows
are counted again here.
"""

from __future__ import annotations

from pylink.facts import dwarf


class Call:
    """An inlined call: the number of its row in the sequence, from 0, and the function's name.

    `name_offset` is the offset of the name in `.debug_str`.
    """

    __slots__ = ("name_offset", "row")

    def __init__(self, row: int, name_offset: int) -> None:
        self.row = row
        self.name_offset = name_offset


def calls_of_rows(
    program: bytes, opcode_base: int, lengths: list[int] | tuple[int, ...]
) -> list[Call | None]:
    """Return the inlined call of each row of one sequence; None for code of the function itself.

    `lengths` are the operand counts of the standard opcodes, from opcode 1 on. IndexError if the
    program is truncated.
    """
    calls: list[Call | None] = []
    current: Call | None = None  # the call of the next row
    position = 0
    while position < len(program):
        opcode = program[position]
        position += 1
        if opcode >= opcode_base:  # a special opcode, which adds a row
            calls.append(current)
        elif opcode == 0:
            size, position = read_uleb(program, position)
            end = position + size
            if size and program[position] == dwarf.LNE_INLINED_CALL:
                row, name_position = read_uleb(program, position + 1)
                name_offset, _ = read_uleb(program, name_position)
                current = Call(row - 1, name_offset) if row else None
            elif size and program[position] == dwarf.LNE_END_SEQUENCE:
                calls.append(current)
                return calls
            position = end
        elif opcode == dwarf.LNS_FIXED_ADVANCE_PC:
            position += 2
        else:
            if opcode == dwarf.LNS_COPY:
                calls.append(current)
            for _ in range(lengths[opcode - 1]):
                _, position = read_uleb(program, position)
    return calls


def read_uleb(data: bytes, offset: int) -> tuple[int, int]:
    """Read a ULEB128 number; return it and the offset after it."""
    value = shift = 0
    while True:
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        shift += 7
        offset += 1
        if byte < 0x80:
            return value, offset
