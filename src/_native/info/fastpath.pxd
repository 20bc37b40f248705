# Instructions of sm_100 that keep code off the fast path of nvlink's finalizer: those for which it
# clears bit 3 of CAN_FASTPATH_FINALIZE. docs/format-notes.md has the experiments. From 13.3 on code
# has scoreboards that other chips ask for, too, and no instruction clears it. Older code that
# pylink keeps clears it if it lacks these scoreboards: docs/older-objects.md.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.elf64 cimport WORD


cdef enum:
    OP_DMUL = 0x28          # the low byte of an operation is the same for all forms of operands
    OP_DADD = 0x29
    OP_DSETP = 0x2a
    OP_DFMA = 0x2b
    OP_UTCMMA = 0xea        # tcgen05.mma
    OP_FSETP_IMM = 0x80b
    OP_DSETP_IMM = 0x42a
    OP_IMMA = 0x237
    OP_DMMA = 0x23f
    CONTROL_BYTE = 13       # of an instruction, and what these two are in code of -G and -O0 from
    CARELESS = 0x0fc0       # 13.3 on, which is on the fast path whatever it does
    KIND_I8 = 1


cdef inline bint is_off_fastpath(const uint8_t* word, bint follows_scoreboards) noexcept nogil:
    """Whether an instruction clears the bit. `follows_scoreboards`: the link follows a release
    whose code has scoreboards.
    """
    cdef uint32_t form = (<uint32_t>word[0] | <uint32_t>word[1] << 8) & 0xfff
    cdef uint8_t operation = word[0]
    # No second result, and no predicate to combine the first one with.
    cdef bint is_plain = word[10] >> 4 == 0xf and word[11] & 7 == 3
    if word[CONTROL_BYTE] | <uint32_t>word[CONTROL_BYTE + 1] << 8 == CARELESS:
        return False
    if operation == OP_DMUL or operation == OP_DADD or operation == OP_DFMA:
        return True
    if operation == OP_DSETP:
        return form != OP_DSETP_IMM or not is_plain
    if operation == OP_UTCMMA:
        return word[9] & 7 == KIND_I8
    # IMMA and DMMA have the same code in all releases.
    return (form == OP_IMMA
            or (not follows_scoreboards
                and (form == OP_DMMA or (form == OP_FSETP_IMM and is_plain))))


cdef inline bint has_code_off_fastpath(const uint8_t* code, uint64_t size,
                                       bint follows_scoreboards) noexcept nogil:
    cdef uint64_t offset
    for offset in range(size // WORD):
        if is_off_fastpath(code + offset * WORD, follows_scoreboards):
            return True
    return False
