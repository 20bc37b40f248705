# Reads and writes the bits of an LLVM bitstream, the lowest bit of each byte first. A VBR number of
# width w is groups of w bits, the low ones first; the top bit of a group says that another follows:
# 10 in VBR4 is 1010 0001, first 2 with the top bit set, then 1.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

# A position in a block that is read.
ctypedef struct Cursor:
    const uint8_t* data     # the whole file
    uint64_t size           # bytes of the file
    uint64_t bit            # number of the next bit in the file
    uint64_t limit          # number of the bit after the block
    const char* fault       # why reading stopped, NULL while it goes on
    uint64_t fault_byte     # offset in the file at which reading stopped


cdef inline void stop_reading(Cursor* cursor, const char* reason) noexcept nogil:
    """Record a fault, unless there is one, and go to the end of the block."""
    if cursor.fault == NULL:
        cursor.fault = reason
        cursor.fault_byte = cursor.bit >> 3
    cursor.bit = cursor.limit


cdef inline uint64_t read_bits(Cursor* cursor, uint32_t width) noexcept nogil:
    """Read the next `width` bits, at most 32; 0 after a fault."""
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
    """Read a VBR number: groups of `width` bits, the last with top bit 0; 0 after a fault."""
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
    """Skip to the next multiple of 32 bits."""
    cdef uint64_t padding = -cursor.bit & 31
    if padding > cursor.limit - cursor.bit:
        stop_reading(cursor, b"the block ends within a record")
    else:
        cursor.bit += padding


# A position in memory at which bits are written, 32 at a time.
ctypedef struct Bits:
    uint8_t* target     # where the next 32 bits go
    uint64_t word       # bits that are not written yet, the first one lowest
    uint32_t used       # number of these bits, fewer than 32


cdef inline void write_bits(Bits* bits, uint64_t value, uint32_t width) noexcept nogil:
    """Write the low `width` bits of `value`, at most 32; its other bits must be zero."""
    cdef uint32_t word
    bits.word |= value << bits.used
    bits.used += width
    if bits.used >= 32:
        word = <uint32_t>bits.word
        memcpy(bits.target, &word, 4)
        bits.target += 4
        bits.word >>= 32
        bits.used -= 32


cdef inline void write_vbr(Bits* bits, uint64_t value, uint32_t width) noexcept nogil:
    """Write a VBR number: groups of `width` bits, the last with top bit 0."""
    cdef uint64_t more = (<uint64_t>1) << (width - 1)
    while value >= more:
        write_bits(bits, (value & (more - 1)) | more, width)
        value >>= width - 1
    write_bits(bits, value, width)


cdef inline void align_write(Bits* bits) noexcept nogil:
    """Write zeros up to the next multiple of 32 bits."""
    if bits.used:
        write_bits(bits, 0, 32 - bits.used)
