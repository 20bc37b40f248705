"""The schedule of instructions from sm_100 on: scoreboards that they set and wait for.

An instruction has 128 bits. Bits 105 to 108 are its stall count. Bits 110 to 112 are the scoreboard
that is released when its result is written, 113 to 115 the one that is released when its operands
are read; 7 is none. Bits 116 to 121 are a bit for each scoreboard that it waits for.
"""

from __future__ import annotations

from pylink.inspect.image import Image

NO_SCOREBOARD = 7
SCHEDULE = (1 << 128) - (1 << 105)  # the bits from the stall count on
MEMBAR = 0x192
# Low 9 bits of the operations that take a fixed time on sm_100, but not on sm_103.
UNTIMED = {0x28: "DMUL", 0x29: "DADD", 0x2A: "DSETP", 0x2B: "DFMA", 0x37: "IMMA"}


def code(image: bytes) -> dict[str, list[int]]:
    """Return the instructions of each function, as numbers."""
    functions = {}
    file = Image(image)
    for section in file.sections:
        if section.name.startswith(".text."):
            data = file.data[section.offset :][: section.size]
            words = [data[at : at + 16] for at in range(0, len(data), 16)]
            functions[section.name[6:]] = [int.from_bytes(word, "little") for word in words]
    return functions


def operation(word: int) -> int:
    """Return the low 9 bits of an instruction: its operation, without the kinds of its operands."""
    return word & 0x1FF


def stall(word: int) -> int:
    """Return the stall count of an instruction, in cycles."""
    return word >> 105 & 0xF


def written_scoreboard(word: int) -> int:
    """Return the scoreboard that is released when the result of an instruction is written."""
    return word >> 110 & 7


def read(word: int) -> int:
    """Return the scoreboard that is released when the operands of an instruction are read."""
    return word >> 113 & 7


def waits(word: int, scoreboard: int) -> bool:
    """Return whether an instruction waits for a scoreboard."""
    return bool(word >> 116 + scoreboard & 1)


def is_idle(word: int) -> bool:
    """Return whether an instruction uses no registers and does not wait, as in fences."""
    loads_nothing = word & ~SCHEDULE == 0x0800 << 64 | 0xFFFFF984
    return (loads_nothing or operation(word) == MEMBAR) and not word >> 116 & 0x3F
