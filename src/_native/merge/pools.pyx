"""Placement of literal pools and jump tables: each function's bytes go to its kernels.

Code reads pooled constants from bank 2 at an offset that is written into the instruction. The bank
belongs to the kernel that runs: `.nv.constant2.K`. A device function F has a pool of its own,
`.nv.constant2.F`, which is not a section of an executable. Its bytes are appended to the pool of
every kernel that reaches F, at one offset for all of them, so that F's code works under each. An
example with pools of 8 bytes in K1, 16 in K2, and 8 in each of two functions:

    F, reached by K1 and K2    at 16 in both, after the longer pool: K1 gets 8 zeros before it
    G, reached by K1           placed next, at 24 in K1

F is placed first here since its section comes last in the inputs.

1. `find_pieces` finds the pool of each function's copy that stays, and chains the pools of copies
   that came later and lost: nvlink drops their code but keeps these bytes.
2. `place_own` puts the pools of lost copies after the kernel's own, each at its alignment; with -r
   for any function, whose section then stays separate. A device function whose own pool has no
   constants, or that has only pools of lost copies, keeps a section of its own, too.
3. `place_shared` is called for each device function, the last section first. It finds the kernels
   that reach the function, and the longest of their pools. The function's pools, the copy that
   stays first, go after that size, rounded up to the largest alignment. A kernel without a pool
   gets one.

`cut_pools` comes before all this: it ends the pool of a copy that stays at its last constant, since
what an earlier stage of linking put after it goes (docs/format-notes/literal-pools.md).

A row of the result says where a piece stands in the pool of one kernel; `layout/poolmerge.pyx`
takes over if such a pool is larger than a bank.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from base.elf64 cimport STT_SECTION
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from base.vector cimport Vec, vec_push, vec_to_bytes
from pylink._native.tables cimport LiteralPools, MergedTables, Table
from rownumbers cimport EF_KERNEL, EF_LIVE, RESOLUTION_LOST, RESOLUTION_WON
from tables.graph cimport CallGraph, CallRows, calls_of, graph_init, is_idle
from tables.kinds cimport is_pool
from tables.poolrows cimport POOL_ALONE, POOL_LOST, POOL_NEW, PoolRow
from tables.rows cimport EntityRow, SectionRow, SymbolRow
from tables.views cimport MergedView, ObjectsView


ctypedef struct PoolPlacement:
    ObjectsView objects
    MergedView merged
    int32_t* piece              # by entity: the section of the copy that stays, -1: none
    int32_t* last               # by entity: the section of the last copy that adds to it, -1: none
    int32_t* alone              # by entity without a piece: that of the first copy that lost, -1
    uint8_t* named              # by section: constants lie there
    bint shared                 # some go to the kernels that reach their functions
    int32_t* next               # by section: the pool of the next copy, 0: none
    uint64_t* size              # by kernel: bytes so far
    uint32_t* align             # by kernel
    CallGraph callers
    uint32_t* stamp             # by node: the last function that it was visited for, and 1
    uint32_t* stack
    Vec rows


def cut_pools(MergedTables merged not None):
    cdef ObjectsView v
    cdef const uint8_t* resolution = merged.section_resolution.rows
    cdef const SymbolRow* symbol
    cdef Table result = merged.objects.sections
    cdef SectionRow* row = NULL
    cdef uint64_t* end                  # by section with a pool: where its constants end
    cdef Scratch scratch
    cdef size_t i
    merged.objects.view(&v)
    if merged.section_resolution.count != v.section_count:
        raise ValueError("one resolution per section")
    if not has_pool(&v):
        return result
    scratch_init(&scratch)
    try:
        end = <uint64_t*>scratch_zeros(&scratch, v.section_count, 8)
        if scratch.failed:
            raise MemoryError
        with nogil:
            for i in range(v.symbol_count):
                symbol = &v.symbols[i]
                if (symbol.section >= 0 and (symbol.info & 15) != STT_SECTION
                        and is_pool_row(&v.sections[symbol.section])):
                    end[symbol.section] = max(end[symbol.section], symbol.value + symbol.size)
        for i in range(v.section_count):
            if end[i] == 0 or end[i] >= v.sections[i].size or resolution[i] != RESOLUTION_WON:
                continue
            if row == NULL:
                result = merged.objects.sections.copy()
                row = <SectionRow*>result.start
            row[i].size = end[i]
        return result
    finally:
        scratch_free(&scratch)


cdef inline bint is_pool_row(const SectionRow* s) noexcept nogil:
    return is_pool(s.kind, s.bank)


cdef bint has_pool(const ObjectsView* v) noexcept:
    """Whether any input section is a pool."""
    cdef size_t i
    for i in range(v.section_count):
        if is_pool_row(&v.sections[i]):
            return True
    return False


def place_pools(MergedTables merged not None):
    merged.fill()
    cdef CallRows calls = calls_of(merged)
    cdef bint copies = False
    cdef Scratch scratch
    cdef PoolPlacement pools
    merged.objects.view(&pools.objects)
    merged.view(&pools.merged)
    if (merged.section_function.count != pools.objects.section_count
            or merged.section_resolution.count != pools.objects.section_count):
        raise ValueError("one function and one resolution per section")
    scratch_init(&scratch)
    try:
        allocate_merge(&pools, &scratch, calls.nodes)
        if not scratch.failed:
            find_named(&pools)
            pools.shared = find_pieces(&pools, &copies) and pools.objects.executable
            if pools.shared:
                graph_init(&pools.callers, &scratch, &calls, True)
            if (copies or pools.shared) and not scratch.failed:
                with nogil:
                    scratch.failed = not place_all(&pools)
        if scratch.failed:
            raise MemoryError
        merged.pools = LiteralPools(vec_to_bytes(&pools.rows))
    finally:
        scratch_free(&scratch)


cdef void allocate_merge(PoolPlacement* pools, Scratch* scratch, size_t nodes) noexcept:
    """Allocate the tables of the placement; `scratch` frees them."""
    cdef size_t n = pools.merged.entity_count, section_count = pools.objects.section_count
    pools.piece = scratch_nones(scratch, n)
    pools.last = scratch_nones(scratch, n)
    pools.alone = scratch_nones(scratch, n)
    pools.named = <uint8_t*>scratch_zeros(scratch, section_count, 1)
    pools.next = <int32_t*>scratch_zeros(scratch, section_count, 4)
    pools.size = <uint64_t*>scratch_zeros(scratch, n, 8)
    pools.align = <uint32_t*>scratch_zeros(scratch, n, 4)
    pools.stamp = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    pools.stack = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    scratch_vector(scratch, &pools.rows, sizeof(PoolRow))


cdef void find_named(PoolPlacement* pools) noexcept:
    """Mark the sections in which symbols other than those of sections lie."""
    cdef const SymbolRow* symbol
    cdef size_t i
    for i in range(pools.objects.symbol_count):
        symbol = &pools.objects.symbols[i]
        if symbol.section >= 0 and (symbol.info & 15) != STT_SECTION:
            pools.named[symbol.section] = True


cdef bint place_all(PoolPlacement* pools) noexcept nogil:
    """Place what moves within its function, then what kernels share; False without memory."""
    cdef size_t i
    cdef int32_t section, k
    cdef bint stays
    for i in range(pools.merged.entity_count):
        stays = (pools.piece[i] >= 0
                 and not (pools.objects.executable and is_for_kernels(pools, <uint32_t>i)))
        if (pools.alone[i] >= 0 or stays) and not place_own(pools, <uint32_t>i):
            return False
    for i in range(pools.objects.section_count if pools.shared else 0):
        section = <int32_t>(pools.objects.section_count - 1 - i)
        k = pool_owner(pools, section)
        if (k >= 0 and pools.piece[k] == section and is_for_kernels(pools, <uint32_t>k)
                and not place_shared(pools, <uint32_t>k)):
            return False
    return True


cdef inline int32_t pool_owner(const PoolPlacement* pools, int32_t section) noexcept nogil:
    """The live function whose pool section `section` is, or -1."""
    cdef int32_t k = pools.merged.section_function[section]
    if k < 0 or not is_pool_row(&pools.objects.sections[section]):
        return -1
    return k if pools.merged.entities[k].flags & EF_LIVE else -1


cdef inline bint is_for_kernels(const PoolPlacement* pools, uint32_t k) noexcept nogil:
    """Whether the pool goes to kernels: that of a device function, if it has constants.

    A pool that an earlier stage made of the pools of copies that lost has none.
    """
    return not pools.merged.entities[k].flags & EF_KERNEL and pools.named[pools.piece[k]]


cdef bint find_pieces(PoolPlacement* pools, bint* copies) noexcept nogil:
    """Find the pools of each function, in input order. Returns whether a device function has one.

    Sets `copies` if a copy that lost against an earlier one has a pool.
    """
    cdef size_t i
    cdef int32_t k
    cdef bint of_device = False
    for i in range(pools.objects.section_count):
        k = (pool_owner(pools, <int32_t>i) if pools.merged.section_resolution[i] == RESOLUTION_WON
             else -1)
        if k >= 0:
            pools.piece[k] = pools.last[k] = <int32_t>i
            pools.size[k] = pools.objects.sections[i].size
            pools.align[k] = pools.objects.sections[i].align
            of_device |= not pools.merged.entities[k].flags & EF_KERNEL
    for i in range(pools.objects.section_count):
        k = (pool_owner(pools, <int32_t>i) if pools.merged.section_resolution[i] == RESOLUTION_LOST
             else -1)
        if k < 0:
            continue
        if pools.last[k] >= 0:
            pools.next[pools.last[k]] = <int32_t>i
        else:
            pools.alone[k] = <int32_t>i
        pools.last[k] = <int32_t>i
        copies[0] = True
    return of_device


cdef inline uint64_t align_up(uint64_t size, uint64_t align) noexcept nogil:
    return (size + align - 1) & ~(align - 1)


cdef inline PoolRow* new_row(PoolPlacement* pools, int32_t section, int32_t kernel,
                             uint32_t function) noexcept nogil:
    """Add a row of zeros for a section in the pool of a kernel; NULL without memory."""
    cdef PoolRow* row = <PoolRow*>vec_push(&pools.rows)
    if row != NULL:
        memset(row, 0, sizeof(PoolRow))
        row.section = section
        row.kernel = kernel
        row.function = function
    return row


cdef bint place_own(PoolPlacement* pools, uint32_t kernel) noexcept nogil:
    """Place the pools of lost copies of a function after its own; False without memory.

    If the copy that stays has no pool, those of the lost copies make one, also for a device
    function.
    """
    cdef bint alone = pools.alone[kernel] >= 0
    cdef int32_t section = pools.alone[kernel] if alone else pools.next[pools.piece[kernel]]
    cdef PoolRow* row
    if pools.objects.executable and not (alone or pools.merged.entities[kernel].flags & EF_KERNEL):
        row = new_row(pools, pools.piece[kernel], <int32_t>kernel, kernel)
        if row == NULL:
            return False
        row.flags = POOL_NEW
        row.end = pools.size[kernel]
        row.align = pools.align[kernel]
    while section:
        row = new_row(pools, section, <int32_t>kernel, kernel)
        if row == NULL:
            return False
        row.flags = POOL_LOST | (POOL_ALONE if alone else 0)
        if section == pools.alone[kernel]:
            row.flags |= POOL_NEW
        row.offset = align_up(pools.size[kernel], pools.objects.sections[section].align)
        pools.size[kernel] = row.end = row.offset + pools.objects.sections[section].size
        pools.align[kernel] = row.align = max(pools.align[kernel],
                                              pools.objects.sections[section].align)
        section = pools.next[section]
    return True


cdef int compare_pool_rows(const void* a, const void* b) noexcept nogil:
    """Order rows by kernel, the one created last first."""
    cdef int32_t x = (<const PoolRow*>a).kernel, y = (<const PoolRow*>b).kernel
    return (x < y) - (x > y)


cdef bint place_shared(PoolPlacement* pools, uint32_t function) noexcept nogil:
    """Place a device function's pools, at one offset in all its kernels; False without memory."""
    cdef size_t depth = 1, first = pools.rows.count, count, i
    cdef uint32_t node, to, j, align = 1
    cdef uint64_t start = 0, size
    cdef int32_t section
    cdef const EntityRow* e
    cdef PoolRow* row
    pools.stack[0] = function
    pools.stamp[function] = function + 1
    while depth:
        depth -= 1
        node = pools.stack[depth]
        e = &pools.merged.entities[node]
        if (node < pools.merged.entity_count and e.flags & EF_KERNEL and e.flags & EF_LIVE
                and not is_idle(e)):
            row = new_row(pools, pools.piece[function], <int32_t>node, function)
            if row == NULL:
                return False
            if pools.piece[node] < 0:
                pools.piece[node] = pools.piece[function]
                row.flags = POOL_NEW
            start = max(start, pools.size[node])
            align = max(align, pools.align[node])
        for j in range(pools.callers.start[node], pools.callers.start[node + 1]):
            to = pools.callers.edges[j]
            if pools.stamp[to] != function + 1:
                pools.stamp[to] = function + 1
                pools.stack[depth] = to
                depth += 1
    count = pools.rows.count - first
    qsort(<PoolRow*>pools.rows.data + first, count, sizeof(PoolRow), compare_pool_rows)
    # All copies stand one after the other in every kernel.
    section = pools.piece[function]
    while section:
        align = max(align, pools.objects.sections[section].align)
        section = pools.next[section]
    start = align_up(start, align)
    size = 0
    section = pools.piece[function]
    while section:
        size = align_up(size, pools.objects.sections[section].align)
        for i in range(count):
            row = <PoolRow*>pools.rows.data + first + i
            if section != pools.piece[function]:
                row = new_row(pools, section, row.kernel, function)
                if row == NULL:
                    return False
                row.flags = POOL_LOST
            row.offset = start + size
        size += pools.objects.sections[section].size
        section = pools.next[section]
    size = align_up(start + size, align)
    for i in range(first, pools.rows.count):
        row = <PoolRow*>pools.rows.data + i
        row.end = pools.size[row.kernel] = size
        row.align = pools.align[row.kernel] = align
    return True
