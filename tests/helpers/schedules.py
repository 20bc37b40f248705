"""The schedule of instructions from sm_100 on: who sets a scoreboard, and who waits for it.

An instruction has 128 bits. 105 to 108 are its stall count, 110 to 112 the scoreboard that its
result releases and 113 to 115 the one that its operands do, 7 for none, 116 to 121 a bit for each
scoreboard that it waits for.
"""

from __future__ import annotations

from pylink.inspect.image import Image

NO_SCOREBOARD = 7
SCHEDULE = (1 << 128) - (1 << 105)
MEMBAR = 0x192
# Low 9 bits of the operations that sm_100 runs in a known time and sm_103 does not.
UNTIMED = {0x28: "DMUL", 0x29: "DADD", 0x2A: "DSETP", 0x2B: "DFMA", 0x37: "IMMA"}


def code(image: bytes) -> dict[str, list[int]]:
    """The instructions of each function, as numbers."""
    found = {}
    file = Image(image)
    for section in file.sections:
        if section.name.startswith(".text."):
            data = file.data[section.offset :][: section.size]
            words = [data[at : at + 16] for at in range(0, len(data), 16)]
            found[section.name[6:]] = [int.from_bytes(word, "little") for word in words]
    return found


def operation(word: int) -> int:
    """What it does, whatever the kinds of its operands."""
    return word & 0x1FF


def stall(word: int) -> int:
    return word >> 105 & 0xF


def written(word: int) -> int:
    """The scoreboard that its result releases."""
    return word >> 110 & 7


def read(word: int) -> int:
    """The scoreboard that its operands release."""
    return word >> 113 & 7


def waits(word: int, scoreboard: int) -> bool:
    return bool(word >> 116 + scoreboard & 1)


def is_idle(word: int) -> bool:
    """Whether it has no registers and does not wait: @!PT LDS RZ and MEMBAR of a fence."""
    loads_nothing = word & ~SCHEDULE == 0x0800 << 64 | 0xFFFFF984
    return (loads_nothing or operation(word) == MEMBAR) and not word >> 116 & 0x3F
