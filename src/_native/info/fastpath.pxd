# Instructions of sm_100 that keep code off the fast path of nvlink's finalizer: if code of the
# output has one, bit 3 of CAN_FASTPATH_FINALIZE is cleared. docs/format-notes.md has the
# experiments. ptxas up to 13.2 sets no scoreboards for FP64 instructions and IMMA on sm_100, though
# other chips of the family need them: such code clears the bit (docs/older-objects.md). From 13.3
# on ptxas sets them. Code of files that have the bit is not looked at (`fastpath_bits`).

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.elf64 cimport WORD, load16


cdef enum:
    # Low bytes of opcodes, which are the same for all kinds of operands.
    LOW_DMUL = 0x28
    LOW_DADD = 0x29
    LOW_DSETP = 0x2a
    LOW_DFMA = 0x2b
    LOW_UTCMMA = 0xea       # tcgen05.mma
    # Whole opcodes.
    FASTPATH_OPCODE = 0xfff     # bits of an instruction that have its opcode
    OP_FSETP_IMM = 0x80b
    OP_DSETP_IMM = 0x42a
    OP_IMMA = 0x237
    OP_DMMA = 0x23f
    FASTPATH_CONTROL = 13       # first of two control bytes of an instruction
    # The two control bytes of instructions that -G and -O0 compile from 13.3 on. Such code is
    # always on the fast path.
    UNOPTIMIZED_CONTROL = 0x0fc0
    KIND_I8 = 1             # low bits of byte 9 of tcgen05.mma: kind::i8


cdef inline bint is_off_fastpath(const uint8_t* word, bint follows_scoreboards) noexcept nogil:
    """Return whether an instruction is one of those that clear bit 3 of CAN_FASTPATH_FINALIZE.

    `follows_scoreboards` says that the link follows 13.3 or later (TRAIT_FP64_SCOREBOARDS).
    """
    cdef uint32_t opcode = load16(word) & FASTPATH_OPCODE
    cdef uint8_t low = word[0]
    # A comparison is plain if it has one result, which is not combined with another predicate.
    cdef bint is_plain = word[10] >> 4 == 0xf and word[11] & 7 == 3
    if load16(word + FASTPATH_CONTROL) == UNOPTIMIZED_CONTROL:
        return False
    if low == LOW_DMUL or low == LOW_DADD or low == LOW_DFMA:
        return True
    if low == LOW_DSETP:
        return opcode != OP_DSETP_IMM or not is_plain
    if low == LOW_UTCMMA:
        return word[9] & 7 == KIND_I8
    # IMMA and DMMA have one opcode each, in all releases.
    return (opcode == OP_IMMA
            or (not follows_scoreboards
                and (opcode == OP_DMMA or (opcode == OP_FSETP_IMM and is_plain))))


cdef inline bint has_code_off_fastpath(const uint8_t* code, uint64_t size,
                                       bint follows_scoreboards) noexcept nogil:
    """Return whether any instruction of a code section of `size` bytes `is_off_fastpath`."""
    cdef uint64_t number
    for number in range(size // WORD):
        if is_off_fastpath(code + number * WORD, follows_scoreboards):
            return True
    return False
