# Code of a chip that runs FP64 and integer MMA instructions in a known number of cycles, on one
# that does not: sm_100 code of ptxas up to 13.2 on sm_103.
#
# DADD, DMUL, DFMA, DSETP and IMMA of such code set no scoreboard; readers of their results rely on
# the stall counts in between. Where the time varies, each has to set one. Only a compiler can
# compute a new schedule, with scoreboards, waits and moved instructions. So each gets a scoreboard,
# and the next instruction waits for it: no instruction moves, and no order of execution is possible
# in which something reads too early, since none of the five is a branch. A scoreboard counts what
# is outstanding, so one that other instructions use as well makes whoever waits for it wait longer,
# never shorter. The sources have been read by then, too.
#
# Code that is not optimized waits for scoreboards 0 and 1 before each instruction; there nvlink
# does nothing else, and the result is its own.
#
# docs/older-objects.md has the experiments.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.elf64 cimport WORD, load16
from exits.rows cimport View, put16
from exits.words cimport (
    CAREFUL, CARELESS, CONTROL_BYTE, OP_DFMA, OP_DMUL, WAITS, is_dummy_load, is_membar, operation,
    set_stall, stall,
)


cdef enum:
    OP_IMMA = 0x37              # of the bits OPERATION
    SCOREBOARDS = 6
    NO_SCOREBOARD = 7
    SHORTEST_STALL = 2          # a scoreboard counts from the cycle after the issue
    REUSE = 0x3c                # bits of the last byte: operands that stay for the next instruction
    # Two control bytes in code that is not optimized: of IMMA as ptxas has them, which sets a stall
    # count of 0 there, and of any of the five with scoreboards 0, when written, and 1, when read.
    CAREFUL_IMMA = 0x3fc0
    CAREFUL_GUARDED = 0x321e


# Counts of the guarded instructions in one file.
ctypedef struct Guarded:
    uint64_t exact              # instructions changed as by nvlink
    uint64_t others             # instructions that only wait more


cdef inline bint is_untimed(const uint8_t* word) noexcept nogil:
    """Whether this is DADD, DMUL, DFMA, DSETP or IMMA."""
    cdef uint32_t op = operation(word)
    return OP_DMUL <= op <= OP_DFMA or op == OP_IMMA


cdef inline uint32_t written_scoreboard(const uint8_t* word) noexcept nogil:
    """The scoreboard that is released when the result is ready: bits 110 to 112."""
    return load16(word + CONTROL_BYTE) >> 6 & 7


cdef inline bint needs_scoreboard(const uint8_t* word) noexcept nogil:
    """Whether it lacks a scoreboard, so that nothing can wait for its result.

    Unoptimized code from 13.3 on, which never has one, does not count.
    """
    return (is_untimed(word) and written_scoreboard(word) == NO_SCOREBOARD
            and load16(word + CONTROL_BYTE) != CARELESS)


cdef inline uint32_t rarest_scoreboard(const uint8_t* text, uint64_t count) noexcept nogil:
    """The first of the scoreboards that the fewest instructions set."""
    cdef uint64_t uses[8]
    cdef uint64_t i
    cdef uint32_t rarest = 0
    for i in range(8):
        uses[i] = 0
    for i in range(count):
        uses[written_scoreboard(text + i * WORD)] += 1
    for i in range(1, <uint64_t>SCOREBOARDS):
        if uses[i] < uses[rarest]:
            rarest = i
    return rarest


cdef inline bint guard_careful(uint8_t* word, const uint8_t* end) noexcept nogil:
    """Guard an instruction of code that is not optimized; False for other code.

    The dummy loads and the MEMBARs of a fence have no registers and need not wait; what comes after
    them does.
    """
    cdef uint8_t* following = word + WORD
    cdef uint32_t control = load16(word + CONTROL_BYTE)
    if control != CAREFUL and not (control == CAREFUL_IMMA and operation(word) == OP_IMMA):
        return False
    put16(word + CONTROL_BYTE, CAREFUL_GUARDED)
    while (is_dummy_load(following) or is_membar(following)) and following + WORD != end:
        following += WORD
    following[CONTROL_BYTE + 1] |= WAITS
    return True


cdef inline void guard_scheduled(uint8_t* word, uint8_t* following,
                                 uint32_t scoreboard) noexcept nogil:
    set_stall(word, max(stall(word), <uint32_t>SHORTEST_STALL))
    put16(word + CONTROL_BYTE, (load16(word + CONTROL_BYTE) & ~0x1c0) | scoreboard << 6)
    word[CONTROL_BYTE + 2] &= ~REUSE
    following[CONTROL_BYTE + 1] |= 1 << 4 + scoreboard if scoreboard < 4 else 0
    following[CONTROL_BYTE + 2] |= 1 << scoreboard - 4 if scoreboard >= 4 else 0


cdef inline bint needs_guard(const View* text) noexcept nogil:
    cdef uint64_t i
    for i in range(text.size // WORD):
        if needs_scoreboard(text.data + i * WORD):
            return True
    return False


cdef inline void guard_code(uint8_t* text, uint64_t size, Guarded* guarded) noexcept nogil:
    """Guard one function, whose last instruction, a NOP or a branch, is none of the five."""
    cdef uint64_t count = size // WORD, i
    cdef uint32_t scoreboard = rarest_scoreboard(text, count)
    cdef uint8_t* word
    for i in range(count - 1):
        word = text + i * WORD
        if not needs_scoreboard(word):
            continue
        if guard_careful(word, text + count * WORD):
            guarded.exact += 1
        else:
            guard_scheduled(word, word + WORD, scoreboard)
            guarded.others += 1
