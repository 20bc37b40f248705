"""Which call a row of a line number program was inlined for.

NVIDIA's extended opcode 0x90 comes before the first row of inlined code. Its operands, two
ULEB128 numbers, are the row of the call, counted from 1 in the sequence, and the offset of the
inlined function's name in `.debug_str`; row 0 is the way back. (Found by experiment: `nvcc
-lineinfo` of CUDA 13.0 with calls inlined one and two deep.) Readers of DWARF skip what they do
not know, so the rows are counted here a second time.
"""

from __future__ import annotations

_INLINED_CALL = 0x90
_END_SEQUENCE = 1
_COPY = 1
_FIXED_ADVANCE_PC = 9


class Call:
    """Code is inlined for the call in `row`, from 0 in the sequence; `name` is an offset."""

    __slots__ = ("name", "row")

    def __init__(self, row: int, name: int) -> None:
        self.row = row
        self.name = name


def calls_of_rows(
    program: bytes, opcode_base: int, lengths: list[int] | tuple[int, ...]
) -> list[Call | None]:
    """The call of each row of one sequence, None for code of the function itself.

    `lengths` are the operand counts of the standard opcodes, from opcode 1 on. IndexError where
    the program is cut off.
    """
    calls: list[Call | None] = []
    current: Call | None = None
    at = 0
    while at < len(program):
        opcode = program[at]
        at += 1
        if opcode >= opcode_base:
            calls.append(current)
        elif opcode == 0:
            size, at = uleb(program, at)
            end = at + size
            if size and program[at] == _INLINED_CALL:
                row, after = uleb(program, at + 1)
                name, _ = uleb(program, after)
                current = Call(row - 1, name) if row else None
            elif size and program[at] == _END_SEQUENCE:
                calls.append(current)
                return calls
            at = end
        elif opcode == _FIXED_ADVANCE_PC:
            at += 2
        else:
            if opcode == _COPY:
                calls.append(current)
            for _ in range(lengths[opcode - 1]):
                _, at = uleb(program, at)
    return calls


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """A ULEB128 number and the offset after it."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if byte < 0x80:
            return value, at
