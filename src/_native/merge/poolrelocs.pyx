"""Mercury relocations of pools, which go where `pools.place_pools` placed their bytes."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.stdlib cimport qsort

from base.elf64 cimport STT_SECTION, Rela
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from base.vector cimport Vec, vec_append, vec_push
from pylink._native.tables cimport Emitted, MergedTables, Outs, Table, detach_rows
from sectionkinds cimport IS_LITERALS
from tables.kinds cimport is_plain
from tables.poolrows cimport POOL_LOST, PoolRow, find_relocation_lists
from tables.rows cimport EmittedRow, OutRow, SectionRow, SymbolRow
from tables.views cimport MergedView, ObjectsView


# One constant of a pool: a table, or bytes that code reads.
ctypedef struct Constant:
    int32_t section
    uint64_t value
    uint64_t size


# A mercury relocation of a pool, and the constant it lies in.
ctypedef struct PoolEntry:
    const Rela* r
    size_t constant


ctypedef struct Adoption:
    ObjectsView objects
    MergedView merged
    OutRow* outs
    Vec emitted                 # EmittedRow: those of before, then those of pools
    int32_t* reloc_of           # by kernel: OutRow of the list, or -1
    int32_t* tail_of            # by kernel: the last entry there, or -1
    # By symbol of a function: 1 + the section of its pool's mercury relocations, or 0.
    int32_t* list_of
    Vec constants               # Constant, of all pools, by section and place
    int32_t* end_of             # by section with a pool: the end of its constants
    Vec entries                 # PoolEntry: relocations in the order that kernels take over
    int32_t listed              # a section, numbered from 1


def adopt_relocations(MergedTables merged not None):
    merged.fill()
    cdef Outs outs = <Outs>Table.writable(<PyObject*>merged.outs)
    cdef Adoption a
    cdef Scratch scratch
    merged.objects.view(&a.objects)
    merged.view(&a.merged)
    a.outs = <OutRow*>outs.rows
    a.listed = 0
    scratch_init(&scratch)
    try:
        a.reloc_of = scratch_nones(&scratch, a.merged.entity_count)
        a.tail_of = <int32_t*>scratch_zeros(&scratch, a.merged.entity_count, 4)
        a.list_of = <int32_t*>scratch_zeros(&scratch, a.objects.symbol_count + 1, 4)
        a.end_of = <int32_t*>scratch_zeros(&scratch, a.objects.section_count, 4)
        scratch_vector(&scratch, &a.constants, sizeof(Constant))
        scratch_vector(&scratch, &a.entries, sizeof(PoolEntry))
        scratch_vector(&scratch, &a.emitted, sizeof(EmittedRow))
        if not scratch.failed:
            with nogil:
                scratch.failed = not (
                    vec_append(&a.emitted, a.merged.emitted, a.merged.emitted_count)
                    and find_pools(&a) and adopt_all(&a, outs.count))
        if scratch.failed:
            raise MemoryError
        merged.outs = outs
        merged.emitted = Emitted(detach_rows(&a.emitted))
    finally:
        scratch_free(&scratch)


cdef bint adopt_all(Adoption* a, size_t out_count) noexcept nogil:
    """Take over the entries for all pools; False without memory."""
    cdef const PoolRow* row = a.merged.pools
    cdef const PoolRow* pool
    cdef size_t n = a.merged.pool_count, first = 0, last, i
    cdef bint own
    find_reloc_lists(a, out_count)
    while first < n:
        last = first
        while last < n and row[last].function == row[first].function:
            last += 1
        # Each of a kernel's own goes to the head of the list, the others to its end.
        own = row[first].kernel == <int32_t>row[first].function
        for i in range(last - first):
            pool = &row[first + i] if own else &row[last - 1 - i]
            if a.reloc_of[pool.kernel] >= 0 and not adopt_entries(a, pool):
                return False
        first = last
    return True


cdef void find_reloc_lists(Adoption* a, size_t out_count) noexcept nogil:
    """Find the list of mercury relocations of each pool of the output."""
    cdef const OutRow* out
    cdef size_t i
    cdef int32_t reloc
    for i in range(out_count):
        out = &a.outs[i]
        if is_plain(out.kind, IS_LITERALS) and out.rela >= 0:
            reloc = a.outs[out.rela].merc
            a.reloc_of[out.entity] = reloc
            a.tail_of[out.entity] = last_entry(&a.emitted, a.outs[reloc].head) if reloc >= 0 else -1


cdef int compare_constants(const void* a, const void* b) noexcept nogil:
    cdef const Constant* x = <const Constant*>a
    cdef const Constant* y = <const Constant*>b
    if x.section != y.section:
        return -1 if x.section < y.section else 1
    return -1 if x.value < y.value else x.value > y.value


cdef int compare_entries(const void* a, const void* b) noexcept nogil:
    """The last constant first, and in each the last relocation."""
    cdef const PoolEntry* x = <const PoolEntry*>a
    cdef const PoolEntry* y = <const PoolEntry*>b
    if x.constant != y.constant:
        return -1 if x.constant > y.constant else 1
    return -1 if x.r > y.r else x.r < y.r


cdef bint find_pools(Adoption* a) noexcept nogil:
    """The constants of each pool, and the mercury relocations that it brings."""
    cdef const SectionRow* s = a.objects.sections
    cdef const SymbolRow* symbol
    cdef Constant* constant
    cdef size_t i
    find_relocation_lists(a.list_of, s, a.objects.section_count)
    for i in range(a.objects.symbol_count):
        symbol = &a.objects.symbols[i]
        if (symbol.section >= 0 and is_plain(s[symbol.section].kind, IS_LITERALS)
                and (symbol.info & 15) != STT_SECTION):
            constant = <Constant*>vec_push(&a.constants)
            if constant == NULL:
                return False
            constant.section = symbol.section
            constant.value = symbol.value
            constant.size = symbol.size
    qsort(a.constants.data, a.constants.count, sizeof(Constant), compare_constants)
    constant = <Constant*>a.constants.data
    for i in range(a.constants.count):
        a.end_of[constant[i].section] = <int32_t>(i + 1)
    return True


cdef inline int32_t last_entry(const Vec* table, int32_t entry) noexcept nogil:
    """The end of the list that begins with EmittedRow `entry`; -1 for an empty list."""
    while entry >= 0 and (<const EmittedRow*>table.data)[entry].next >= 0:
        entry = (<const EmittedRow*>table.data)[entry].next
    return entry


cdef bint adopt_entries(Adoption* a, const PoolRow* pool) noexcept nogil:
    """Take over the entries for one pool into the list of its kernel; False without memory."""
    cdef OutRow* reloc = &a.outs[a.reloc_of[pool.kernel]]
    cdef const SectionRow* s = a.objects.sections
    cdef uint32_t first = a.objects.files[s[pool.section].file].first_symbol
    cdef int32_t code = s[pool.section].target
    cdef int32_t relocations = a.list_of[s[code].target]    # the target of code is its function
    cdef int32_t head = -1
    cdef bint own = pool.kernel == <int32_t>pool.function
    cdef int32_t* tail_entry = &head if own else &a.tail_of[pool.kernel]
    cdef const PoolEntry* entry
    cdef EmittedRow* emitted
    cdef size_t i
    if not relocations or (own and not pool.flags & POOL_LOST):
        return True             # relocations of a pool that does not move do not move
    if relocations != a.listed:
        if not list_entries(a, pool, relocations, own or pool.flags & POOL_LOST):
            return False
        a.listed = relocations
    entry = <const PoolEntry*>a.entries.data
    for i in range(a.entries.count):
        emitted = <EmittedRow*>vec_push(&a.emitted)
        if emitted == NULL:
            return False
        emitted.offset = entry[i].r.r_offset + pool.offset
        emitted.addend = entry[i].r.r_addend
        emitted.type = entry[i].r.r_type
        emitted.entity = a.merged.symbol_entity[first + entry[i].r.r_sym]
        emitted.section = -1
        if tail_entry[0] >= 0:
            emitted.next = (<EmittedRow*>a.emitted.data)[tail_entry[0]].next
            (<EmittedRow*>a.emitted.data)[tail_entry[0]].next = <int32_t>(a.emitted.count - 1)
        else:
            emitted.next = reloc.head
            reloc.head = <int32_t>(a.emitted.count - 1)
        tail_entry[0] = <int32_t>(a.emitted.count - 1)
        reloc.count += 1
    return True


cdef bint list_entries(Adoption* a, const PoolRow* pool, int32_t relocations,
                       bint is_whole) noexcept nogil:
    """The relocations of one pool as `entries`; `is_whole` pools are not taken apart by constant.

    Those of bytes that no link takes over come first, if copies of this link stand in their place.
    """
    cdef const SectionRow* s = a.objects.sections
    cdef const Rela* r = <const Rela*>(a.objects.arena + s[relocations - 1].offset)
    cdef uint64_t n = s[relocations - 1].size // sizeof(Rela), i
    cdef size_t constant = 0
    cdef PoolEntry* entry
    a.entries.count = 0
    for i in range(n):
        if r[i].r_offset >= s[pool.section].size:
            if is_whole or r[i].r_offset >= pool.end - pool.offset:
                continue
            constant = <size_t>-1
        elif not is_whole:
            constant = constant_at(a, pool.section, r[i].r_offset)
            if not constant:
                continue
        entry = <PoolEntry*>vec_push(&a.entries)
        if entry == NULL:
            return False
        entry.r = r + i
        entry.constant = constant
    qsort(a.entries.data, a.entries.count, sizeof(PoolEntry), compare_entries)
    return True


cdef size_t constant_at(const Adoption* a, int32_t section, uint64_t offset) noexcept nogil:
    """1 + the number of the constant that holds an offset of a pool, or 0."""
    cdef const Constant* c = <const Constant*>a.constants.data
    cdef size_t low = 0, high = a.end_of[section], middle
    while low < high:
        middle = (low + high) // 2
        if c[middle].section < section or c[middle].value <= offset:
            low = middle + 1
        else:
            high = middle
    if not low or c[low - 1].section != section or offset - c[low - 1].value >= c[low - 1].size:
        return 0
    return low
