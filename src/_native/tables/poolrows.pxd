# The table of `pools.place_pools`, and the relocations that go with its rows.

from libc.stdint cimport int32_t, uint32_t, uint64_t

from sectionkinds cimport IS_ENTRIES, IS_LITERALS
from tables.kinds cimport is_merc
from tables.rows cimport SectionRow

cdef enum PoolFlag:
    POOL_NEW = 1                # the kernel had no pool before
    POOL_LOST = 2               # the piece comes from a copy of the function that lost
    POOL_ALONE = 4              # the copy that stays has no pool

# The place of a piece of a function's pool in one kernel.
cdef packed struct PoolRow:
    int32_t section             # input section with the bytes
    int32_t kernel              # entity
    uint64_t offset             # in .nv.constant2 of the kernel
    uint64_t end                # size of .nv.constant2 of the kernel with this function's pieces
    uint32_t function           # entity; the kernel itself for pieces of its own
    uint32_t align              # new alignment of .nv.constant2 of the kernel
    uint32_t flags              # PoolFlag


cdef inline void find_relocation_lists(int32_t* list_of, const SectionRow* s,
                                       size_t section_count) noexcept nogil:
    """The mercury relocations that the pool of a copy of a function brings, by its symbol."""
    cdef size_t i
    for i in range(section_count):
        if is_merc(s[i].kind, IS_ENTRIES) and is_merc(s[s[i].target].kind, IS_LITERALS):
            list_of[s[s[s[i].target].target].target] = <int32_t>i + 1
