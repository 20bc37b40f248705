# Kernels that only trap, from sm_100 on: LDC R1, BPT.TRAP and a branch to itself.
#
# ptxas lets the trap wait for R1, the stack pointer. nvlink sees that R1 is unused: it drops the
# scoreboard, the wait, and the extra stall cycle. (docs/format-notes/family-c-exits.md)

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.elf64 cimport WORD
from exits.words cimport CONTROL_BYTE, NO_SCOREBOARD, opcode, schedule, stall, waits_of


cdef enum:
    OP_LDC = 0xb82
    OP_BPT = 0x95c
    OP_BRANCH = 0x947
    DESTINATION_BYTE = 2    # byte of an instruction: number of the register it writes
    STACK_POINTER = 1       # number of R1


cdef inline bint is_only_trap(const uint8_t* code, uint64_t size) noexcept nogil:
    """Return whether a kernel is LDC R1, BPT.TRAP and a branch, and the trap waits only for R1.

    That is, for the scoreboard of the LDC. The LDC must have the stall that nvlink shortens, 2
    cycles.
    """
    cdef uint32_t scoreboard
    if (size < 3 * WORD or opcode(code) != OP_LDC or code[DESTINATION_BYTE] != STACK_POINTER
            or opcode(code + WORD) != OP_BPT or opcode(code + 2 * WORD) != OP_BRANCH):
        return False
    scoreboard = schedule(code) >> 6 & 7
    return (stall(code) == 2 and scoreboard != NO_SCOREBOARD
            and waits_of(code + WORD) == <uint32_t>1 << scoreboard)


cdef inline void clear_trap_waits(uint8_t* code) noexcept nogil:
    """Let LDC stall 1 cycle and release no scoreboard, and let the trap wait for none."""
    code[CONTROL_BYTE] = (code[CONTROL_BYTE] & 0x21) | 1 << 1 | (NO_SCOREBOARD & 3) << 6
    code[CONTROL_BYTE + 1] |= NO_SCOREBOARD >> 2
    code[WORD + CONTROL_BYTE + 1] &= 0x0f
    code[WORD + CONTROL_BYTE + 2] &= 0xfc
