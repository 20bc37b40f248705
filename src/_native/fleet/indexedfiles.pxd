# Rows of the files that an index knows, and how to find one.
#
# A `bint` function of this package that is a verb returns False when memory is exhausted, and only
# then. Exception: `overtake`, without a row to overtake.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from base.nameindex cimport NameIndex, NameSlot, hash_name, index_find
from fleet.stamps cimport Stamp

# What an index knew when it wrote all of it down, as it lies in its file, with the table by which
# to find a file. Rows stay as they are; one that is no longer true is overtaken by an Indexed.
ctypedef struct Base:
    const int64_t* end          # end of each path, after a first 0
    const Stamp* stamp
    const int32_t* root
    const uint8_t* text
    const int32_t* slots        # row, or -1
    size_t mask
    size_t count
    uint8_t* marks

cdef enum Mark:
    M_SEEN = 1
    M_OVERTAKEN = 2

# A file that an index has learned of since.
ctypedef struct Indexed:
    const uint8_t* path         # below the root
    uint32_t size
    uint32_t root
    Stamp stamp
    bint there                  # the file existed in the last run
    bint seen                   # by this run; alone meaningful for a file that was not there


cdef inline uint64_t place_of(uint32_t root, const uint8_t* path, size_t size) noexcept nogil:
    return hash_name(path, size) ^ root * 0x9e3779b97f4a7c15ULL


cdef inline int64_t find_row(const Base* base, uint32_t root, const uint8_t* path,
                             uint32_t size) noexcept nogil:
    """The row of a file, or -1."""
    cdef size_t at, cells = base.mask + 1
    cdef int32_t row
    if base.count == 0:
        return -1
    at = place_of(root, path, size) & base.mask
    while cells:                # a damaged table may have no free cell
        cells -= 1
        row = base.slots[at]
        if not 0 <= row < <int64_t>base.count:
            return -1
        if (base.root[row] == <int32_t>root and base.end[row + 1] - base.end[row] == size
                and memcmp(base.text + base.end[row], path, size) == 0):
            return row
        at = (at + 1) & base.mask
    return -1


cdef inline bint is_inside(NameIndex* index, const uint8_t* path, uint32_t length) noexcept nogil:
    """Whether an index has the path, or a folder that it is in."""
    cdef int64_t size
    cdef NameSlot* slot
    for size in range(<int64_t>length, -1, -1):
        if size in (0, length) or path[size] == c"/":
            slot = index_find(index, path, <uint32_t>size)
            if slot != NULL and slot.value == 0:
                return True
    return False
