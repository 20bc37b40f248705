"""A naive reference of how sm_100 code, which relies on fixed FP64 and IMMA times, is guarded.

Written from "sm_100 code for sm_103" in docs/older-objects.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from helpers import schedules

# The lowest bit of each field of a schedule in an instruction.
STALL, YIELD, WRITTEN, READ, WAITS, REUSE = 105, 109, 110, 113, 116, 122
# Bits 105 to 121 of instructions in code that is not optimized: of ordinary ones, of IMMA, without
# a wait, and with the scoreboards that are added.
CAREFUL = 15 | 7 << 5 | 7 << 8 | 3 << 11
CAREFUL_IMMA = CAREFUL & ~15
CARELESS = 7 << 5 | 7 << 8
GUARDED = 15 | 0 << 5 | 1 << 8 | 3 << 11
IMMA, MEMBAR, DUMMY_LOAD = 0x37, 0x992, 0x984


def control(word: int) -> int:
    """Return the bits of an instruction for its schedule, from the stall count on."""
    return word >> STALL & 0x1FFFF


def lacks(word: int) -> bool:
    """Return whether an instruction is FP64 or IMMA and sets no scoreboard."""
    is_untimed = schedules.operation(word) in schedules.UNTIMED
    return is_untimed and word >> WRITTEN & 7 == 7 and control(word) & 0x7FFF != CARELESS


def guarded(words: Sequence[int]) -> tuple[list[int], int]:
    """Return changed code, and the number of changes that are not known to be those of nvlink."""
    result = list(words)
    uses = [sum(word >> WRITTEN & 7 == index for word in words) for index in range(6)]
    scoreboard = uses.index(min(uses))
    others = 0
    for at in range(len(words) - 1):
        word = result[at]
        if not lacks(word):
            continue
        schedule = control(word) & 0x7FFF
        if schedule == CAREFUL or (schedule == CAREFUL_IMMA and schedules.operation(word) == IMMA):
            result[at] = word & ~(0x7FFF << STALL) | GUARDED << STALL
            after = at + 1
            while result[after] & 0xFFF in (MEMBAR, DUMMY_LOAD) and after + 1 < len(words):
                after += 1
            result[after] |= 3 << WAITS
            continue
        cycles = max(word >> STALL & 15, 2)
        fresh = cycles | (cycles < 12) << 4 | scoreboard << 5
        word &= ~(0xFF << STALL | 15 << REUSE)
        result[at] = word | fresh << STALL
        result[at + 1] |= 1 << WAITS + scoreboard
        others += 1
    return result, others
