# Adds waits to code of a chip that runs FP64 and integer MMA instructions in a known number of
# cycles, if the link is for a chip where the number varies: sm_100 code of ptxas up to 13.2, on
# sm_103.
#
# DADD, DMUL, DFMA, DSETP and IMMA of such code set no scoreboard; readers of their results rely on
# the stall counts in between. Where the time varies, each must set one. Only a compiler can compute
# a new schedule, with scoreboards, waits and moved instructions. So each of the five is guarded: it
# gets a scoreboard, and the instruction after it waits for that. No instruction moves, and nothing
# can read a result too early, since none of the five is a branch. A scoreboard counts outstanding
# results. If other instructions use the same one, its readers wait longer, never shorter. When the
# result is ready, the sources have been read, too.
#
# Code that is not optimized waits for scoreboards 0 and 1 before each instruction. In such code
# nvlink makes the same changes, so the output equals nvlink's.
#
# docs/older-objects.md has the experiments.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.elf64 cimport WORD, load16
from exits.rows cimport View, put16
from exits.words cimport (
    CONTROL_BYTE, NO_SCOREBOARD, UNOPTIMIZED_BARE, UNOPTIMIZED_WAITING, WAITS, is_dummy_load,
    is_membar, operation, put_waits, schedule, set_stall, stall,
)
from instructions cimport OP_DFMA, OP_DMUL, OP_IMMA


cdef enum:
    SCOREBOARDS = 6             # number of scoreboards
    # Least stall, in cycles, of an instruction that gets a scoreboard, which is set in the cycle
    # after the issue.
    SHORTEST_STALL = 2
    REUSE = 0x3c                # bits of the last byte: operands that stay for the next instruction
    # Two control bytes in code that is not optimized:
    UNOPTIMIZED_IMMA = 0x3fc0       # of IMMA as ptxas makes it, with a stall count of 0
    UNOPTIMIZED_GUARDED = 0x321e    # of a guarded one: scoreboard 0 for the result, 1 for operands


# Counts of the guarded instructions in one file.
ctypedef struct Guarded:
    uint64_t exact              # instructions changed as by nvlink
    uint64_t others             # changed otherwise than by nvlink: the next one waits longer


cdef inline bint is_untimed(const uint8_t* word) noexcept nogil:
    """Return whether an instruction is DADD, DMUL, DFMA, DSETP or IMMA."""
    cdef uint32_t op = operation(word)
    return OP_DMUL <= op <= OP_DFMA or op == OP_IMMA


cdef inline uint32_t written_scoreboard(const uint8_t* word) noexcept nogil:
    """Return the scoreboard that the result of an instruction releases; NO_SCOREBOARD for none."""
    return schedule(word) >> 6 & 7


cdef inline bint needs_scoreboard(const uint8_t* word) noexcept nogil:
    """Return whether an instruction is DADD, DMUL, DFMA, DSETP or IMMA without a scoreboard.

    That is, its result releases none. False for unoptimized code from 13.3 on, which never has one.
    """
    return (is_untimed(word) and written_scoreboard(word) == NO_SCOREBOARD
            and load16(word + CONTROL_BYTE) != UNOPTIMIZED_BARE)


cdef inline uint32_t rarest_scoreboard(const uint8_t* text, uint64_t count) noexcept nogil:
    """Return the scoreboard that the fewest results release; the lowest number if several tie.

    `count` is the number of instructions of the text.
    """
    cdef uint64_t uses[NO_SCOREBOARD + 1]
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


cdef inline bint guard_unoptimized(uint8_t* word, const uint8_t* end) noexcept nogil:
    """Guard an instruction of unoptimized code: a later one waits for it. False for other code.

    The dummy loads and the MEMBARs of a fence have no registers and need not wait; the instruction
    after them does. `end` is the end of the text.
    """
    cdef uint8_t* following = word + WORD
    cdef uint32_t control = load16(word + CONTROL_BYTE)
    if (control != UNOPTIMIZED_WAITING
            and not (control == UNOPTIMIZED_IMMA and operation(word) == OP_IMMA)):
        return False
    put16(word + CONTROL_BYTE, UNOPTIMIZED_GUARDED)
    while (is_dummy_load(following) or is_membar(following)) and following + WORD != end:
        following += WORD
    following[CONTROL_BYTE + 1] |= WAITS
    return True


cdef inline void guard_scheduled(uint8_t* word, uint8_t* following,
                                 uint32_t scoreboard) noexcept nogil:
    """Let the result of an instruction release a scoreboard, and the following one wait for it."""
    set_stall(word, max(stall(word), <uint32_t>SHORTEST_STALL))
    put16(word + CONTROL_BYTE, (load16(word + CONTROL_BYTE) & ~0x1c0) | scoreboard << 6)
    word[CONTROL_BYTE + 2] &= ~REUSE
    put_waits(following, 1 << scoreboard)


cdef inline bint needs_guard(const View* text) noexcept nogil:
    """Return whether any instruction of a function needs a scoreboard."""
    cdef uint64_t i
    for i in range(text.size // WORD):
        if needs_scoreboard(text.data + i * WORD):
            return True
    return False


cdef inline void guard_code(uint8_t* text, uint64_t size, Guarded* guarded) noexcept nogil:
    """Guard each instruction that needs a scoreboard: a later one waits for it; count them.

    `guarded` has the counts. The last instruction, a NOP or a branch, never needs a guard.
    """
    cdef uint64_t count = size // WORD, i
    cdef uint32_t scoreboard = rarest_scoreboard(text, count)
    cdef uint8_t* word
    for i in range(count - 1):
        word = text + i * WORD
        if not needs_scoreboard(word):
            continue
        if guard_unoptimized(word, text + count * WORD):
            guarded.exact += 1
        else:
            guard_scheduled(word, word + WORD, scoreboard)
            guarded.others += 1
