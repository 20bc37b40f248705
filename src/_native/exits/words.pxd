# Recognizes and changes instructions of sm_100 and later. They have 16 bytes each, and are called
# words.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from base.elf64 cimport load16, load64
from exits.rows cimport Code, InstructionMap, map_offset, put16, put64
from instructions cimport OP_DADD, OP_DFMA, OP_DMUL
from kernelmodes cimport (
    MODE_LASTING_BARRIERS, MODE_NO_BARRIERS, UPDATE_AWAITED_FENCES, UPDATE_BARE_WORDS,
    UPDATE_GUARD_BSYNC, UPDATE_SHORT_ADDS, UPDATE_UNGUARD_BSYNC,
)


cdef enum:
    OPCODE = 0xfff          # mask of the bits of an instruction that have its opcode
    OP_EXIT = 0x94d
    OP_MEMBAR = 0x992
    OP_NOP = 0x918

    OPERATION = 0x1ff       # mask: the opcode without the bits that tell the kinds of operands
    OP_ANY_NOP = OP_NOP & OPERATION
    OP_CALL_ABS = 0x143
    OP_CALL_REL = 0x144
    OP_BSSY = 0x145
    OP_BRA = 0x147
    OP_WARPSYNC = 0x148
    OP_BRX = 0x149
    OP_BRXU = 0x158
    OP_SUST_P = 0x19b
    OP_SUST = 0x19d
    OP_SURED = 0x19f
    OP_SYNCS_ARRIVE = 0x1a7  # mbarrier.arrive, .expect_tx and .try_wait
    OP_SYNCS_CCTL = 0x1b1   # mbarrier.inval
    OP_SYNCS_EXCH = 0x1b2   # mbarrier.init
    OP_LDGSTS = 0x1ae

    MEMBAR_BYTE = 9         # level and scope of a MEMBAR
    MEMBAR_GUARD = 0x80     # level and scope of a guard: the MEMBAR in front of a fence's own

    # The first of the three control bytes at the end of an instruction, which are its schedule. It
    # has the stall count, bit 5 (`set_stall`), and the first bits of a scoreboard's number.
    CONTROL_BYTE = 13
    LONGEST_STALL = 15      # cycles
    # The first two control bytes that most instructions of ptxas -O0 have.
    UNOPTIMIZED_WAITING = 0x3fde    # up to 13.2: LONGEST_STALL, waits for scoreboards 0 and 1
    UNOPTIMIZED_BARE = 0x0fc0       # from 13.3 on: no stall, no scoreboard
    WAITS = 0x30            # bits of the second control byte: waits for scoreboards 0 and 1
    NO_SCOREBOARD = 7       # number where an instruction releases none

cdef enum:
    # Masks of UPDATE_ bits: the changes that only unoptimized code needs, and all changes.
    UPDATE_UNOPTIMIZED = UPDATE_SHORT_ADDS | UPDATE_BARE_WORDS
    UPDATE_ANY = (UPDATE_GUARD_BSYNC | UPDATE_UNGUARD_BSYNC | UPDATE_AWAITED_FENCES
                  | UPDATE_UNOPTIMIZED)


# Instructions that nvlink inserts.
cdef enum WordKind:
    W_MEMBAR                # MEMBAR.SC.VC
    W_ERRBAR
    W_CCTL                  # CCTL.IVALL
    W_NOP


cdef inline void put_instruction(uint8_t* place, WordKind kind) noexcept nogil:
    """Write one of the instructions that nvlink inserts."""
    if kind == W_MEMBAR:
        put64(place, 0x7992)
        put64(place + 8, 0x000fc00000005000ULL)
    elif kind == W_ERRBAR:
        put64(place, 0x79ab)
        put64(place + 8, 0x000fc00000000000ULL)
    elif kind == W_CCTL:
        put64(place, 0x75ab)
        put64(place + 8, 0x000fec0000000000ULL)
    else:
        put64(place, 0x7918)
        put64(place + 8, 0x000fc00000000000ULL)


cdef inline bint is_dummy_load(const uint8_t* word) noexcept nogil:
    """Return whether an instruction is `@!PT LDS RZ, [RZ]`, with any schedule."""
    return load64(word) == 0xfffff984ULL and load64(word + 8) & 0xffffffffffULL == 0x0800


cdef inline uint32_t stall(const uint8_t* word) noexcept nogil:
    """Return the cycles before the next instruction may issue."""
    return word[CONTROL_BYTE] >> 1 & 0xf


cdef inline void set_stall(uint8_t* word, uint32_t cycles) noexcept nogil:
    """Set the stall count. Bit 5, above it, is set for counts below 12, except in a NOP."""
    word[CONTROL_BYTE] = (word[CONTROL_BYTE] & ~0x3e) | cycles << 1
    if cycles < 12 and opcode(word) != OP_NOP:
        word[CONTROL_BYTE] |= 0x20


cdef inline uint32_t schedule(const uint8_t* word) noexcept nogil:
    """Return bits 104 to 127 of an instruction.

    In the result bits 6 to 8 are the number of the scoreboard that the instruction's result
    releases, bits 9 to 11 that of its operands, bits 12 to 17 the scoreboards that it waits for, a
    bit each.
    """
    return load16(word + CONTROL_BYTE) | <uint32_t>word[CONTROL_BYTE + 2] << 16


cdef inline uint32_t waits_of(const uint8_t* word) noexcept nogil:
    """Return the scoreboards that an instruction waits for, a bit each."""
    return schedule(word) >> 12 & 0x3f


cdef inline uint32_t sets_of(const uint8_t* word) noexcept nogil:
    """Return the scoreboards that an instruction sets, a bit each."""
    cdef uint32_t scoreboards = schedule(word) >> 6     # two numbers; & 0x3f drops NO_SCOREBOARD
    return (1 << (scoreboards & 7) | 1 << (scoreboards >> 3 & 7)) & 0x3f


cdef inline void put_waits(uint8_t* word, uint32_t waits) noexcept nogil:
    """Let an instruction also wait for the scoreboards `waits`, a bit each."""
    word[CONTROL_BYTE + 1] |= waits << 4 & 0xf0
    word[CONTROL_BYTE + 2] |= waits >> 4


cdef inline bint can_write_predicate(const uint8_t* word, uint32_t predicate) noexcept nogil:
    """Return whether an instruction may write a predicate.

    Many instructions have the numbers of the predicates that they write in bits 81 to 83 and 84 to
    86. FP64 arithmetic and NOPs write none, and have 0 there.
    """
    if operation(word) in (OP_ANY_NOP, OP_DMUL, OP_DADD, OP_DFMA):
        return False
    return word[10] >> 1 & 7 == predicate or load16(word + 10) >> 4 & 7 == predicate


cdef inline bint is_unoptimized(const uint8_t* word) noexcept nogil:
    """Return whether the schedule of an instruction is that of code which was not optimized."""
    cdef uint32_t control = load16(word + CONTROL_BYTE)
    return control == UNOPTIMIZED_WAITING or control == UNOPTIMIZED_BARE


cdef inline void put_unoptimized(uint8_t* word, WordKind kind,
                                 const uint8_t* exit_word) noexcept nogil:
    """Give a new instruction of an error barrier the schedule that it has in unoptimized code.

    `exit_word` is the EXIT after the barrier. A MEMBAR keeps the schedule of `put_instruction`.
    """
    if kind == W_ERRBAR:
        word[CONTROL_BYTE + 1] |= exit_word[CONTROL_BYTE + 1] & WAITS
    elif kind == W_CCTL:
        put16(word + CONTROL_BYTE, load16(exit_word + CONTROL_BYTE))


# Requirements of a kernel's fences and EXITs. After the colon: which instructions of the kernel, or
# what else, require it.
ctypedef struct Needs:
    bint loads              # dummy shared loads before a fence: LDGSTS, calls
    bint guards             # a second MEMBAR before a fence's own: SYNCS, calls
    bint membar             # MEMBAR before EXIT: surface stores, calls
    bint barrier            # the error barrier before EXIT: the mode of the link


cdef inline uint32_t opcode(const uint8_t* word) noexcept nogil:
    """Return the whole opcode of an instruction, as OP_ numbers above 0x1ff have it."""
    return load16(word) & OPCODE


cdef inline uint32_t operation(const uint8_t* word) noexcept nogil:
    """Return the opcode without the bits for kinds of operands, as OP_ numbers up to 0x1ff are."""
    return load16(word) & OPERATION


cdef inline bint is_membar(const uint8_t* word) noexcept nogil:
    """Return whether an instruction is a MEMBAR."""
    return opcode(word) == OP_MEMBAR


cdef inline Needs needs_of(const uint8_t* text, uint64_t size, int mode) noexcept nogil:
    """Return what the fences and EXITs of a kernel must have, from its instructions and the mode.
    """
    cdef Needs needs
    cdef uint64_t offset
    cdef uint32_t op
    needs.loads = needs.guards = needs.membar = mode == MODE_LASTING_BARRIERS
    needs.barrier = mode != MODE_NO_BARRIERS
    if mode == MODE_LASTING_BARRIERS:
        return needs
    for offset in range(0, size, 16):
        op = operation(text + offset)
        if op == OP_CALL_ABS or op == OP_CALL_REL:
            needs.loads = needs.guards = needs.membar = True
            break
        if op == OP_LDGSTS:
            needs.loads = True
        elif op == OP_SYNCS_ARRIVE or op == OP_SYNCS_CCTL or op == OP_SYNCS_EXCH:
            needs.guards = True
        elif op == OP_SUST_P or op == OP_SUST or op == OP_SURED:
            needs.membar = True
    return needs


cdef inline bint retarget_branch(uint8_t* word, uint64_t old, uint64_t new, const Code* code,
                                 const InstructionMap* places) noexcept nogil:
    """Correct the distance in an instruction if it is a relative branch.

    `old` and `new` are the offsets in .text after the instruction, from which the distance counts.
    Distances to targets outside of the old .text stay. Returns True.
    """
    cdef uint64_t low = load64(word), high = load64(word + 8)
    cdef int64_t distance, target
    cdef uint32_t op = low & OPERATION
    if op == OP_BSSY:               # 30 bits from bit 34 on, in units of 4 bytes
        distance = (<int64_t>low >> 34) * 4
    elif (op == OP_CALL_REL or op == OP_BRA or op == OP_WARPSYNC or op == OP_BRX
            or op == OP_BRXU):      # 8 bits from bit 16 on, then 48 from 34 on, in units of 4 bytes
        distance = <int64_t>(((low >> 34 | high << 30) << 8 | (low >> 16 & 0xff)) << 8) >> 6
    else:
        return True
    target = <int64_t>old + distance
    if target < 0 or <uint64_t>target > code.size:
        return True
    distance = <int64_t>(map_offset(code, places, target, False) - new) >> 2
    if op == OP_BSSY:
        low = (low & 0x3ffffffffULL) | <uint64_t>distance << 34
    else:
        low = (low & ~(0xffULL << 16) & 0x3ffffffffULL) | (<uint64_t>distance & 0xff) << 16
        low |= <uint64_t>(distance >> 8) << 34
        high = (high & ~0x3ffffULL) | (<uint64_t>(distance >> 38) & 0x3ffff)
    put64(word, low)
    put64(word + 8, high)
    return True
