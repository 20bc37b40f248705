# Pieces of constant banks that the link writes once when they repeat: what constants.pyx (bank 3)
# and poolmerge.pyx (bank 2) share.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base.nameindex cimport NameIndex, NameSlot, TextPool, index_find, pool_join


cdef inline bint is_small(uint64_t size, uint64_t align) noexcept nogil:
    """Return whether nvlink folds pieces of this size: short vectors, and literals of 4 or 8 bytes.

    A piece of 4 or 8 bytes is a literal only if its alignment `align` is equal to its size.
    """
    return size in (12, 16, 20, 24, 32, 48, 64) or (size == align and size in (4, 8))


cdef inline bint is_null(const uint8_t* data, uint64_t size) noexcept nogil:
    """Return whether a piece has at most 8 bytes, all 0: nvlink does not fold it by its bytes."""
    cdef uint64_t i
    if size > 8:
        return False
    for i in range(size):
        if data[i]:
            return False
    return True


cdef inline NameSlot* find_piece(NameIndex* pieces, TextPool* keys, const uint8_t* data,
                                 uint64_t size, uint64_t align) noexcept nogil:
    """Find or add a piece by its bytes and alignment; NULL when memory is exhausted.

    Returns its slot in the index `pieces`; the slot's value is -1 for a new piece (`index_find`).
    `keys` is the memory of the keys.
    """
    cdef uint8_t* key = pool_join(keys, <const char*>&align, sizeof(align), data, <uint32_t>size)
    if key == NULL:
        return NULL
    return index_find(pieces, key, sizeof(align) + <uint32_t>size)
