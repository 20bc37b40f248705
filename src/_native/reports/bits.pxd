# Bits of an LLVM bitstream, the lowest of each byte first: reading them, with the faults of a file
# that is damaged, and writing them.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

ctypedef struct Cursor:
    const uint8_t* data
    uint64_t size       # bytes of the whole file
    uint64_t bit        # what is read next
    uint64_t limit      # the bit where the block ends
    const char* fault   # why reading stopped, NULL while it goes on
    uint64_t fault_byte


cdef inline void fail(Cursor* c, const char* why) noexcept nogil:
    if c.fault == NULL:
        c.fault = why
        c.fault_byte = c.bit >> 3
    c.bit = c.limit


cdef inline uint64_t take(Cursor* c, uint32_t width) noexcept nogil:
    """The next `width` bits, at most 32; 0 after a fault."""
    cdef uint64_t byte = c.bit >> 3, word = 0, have
    if width > c.limit - c.bit:
        fail(c, b"the block ends within a record")
        return 0
    have = c.size - byte
    memcpy(&word, c.data + byte, 8 if have > 8 else have)
    word >>= c.bit & 7
    c.bit += width
    return word & ((<uint64_t>1 << width) - 1)


cdef inline uint64_t take_vbr(Cursor* c, uint32_t width) noexcept nogil:
    cdef uint64_t more = <uint64_t>1 << (width - 1), value = 0, piece
    cdef uint32_t shift = 0
    while c.fault == NULL:
        piece = take(c, width)
        if shift > 63 or ((piece & (more - 1)) << shift) >> shift != piece & (more - 1):
            fail(c, b"a number has more than 64 bits")
            break
        value |= (piece & (more - 1)) << shift
        if not piece & more:
            return value
        shift += width - 1
    return 0


cdef inline void align_read(Cursor* c) noexcept nogil:
    cdef uint64_t rest = -c.bit & 31
    if rest > c.limit - c.bit:
        fail(c, b"the block ends within a record")
    else:
        c.bit += rest


ctypedef struct Bits:
    uint8_t* at         # where the next word goes
    uint64_t word       # bits that are not written yet, the first one lowest
    uint32_t used       # how many, fewer than 32


cdef inline void put(Bits* b, uint64_t value, uint32_t width) noexcept nogil:
    """The low `width` bits, at most 32; the others must be zero."""
    cdef uint32_t word
    b.word |= value << b.used
    b.used += width
    if b.used >= 32:
        word = <uint32_t>b.word
        memcpy(b.at, &word, 4)
        b.at += 4
        b.word >>= 32
        b.used -= 32


cdef inline void put_vbr(Bits* b, uint64_t value, uint32_t width) noexcept nogil:
    """Groups of `width` bits, the low ones first; the top bit of a group says that more follow."""
    cdef uint64_t more = (<uint64_t>1) << (width - 1)
    while value >= more:
        put(b, (value & (more - 1)) | more, width)
        value >>= width - 1
    put(b, value, width)


cdef inline void align_write(Bits* b) noexcept nogil:
    if b.used:
        put(b, 0, 32 - b.used)
