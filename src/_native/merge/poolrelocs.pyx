"""Mercury relocations of pools, which go where `pools.place_pools` placed their bytes.

From sm_100 on, the jump tables in a function's pool have relocations, in `.nv.merc.rela.S` of the
input. A pool that is appended to the pools of kernels takes them along, with offsets that fit the
new place. An example: the pool of a device function F has tables at 0 and 16, and is placed at 32
in the pool of kernel K, whose own relocations are A and B:

    list of K before                        A, B
    constants of F's pool, last first       table at 16: relocations at 24, 16; at 0: 8, 0
    list of K after, with new offsets       A, B, 56, 48, 40, 32

1. `list_constants` lists the constants of all pools, to find those in which relocations lie.
2. `find_relocations_of_pools` finds the mercury relocation section of each pool of the output.
3. `adopt_entries` is called for each PoolRow whose kernel has such a section. It adds copies of the
   pool's relocations, which `list_pool_entries` has put into the right order, to the list of the
   kernel: at the front for pools of its own copies that lost, at the end for other functions.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport qsort

from base.elf64 cimport Rela
from base.memory cimport check_memory
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from base.vector cimport Vec, vec_append, vec_push
from elfnumbers cimport STT_SECTION
from pylink._native.results cimport MergedTables
from pylink._native.tables cimport Emitted, Outs, Table, detach_rows
from sectionkinds cimport IS_LITERALS
from tables.kinds cimport is_plain
from tables.poolrows cimport POOL_LOST, PoolCounter, PoolRow, find_relocation_lists
from tables.rows cimport (
    EmittedNumber, EmittedRow, EntityNumber, OutNumber, OutRow, SectionNumber, SectionRow,
    SymbolRef, SymbolRow, function_symbol,
)
from tables.views cimport MergedView, ObjectsView


# One constant of a pool: a jump table, or bytes that code reads.
ctypedef struct Constant:
    SectionNumber section       # input section: the pool
    uint64_t value              # offset in the pool
    uint64_t size               # bytes


# A mercury relocation of a pool, and the constant in which its field lies.
ctypedef struct PoolEntry:
    const Rela* rela
    size_t constant             # 1 + index of a Constant; 0: not looked up; -1: after the pool


# State of `adopt_relocations`: kernels adopt the relocations of the pools that are added to theirs.
ctypedef struct Adoption:
    ObjectsView objects
    MergedView merged
    OutRow* outs
    Vec emitted                         # EmittedRow: those of the merge, then those added here
    OutNumber* relocations_of           # by entity: OutRow of its pool's mercury relocations, or -1
    EmittedNumber* tail_of              # by entity: last EmittedRow in that OutRow's list, or -1
    # By input symbol: 1 + the input section with the mercury relocations of its pool, if it is a
    # function that has them; else 0.
    SectionNumber* input_relocations_of
    Vec constants                       # Constant: of all pools, by section and value
    int32_t* constants_end              # by input section: index after its last Constant, or 0
    Vec entries                         # PoolEntry: of one pool in the order of appending
    SectionNumber listed_relocations    # 1 + input section with the relocations in `entries`, or 0


def adopt_relocations(MergedTables merged not None):
    """Give kernels the Mercury relocations of pools appended to theirs: fills `outs`, `emitted`."""
    merged.fill()
    cdef Outs outs = <Outs>Table.writable(<PyObject*>merged.outs)
    cdef Adoption adoption
    cdef Scratch scratch
    merged.objects.view(&adoption.objects)
    merged.view(&adoption.merged)
    adoption.outs = <OutRow*>outs.rows
    adoption.listed_relocations = 0
    scratch_init(&scratch)
    try:
        adoption.relocations_of = scratch_nones(&scratch, adoption.merged.entity_count)
        adoption.tail_of = <EmittedNumber*>scratch_zeros(&scratch, adoption.merged.entity_count, 4)
        adoption.input_relocations_of = <SectionNumber*>scratch_zeros(
            &scratch, adoption.objects.symbol_count + 1, 4)
        adoption.constants_end = <int32_t*>scratch_zeros(&scratch, adoption.objects.section_count,
                                                         4)
        scratch_vector(&scratch, &adoption.constants, sizeof(Constant))
        scratch_vector(&scratch, &adoption.entries, sizeof(PoolEntry))
        scratch_vector(&scratch, &adoption.emitted, sizeof(EmittedRow))
        if not scratch.failed:
            with nogil:
                scratch.failed = not (vec_append(&adoption.emitted, adoption.merged.emitted,
                                                 adoption.merged.emitted_count)
                                      and list_constants(&adoption)
                                      and adopt_all(&adoption, outs.count))
        check_memory(not scratch.failed)
        merged.outs = outs
        merged.emitted = Emitted(detach_rows(&adoption.emitted))
    finally:
        scratch_free(&scratch)


cdef bint adopt_all(Adoption* adoption, size_t out_count) noexcept nogil:
    """Append the entries of all pools to the lists of their kernels; False without memory."""
    cdef const PoolRow* pools = adoption.merged.pools
    cdef const PoolRow* pool
    cdef size_t pool_count = adoption.merged.pool_count, i
    cdef PoolCounter first = 0, end
    cdef bint is_own
    find_relocations_of_pools(adoption, out_count)
    while first < pool_count:
        end = first
        while end < pool_count and pools[end].function == pools[first].function:
            end += 1
        # Entries of the kernel's own pools go to the front of its list, all others to its end. In
        # both cases those of the function's last piece come first.
        is_own = pools[first].kernel == <EntityNumber>pools[first].function
        for i in range(end - first):
            pool = &pools[first + i] if is_own else &pools[end - 1 - i]
            if adoption.relocations_of[pool.kernel] >= 0 and not adopt_entries(adoption, pool):
                return False
        first = end
    return True


cdef void find_relocations_of_pools(Adoption* adoption, size_t out_count) noexcept nogil:
    """Find the mercury relocations of each pool of the output, and the last entry of their list."""
    cdef const OutRow* out
    cdef size_t i
    cdef OutNumber relocations
    for i in range(out_count):
        out = &adoption.outs[i]
        if is_plain(out.kind, IS_LITERALS) and out.rela >= 0:
            relocations = adoption.outs[out.rela].merc
            adoption.relocations_of[out.entity] = relocations
            adoption.tail_of[out.entity] = (last_entry(&adoption.emitted,
                                                       adoption.outs[relocations].head)
                                            if relocations >= 0 else -1)


cdef int compare_constants(const void* a, const void* b) noexcept nogil:
    """Order Constants by section and value, for qsort."""
    cdef const Constant* constant = <const Constant*>a
    cdef const Constant* other = <const Constant*>b
    if constant.section != other.section:
        return -1 if constant.section < other.section else 1
    return -1 if constant.value < other.value else constant.value > other.value


cdef int compare_entries(const void* a, const void* b) noexcept nogil:
    """Order entries by constant, the last one first; in each, the last relocation first."""
    cdef const PoolEntry* entry = <const PoolEntry*>a
    cdef const PoolEntry* other = <const PoolEntry*>b
    if entry.constant != other.constant:
        return -1 if entry.constant > other.constant else 1
    return -1 if entry.rela > other.rela else entry.rela < other.rela


cdef bint list_constants(Adoption* adoption) noexcept nogil:
    """List the constants of each pool, and find its mercury relocations; False without memory."""
    cdef const SectionRow* sections = adoption.objects.sections
    cdef const SymbolRow* symbol
    cdef Constant* constant
    cdef size_t i
    find_relocation_lists(adoption.input_relocations_of, sections, adoption.objects.section_count)
    for i in range(adoption.objects.symbol_count):
        symbol = &adoption.objects.symbols[i]
        if (symbol.section >= 0 and is_plain(sections[symbol.section].kind, IS_LITERALS)
                and (symbol.info & 15) != STT_SECTION):
            constant = <Constant*>vec_push(&adoption.constants)
            if constant == NULL:
                return False
            constant.section = symbol.section
            constant.value = symbol.value
            constant.size = symbol.size
    qsort(adoption.constants.data, adoption.constants.count, sizeof(Constant), compare_constants)
    constant = <Constant*>adoption.constants.data
    for i in range(adoption.constants.count):
        adoption.constants_end[constant[i].section] = <int32_t>(i + 1)
    return True


cdef inline EmittedNumber last_entry(const Vec* table, EmittedNumber entry) noexcept nogil:
    """Return the last EmittedRow of the list that begins with `entry`; -1 for an empty list."""
    while entry >= 0 and (<const EmittedRow*>table.data)[entry].next >= 0:
        entry = (<const EmittedRow*>table.data)[entry].next
    return entry


cdef bint adopt_entries(Adoption* adoption, const PoolRow* pool) noexcept nogil:
    """Add the entries of one pool to the list of its kernel; False without memory."""
    cdef OutRow* output = &adoption.outs[adoption.relocations_of[pool.kernel]]
    cdef const SectionRow* sections = adoption.objects.sections
    cdef SymbolRef first = adoption.objects.files[sections[pool.section].file].first_symbol
    cdef SectionNumber code = sections[pool.section].target
    cdef SectionNumber input_relocations = (        # 1 + the input section with the entries, or 0
        adoption.input_relocations_of[function_symbol(&sections[code])])
    cdef EmittedNumber own_tail = -1
    cdef bint is_own = pool.kernel == <EntityNumber>pool.function
    cdef EmittedNumber* tail = &own_tail if is_own else &adoption.tail_of[pool.kernel]
    cdef const PoolEntry* entries
    cdef EmittedRow* emitted
    cdef EmittedNumber added
    cdef size_t i
    if not input_relocations or (is_own and not pool.flags & POOL_LOST):
        return True     # no relocations, or those of a linked copy, which are listed already
    if input_relocations != adoption.listed_relocations:
        if not list_pool_entries(adoption, pool, input_relocations,
                                 is_own or pool.flags & POOL_LOST):
            return False
        adoption.listed_relocations = input_relocations
    entries = <const PoolEntry*>adoption.entries.data
    for i in range(adoption.entries.count):
        emitted = <EmittedRow*>vec_push(&adoption.emitted)
        if emitted == NULL:
            return False
        added = <EmittedNumber>(adoption.emitted.count - 1)
        emitted.offset = entries[i].rela.r_offset + pool.offset
        emitted.addend = entries[i].rela.r_addend
        emitted.type = entries[i].rela.r_type
        emitted.entity = adoption.merged.symbol_entity[first + entries[i].rela.r_sym]
        emitted.section = -1
        if tail[0] >= 0:
            emitted.next = (<EmittedRow*>adoption.emitted.data)[tail[0]].next
            (<EmittedRow*>adoption.emitted.data)[tail[0]].next = added
        else:
            emitted.next = output.head
            output.head = added
        tail[0] = added
        output.count += 1
    return True


cdef bint list_pool_entries(Adoption* adoption, const PoolRow* pool,
                            SectionNumber input_relocations, bint is_whole) noexcept nogil:
    """Fill `entries` with the relocations of one pool; False without memory.

    With `is_whole`, all relocations of the pool are taken; otherwise only those in constants. An
    entry may lie after the end of the pool, since `pools.cut_pools` has cut the pool. Such an entry
    is dropped, except without `is_whole` if its place is before `pool.end`, where pools of lost
    copies stand: then it comes first.

    `input_relocations` is 1 + the input section with the entries.
    """
    cdef const SectionRow* sections = adoption.objects.sections
    cdef const Rela* relas = <const Rela*>(adoption.objects.arena
                                           + sections[input_relocations - 1].offset)
    cdef uint64_t rela_count = sections[input_relocations - 1].size // sizeof(Rela), i
    cdef size_t constant = 0
    cdef PoolEntry* entry
    adoption.entries.count = 0
    for i in range(rela_count):
        if relas[i].r_offset >= sections[pool.section].size:
            if is_whole or relas[i].r_offset >= pool.end - pool.offset:
                continue
            constant = <size_t>-1
        elif not is_whole:
            constant = constant_at(adoption, pool.section, relas[i].r_offset)
            if not constant:
                continue
        entry = <PoolEntry*>vec_push(&adoption.entries)
        if entry == NULL:
            return False
        entry.rela = relas + i
        entry.constant = constant
    qsort(adoption.entries.data, adoption.entries.count, sizeof(PoolEntry), compare_entries)
    return True


cdef size_t constant_at(const Adoption* adoption, SectionNumber section,
                        uint64_t offset) noexcept nogil:
    """Return 1 + the index of the Constant that covers an offset of a pool, or 0."""
    cdef const Constant* constants = <const Constant*>adoption.constants.data
    cdef size_t low = 0, high = adoption.constants_end[section], middle
    while low < high:
        middle = (low + high) // 2
        if constants[middle].section < section or constants[middle].value <= offset:
            low = middle + 1
        else:
            high = middle
    if (not low or constants[low - 1].section != section
            or offset - constants[low - 1].value >= constants[low - 1].size):
        return 0
    return low
