# Pieces of constant banks that the link writes once when they repeat.

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.nameindex cimport NameIndex, NameSlot, TextPool, index_find, pool_join


cdef inline bint is_small(uint64_t size, uint64_t align) noexcept nogil:
    """Whether repetitions of a piece are looked for: a literal by its alignment, a short vector."""
    return size in (12, 16, 20, 24, 32, 48, 64) or (size == align and size in (4, 8))


cdef inline bint is_null(const uint8_t* data, uint64_t size) noexcept nogil:
    """A literal without any bit set, which stands for no other of its kind."""
    cdef uint64_t i
    if size > 8:
        return False
    for i in range(size):
        if data[i]:
            return False
    return True


cdef inline NameSlot* find_piece(NameIndex* pieces, TextPool* keys, const uint8_t* data,
                                 uint64_t size, uint64_t align) noexcept nogil:
    """The slot of these bytes at this alignment, as `index_find`; NULL when memory is exhausted."""
    cdef uint8_t* key = pool_join(keys, <const char*>&align, sizeof(align), data, <uint32_t>size)
    if key == NULL:
        return NULL
    return index_find(pieces, key, sizeof(align) + <uint32_t>size)
