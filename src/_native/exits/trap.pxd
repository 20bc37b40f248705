# Kernels that only trap, from sm_100 on: LDC R1, BPT.TRAP and the branch that ends all code.
#
# ptxas lets the trap wait for the stack pointer. nvlink sees that the stack pointer is unused: it
# drops the scoreboard, the wait, and the extra stall cycle. (docs/format-notes/family-c-exits.md)

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.elf64 cimport WORD, load16, load32


cdef enum:
    TRAP_CONTROL = 13       # first byte of the schedule
    OP_LDC = 0xb82
    OP_BPT = 0x95c
    OP_BRANCH = 0x947
    STACK_POINTER = 1
    UNSET = 7               # no scoreboard


cdef inline uint32_t trap_operation(const uint8_t* word) noexcept nogil:
    return load16(word) & 0xfff


cdef inline uint32_t trap_schedule(const uint8_t* word) noexcept nogil:
    """Bits 104 to 127: from bit 1 on the stall count, from 6 the scoreboard, from 12 the waits."""
    return load32(word + TRAP_CONTROL - 1) >> 8


cdef inline bint is_only_trap(const uint8_t* code, uint64_t size) noexcept nogil:
    """Whether the kernel consists of these three instructions; the trap waits for R1 alone."""
    cdef uint32_t load, scoreboard
    if (size < 3 * WORD or trap_operation(code) != OP_LDC or code[2] != STACK_POINTER
            or trap_operation(code + WORD) != OP_BPT
            or trap_operation(code + 2 * WORD) != OP_BRANCH):
        return False
    load = trap_schedule(code)
    scoreboard = load >> 6 & 7
    return (load >> 1 & 0xf == 2 and scoreboard != UNSET
            and trap_schedule(code + WORD) >> 12 & 0x3f == <uint32_t>1 << scoreboard)


cdef inline void clear_trap_waits(uint8_t* code) noexcept nogil:
    code[TRAP_CONTROL] = (code[TRAP_CONTROL] & 0x21) | 1 << 1 | (UNSET & 3) << 6
    code[TRAP_CONTROL + 1] |= UNSET >> 2
    code[WORD + TRAP_CONTROL + 1] &= 0x0f
    code[WORD + TRAP_CONTROL + 2] &= 0xfc
