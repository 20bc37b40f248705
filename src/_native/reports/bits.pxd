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


cdef inline void stop_reading(Cursor* cursor, const char* why) noexcept nogil:
    if cursor.fault == NULL:
        cursor.fault = why
        cursor.fault_byte = cursor.bit >> 3
    cursor.bit = cursor.limit


cdef inline uint64_t read_bits(Cursor* cursor, uint32_t width) noexcept nogil:
    """The next `width` bits, at most 32; 0 after a fault."""
    cdef uint64_t byte = cursor.bit >> 3, word = 0, available
    if width > cursor.limit - cursor.bit:
        stop_reading(cursor, b"the block ends within a record")
        return 0
    available = cursor.size - byte
    memcpy(&word, cursor.data + byte, 8 if available > 8 else available)
    word >>= cursor.bit & 7
    cursor.bit += width
    return word & ((<uint64_t>1 << width) - 1)


cdef inline uint64_t read_vbr(Cursor* cursor, uint32_t width) noexcept nogil:
    """The next number in groups of `width` bits; 0 after a fault."""
    cdef uint64_t more = <uint64_t>1 << (width - 1), value = 0, piece
    cdef uint32_t shift = 0
    while cursor.fault == NULL:
        piece = read_bits(cursor, width)
        if shift > 63 or ((piece & (more - 1)) << shift) >> shift != piece & (more - 1):
            stop_reading(cursor, b"a number has more than 64 bits")
            break
        value |= (piece & (more - 1)) << shift
        if not piece & more:
            return value
        shift += width - 1
    return 0


cdef inline void align_read(Cursor* cursor) noexcept nogil:
    cdef uint64_t padding = -cursor.bit & 31
    if padding > cursor.limit - cursor.bit:
        stop_reading(cursor, b"the block ends within a record")
    else:
        cursor.bit += padding


ctypedef struct Bits:
    uint8_t* at         # where the next word goes
    uint64_t word       # bits that are not written yet, the first one lowest
    uint32_t used       # number of these bits, fewer than 32


cdef inline void write_bits(Bits* bits, uint64_t value, uint32_t width) noexcept nogil:
    """The low `width` bits, at most 32; the others must be zero."""
    cdef uint32_t word
    bits.word |= value << bits.used
    bits.used += width
    if bits.used >= 32:
        word = <uint32_t>bits.word
        memcpy(bits.at, &word, 4)
        bits.at += 4
        bits.word >>= 32
        bits.used -= 32


cdef inline void write_vbr(Bits* bits, uint64_t value, uint32_t width) noexcept nogil:
    """Groups of `width` bits, the low ones first; the top bit of a group says that more follow."""
    cdef uint64_t more = (<uint64_t>1) << (width - 1)
    while value >= more:
        write_bits(bits, (value & (more - 1)) | more, width)
        value >>= width - 1
    write_bits(bits, value, width)


cdef inline void align_write(Bits* b) noexcept nogil:
    if b.used:
        write_bits(b, 0, 32 - b.used)
