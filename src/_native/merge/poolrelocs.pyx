"""Mercury relocations of pools, which go where `pools.place_pools` placed their bytes."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort

from sectionkinds cimport IS_LITERALS
from base.elf64 cimport STT_SECTION, Rela
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from tables.kinds cimport is_plain
from tables.poolrows cimport POOL_LOST, PoolRow, find_lists
from pylink._native.tables cimport Emitted, MergedTables, ObjectTables, Outs, Table, take_rows
from tables.rows cimport EmittedRow, FileRow, OutRow, SectionRow, SymbolRow
from base.vector cimport Vec, vec_append, vec_push


# One constant of a pool: a table, or bytes that code reads.
ctypedef struct Constant:
    int32_t section
    uint64_t value
    uint64_t size


# A mercury relocation of a pool, and the constant it lies in.
ctypedef struct Entry:
    const Rela* r
    size_t constant


# What `adopt_relocations` reads of the inputs.
ctypedef struct Inputs:
    const uint8_t* arena
    const FileRow* files
    const SectionRow* sections
    const SymbolRow* symbols
    const int32_t* entity       # by symbol
    # By symbol of a function: its pool's mercury relocations, a section; from 1, 0 is none.
    int32_t* list_of
    Vec constants               # of all pools, by section and place
    int32_t* end_of             # by section with a pool: the end of its constants
    Vec entries                 # the relocations `listed` as kernels take them over
    int32_t listed              # a section, numbered from 1


def adopt_relocations(MergedTables merged not None):
    """Family C: the mercury relocations of pools go with their bytes: in `outs` and `emitted`.

    A kernel's own entries come first, then function by function those of each constant in its
    pool, the constant of the highest place first. Those of a copy that lost stand before those of
    the copy that stays, the last copy's first. Each run has the reverse order of the input.
    """
    merged.fill()
    cdef ObjectTables objects = merged.objects
    cdef size_t n = merged.pools.count, i
    cdef size_t out_count = merged.outs.count
    cdef size_t section_count = objects.sections.count
    cdef size_t symbol_count = objects.symbols.count
    cdef const PoolRow* row = merged.pools.rows
    cdef Outs outs = <Outs>Table.opened(<PyObject*>merged.outs)
    cdef OutRow* out = <OutRow*>outs.rows
    cdef size_t entity_count = merged.entities.count
    cdef int32_t* reloc_of              # by kernel: OutRow of the list
    cdef int32_t* tail_of               # by kernel: last entry there
    cdef const EmittedRow* emitted = merged.emitted.rows
    cdef size_t emitted_count = merged.emitted.count
    cdef Scratch scratch
    cdef Inputs inputs
    cdef Vec table
    cdef const PoolRow* pool
    cdef size_t first = 0, last
    cdef int32_t reloc
    cdef bint own
    inputs.arena = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    inputs.files = objects.files.rows
    inputs.sections = objects.sections.rows
    inputs.symbols = objects.symbols.rows
    inputs.entity = merged.symbol_entity.rows
    inputs.listed = 0
    scratch_init(&scratch)
    try:
        reloc_of = scratch_nones(&scratch, entity_count)
        tail_of = <int32_t*>scratch_zeros(&scratch, entity_count, 4)
        inputs.list_of = <int32_t*>scratch_zeros(&scratch, symbol_count + 1, 4)
        inputs.end_of = <int32_t*>scratch_zeros(&scratch, section_count, 4)
        scratch_vector(&scratch, &inputs.constants, sizeof(Constant))
        scratch_vector(&scratch, &inputs.entries, sizeof(Entry))
        scratch_vector(&scratch, &table, sizeof(EmittedRow))
        with nogil:
            scratch.failed = scratch.failed or not (
                vec_append(&table, emitted, emitted_count)
                and find_pools(&inputs, section_count, symbol_count))
            for i in range(0 if scratch.failed else out_count):
                if is_plain(out[i].kind, IS_LITERALS) and out[i].rela >= 0:
                    reloc = out[out[i].rela].merc
                    reloc_of[out[i].entity] = reloc
                    tail_of[out[i].entity] = last_entry(&table, out[reloc].head) \
                        if reloc >= 0 else -1
            while not scratch.failed and first < n:
                last = first
                while last < n and row[last].function == row[first].function:
                    last += 1
                for i in range(last - first):
                    # Each of a kernel's own goes to the head of the list, the others to its end.
                    own = row[first].kernel == <int32_t>row[first].function
                    pool = &row[first + i] if own else &row[last - 1 - i]
                    if not scratch.failed and reloc_of[pool.kernel] >= 0:
                        scratch.failed = not adopt(
                            &table, &out[reloc_of[pool.kernel]], &tail_of[pool.kernel], &inputs,
                            pool)
                first = last
        if scratch.failed:
            raise MemoryError
        merged.outs = outs
        merged.emitted = Emitted(take_rows(&table))
    finally:
        scratch_free(&scratch)


cdef int by_place(const void* a, const void* b) noexcept nogil:
    cdef const Constant* x = <const Constant*>a
    cdef const Constant* y = <const Constant*>b
    if x.section != y.section:
        return -1 if x.section < y.section else 1
    return -1 if x.value < y.value else x.value > y.value


cdef int by_turn(const void* a, const void* b) noexcept nogil:
    """The last constant first, and in each the last relocation."""
    cdef const Entry* x = <const Entry*>a
    cdef const Entry* y = <const Entry*>b
    if x.constant != y.constant:
        return -1 if x.constant > y.constant else 1
    return -1 if x.r > y.r else x.r < y.r


cdef bint find_pools(Inputs* inputs, size_t section_count, size_t symbol_count) noexcept nogil:
    """The constants of each pool, and the mercury relocations that it brings."""
    cdef const SectionRow* s = inputs.sections
    cdef const SymbolRow* symbol
    cdef Constant* constant
    cdef size_t i
    find_lists(inputs.list_of, s, section_count)
    for i in range(symbol_count):
        symbol = &inputs.symbols[i]
        if (symbol.section >= 0 and is_plain(s[symbol.section].kind, IS_LITERALS)
                and (symbol.info & 15) != STT_SECTION):
            constant = <Constant*>vec_push(&inputs.constants)
            if constant == NULL:
                return False
            constant.section = symbol.section
            constant.value = symbol.value
            constant.size = symbol.size
    qsort(inputs.constants.data, inputs.constants.count, sizeof(Constant), by_place)
    constant = <Constant*>inputs.constants.data
    for i in range(inputs.constants.count):
        inputs.end_of[constant[i].section] = <int32_t>(i + 1)
    return True


cdef inline int32_t last_entry(const Vec* table, int32_t at) noexcept nogil:
    """The end of the list that begins with EmittedRow `at`; -1 for an empty list."""
    while at >= 0 and (<const EmittedRow*>table.data)[at].next >= 0:
        at = (<const EmittedRow*>table.data)[at].next
    return at


cdef bint adopt(Vec* table, OutRow* reloc, int32_t* tail, Inputs* inputs,
                const PoolRow* pool) noexcept nogil:
    """Take over the entries for one pool into the list of its kernel; `tail` is the list's end."""
    cdef const SectionRow* s = inputs.sections
    cdef uint32_t first = inputs.files[s[pool.section].file].first_symbol
    cdef int32_t relocations = inputs.list_of[s[s[pool.section].target].target]
    cdef int32_t head = -1
    cdef bint own = pool.kernel == <int32_t>pool.function
    cdef int32_t* at = &head if own else tail
    cdef const Entry* entry
    cdef EmittedRow* emitted
    cdef size_t i
    if not relocations or (own and not pool.flags & POOL_LOST):
        return True             # those of a pool that stays where it was do, too
    if relocations != inputs.listed:
        if not list_entries(inputs, pool, relocations, own or pool.flags & POOL_LOST):
            return False
        inputs.listed = relocations
    entry = <const Entry*>inputs.entries.data
    for i in range(inputs.entries.count):
        emitted = <EmittedRow*>vec_push(table)
        if emitted == NULL:
            return False
        emitted.offset = entry[i].r.r_offset + pool.offset
        emitted.addend = entry[i].r.r_addend
        emitted.type = entry[i].r.r_type
        emitted.entity = inputs.entity[first + entry[i].r.r_sym]
        emitted.section = -1
        if at[0] >= 0:
            emitted.next = (<EmittedRow*>table.data)[at[0]].next
            (<EmittedRow*>table.data)[at[0]].next = <int32_t>(table.count - 1)
        else:
            emitted.next = reloc.head
            reloc.head = <int32_t>(table.count - 1)
        at[0] = <int32_t>(table.count - 1)
        reloc.count += 1
    return True


cdef bint list_entries(Inputs* inputs, const PoolRow* pool, int32_t relocations,
                       bint whole) noexcept nogil:
    """The relocations of one pool as `entries`; `whole` pools are not taken apart by constant.

    Those of bytes that no link takes over come first, if copies of this link stand in their place.
    """
    cdef const SectionRow* s = inputs.sections
    cdef const Rela* r = <const Rela*>(inputs.arena + s[relocations - 1].offset)
    cdef uint64_t n = s[relocations - 1].size // sizeof(Rela), i
    cdef size_t constant = 0
    cdef Entry* entry
    inputs.entries.count = 0
    for i in range(n):
        if r[i].r_offset >= s[pool.section].size:
            if whole or r[i].r_offset >= pool.end - pool.offset:
                continue
            constant = <size_t>-1
        elif not whole:
            constant = constant_at(inputs, pool.section, r[i].r_offset)
            if not constant:
                continue
        entry = <Entry*>vec_push(&inputs.entries)
        if entry == NULL:
            return False
        entry.r = r + i
        entry.constant = constant
    qsort(inputs.entries.data, inputs.entries.count, sizeof(Entry), by_turn)
    return True


cdef size_t constant_at(const Inputs* inputs, int32_t section, uint64_t place) noexcept nogil:
    """The constant that holds a place of a pool, numbered from 1; 0 is none."""
    cdef const Constant* c = <const Constant*>inputs.constants.data
    cdef size_t low = 0, high = inputs.end_of[section], middle
    while low < high:
        middle = (low + high) // 2
        if c[middle].section < section or c[middle].value <= place:
            low = middle + 1
        else:
            high = middle
    if not low or c[low - 1].section != section or place - c[low - 1].value >= c[low - 1].size:
        return 0
    return low
