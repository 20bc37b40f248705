# The files of an index of build trees, and a hash table that finds a file by its root and path. A
# root is the top directory of a build tree.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from base.nameindex cimport NameIndex, NameSlot, hash_name, index_find
from fleet.stamps cimport Stamp

# The files in the first block of an index's state file, as they lie in it, and their hash table.
# They do not change: a file that changed later has an Indexed, and its row here is M_REPLACED.
ctypedef struct Base:
    const int64_t* end          # the path of row `i` is `text` from end[i] to end[i + 1]
    const Stamp* stamp          # by row: the file's stamp
    const int32_t* root         # by row: number of its root
    const uint8_t* text         # all paths, one after the other
    const int32_t* slots        # hash table: number of a row, or -1
    size_t mask                 # number of slots, a power of two, minus 1
    size_t count                # number of rows
    uint8_t* marks              # by row: bits of Mark

cdef enum Mark:
    M_SEEN = 1                  # this run found the file
    M_REPLACED = 2              # an Indexed has newer data

# A file that was added, changed or removed after the rows of the Base were written.
ctypedef struct Indexed:
    const uint8_t* path         # path below the root
    uint32_t size               # bytes of the path
    uint32_t root               # number of the root
    Stamp stamp                 # the file's version: its size, times and inode
    bint in_index               # the index has the file: it existed in the last run
    bint seen                   # this run found it


cdef inline uint64_t hash_path(uint32_t root, const uint8_t* path, size_t size) noexcept nogil:
    """Return the hash of a root and a path; the factor makes it differ by root for one path."""
    return hash_name(path, size) ^ root * 0x9e3779b97f4a7c15ULL


cdef inline int64_t find_row(const Base* base, uint32_t root, const uint8_t* path,
                             uint32_t size) noexcept nogil:
    """Return the number of a file's row in the base, -1 if it has none."""
    cdef size_t slot, slots_left = base.mask + 1
    cdef int32_t row
    if base.count == 0:
        return -1
    slot = hash_path(root, path, size) & base.mask
    while slots_left:           # a damaged table may have no empty slot
        slots_left -= 1
        row = base.slots[slot]
        if not 0 <= row < <int64_t>base.count:
            return -1
        if (base.root[row] == <int32_t>root and base.end[row + 1] - base.end[row] == size
                and memcmp(base.text + base.end[row], path, size) == 0):
            return row
        slot = (slot + 1) & base.mask
    return -1


cdef inline bint is_inside(NameIndex* index, const uint8_t* path, uint32_t length) noexcept nogil:
    """Return whether `path` or a directory above it ("" is the root) is a name in `index`.

    The caller has set the value of each name there to 0.
    """
    cdef int64_t size
    cdef NameSlot* slot
    for size in range(<int64_t>length, -1, -1):
        if size in (0, length) or path[size] == c"/":
            slot = index_find(index, path, <uint32_t>size)
            if slot != NULL and slot.value == 0:
                return True
    return False
