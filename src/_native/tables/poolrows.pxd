# Rows of the table that `pools.place_pools` fills, and the relocations that go with their bytes. A
# pool has the constants and jump tables of a function; a piece of it comes from one input section.

from libc.stdint cimport int32_t, uint32_t, uint64_t

from sectionkinds cimport IS_ENTRIES, IS_LITERALS
from tables.kinds cimport is_merc
from tables.rows cimport EntityNumber, EntityRef, SectionNumber, SectionRow, function_symbol

cdef enum PoolFlag:
    POOL_NEW = 1                # the kernel had no pool before
    POOL_LOST = 2               # the piece belongs to a definition of `function` that lost
    POOL_ALONE = 4              # with POOL_LOST: the definition of `function` that won has no pool

# The number of a PoolRow, from 0; -1 for none.
ctypedef int32_t PoolNumber
ctypedef size_t PoolCounter

# A piece of a function's pool (its constants in bank 2), and its place in an entity's pool.
cdef packed struct PoolRow:
    SectionNumber section       # input section with the bytes
    EntityNumber kernel         # entity whose pool has the piece: a kernel, or `function` itself
    uint64_t offset             # of the piece in .nv.constant2 of the kernel
    uint64_t end                # bytes of .nv.constant2 with it; of a callee: with all its pieces
    EntityRef function          # entity; the kernel itself for pieces of its own
    uint32_t align              # alignment of .nv.constant2 of the kernel from this piece on
    uint32_t flags              # PoolFlag


cdef inline void find_relocation_lists(SectionNumber* list_of, const SectionRow* sections,
                                       size_t section_count) noexcept nogil:
    """Find the mercury relocations of each function's pool.

    `list_of` has an element for each SymbolRow. That of a function whose pool has such relocations
    is set to 1 + the number of the input section that contains them. The `target` of a relocation
    section is the pool that it patches, the `target` of a pool is the code of its function.
    """
    cdef const SectionRow* pool
    cdef size_t i
    for i in range(section_count):
        if is_merc(sections[i].kind, IS_ENTRIES):
            pool = &sections[sections[i].target]
            if is_merc(pool.kind, IS_LITERALS):
                list_of[function_symbol(&sections[pool.target])] = <SectionNumber>i + 1
