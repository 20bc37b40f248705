"""Finds the inlined call of each row of a line number program.

NVIDIA's extended opcode 0x90 is in front of the first row of inlined code. Its operands, two
ULEB128 numbers, are the row of the call, counted from 1 in the sequence, and the offset of the
inlined function's name in `.debug_str`; row 0 ends inlined code. (By experiment: `nvcc -lineinfo`
of CUDA 13.0 with calls inlined one and two deep.) DWARF readers skip unknown opcodes, so the rows
are counted again here.
"""

from __future__ import annotations

_INLINED_CALL = 0x90
_END_SEQUENCE = 1
_COPY = 1
_FIXED_ADVANCE_PC = 9


class Call:
    """An inlined call: its `row`, from 0 in the sequence, and the offset of the function's name."""

    __slots__ = ("name", "row")

    def __init__(self, row: int, name: int) -> None:
        self.row = row
        self.name = name


def calls_of_rows(
    program: bytes, opcode_base: int, lengths: list[int] | tuple[int, ...]
) -> list[Call | None]:
    """The inlined call of each row of one sequence; None for code of the function itself.

    `lengths` are the operand counts of the standard opcodes, from opcode 1 on. IndexError if the
    program is truncated.
    """
    calls: list[Call | None] = []
    current: Call | None = None
    position = 0
    while position < len(program):
        opcode = program[position]
        position += 1
        if opcode >= opcode_base:
            calls.append(current)
        elif opcode == 0:
            size, position = uleb(program, position)
            end = position + size
            if size and program[position] == _INLINED_CALL:
                row, after = uleb(program, position + 1)
                name, _ = uleb(program, after)
                current = Call(row - 1, name) if row else None
            elif size and program[position] == _END_SEQUENCE:
                calls.append(current)
                return calls
            position = end
        elif opcode == _FIXED_ADVANCE_PC:
            position += 2
        else:
            if opcode == _COPY:
                calls.append(current)
            for _ in range(lengths[opcode - 1]):
                _, position = uleb(program, position)
    return calls


def uleb(data: bytes, offset: int) -> tuple[int, int]:
    """Read a ULEB128 number; returns it and the offset after it."""
    value = shift = 0
    while True:
        byte = data[offset]
        value |= (byte & 0x7F) << shift
        shift += 7
        offset += 1
        if byte < 0x80:
            return value, offset
