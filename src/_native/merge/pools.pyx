"""Where the literal pools and jump tables of functions go.

`.nv.constant2.F` of a device function is not a section of an executable: its bytes are appended to
the pool of every kernel that reaches F, at one offset for all of them, so that F's code works
under each. The last section is placed first, each after the longest pool of its kernels. Copies
of a weak function that came after the one that stays add their pools to its pool all the same
(docs/format-notes/literal-pools.md).
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from base.elf64 cimport STT_SECTION
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from tables.graph cimport CallGraph, CallRows, calls_of, graph_init, is_idle
from tables.kinds cimport is_pool
from tables.poolrows cimport POOL_ALONE, POOL_LOST, POOL_NEW, PoolRow
from pylink._native.tables cimport LiteralPools, MergedTables, Table
from tables.rows cimport (
    EF_KERNEL, EF_LIVE, RESOLUTION_LOST, RESOLUTION_WON, EntityRow, SectionRow, SymbolRow,
)
from tables.views cimport MergedView, ObjectsView
from base.vector cimport Vec, vec_push, vec_take


ctypedef struct Pools:
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
    """`sections` with the sizes that count: the pool of a copy that stays ends with its constants.

    What an earlier stage put after them, the pools of copies that lost, has none. Other sections
    keep their sizes.
    """
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
    cdef size_t i
    for i in range(v.section_count):
        if is_pool_row(&v.sections[i]):
            return True
    return False


def place_pools(MergedTables merged not None):
    """Place every pool that goes elsewhere, in the order of placement: fills `pools`.

    With -r those of device functions stay apart: only those of later copies move.
    """
    merged.fill()
    cdef CallRows calls = calls_of(merged)
    cdef bint copies = False
    cdef Scratch scratch
    cdef Pools p
    merged.objects.view(&p.objects)
    merged.view(&p.merged)
    if (merged.section_function.count != p.objects.section_count
            or merged.section_resolution.count != p.objects.section_count):
        raise ValueError("one function and one resolution per section")
    scratch_init(&scratch)
    try:
        take_room(&p, &scratch, calls.nodes)
        if not scratch.failed:
            find_named(&p)
            p.shared = find_pieces(&p, &copies) and p.objects.executable
            if p.shared:
                graph_init(&p.callers, &scratch, &calls, True)
            if (copies or p.shared) and not scratch.failed:
                with nogil:
                    scratch.failed = not place_all(&p)
        if scratch.failed:
            raise MemoryError
        merged.pools = LiteralPools(vec_take(&p.rows))
    finally:
        scratch_free(&scratch)


cdef void take_room(Pools* p, Scratch* scratch, size_t nodes) noexcept:
    cdef size_t n = p.merged.entity_count, section_count = p.objects.section_count
    p.piece = scratch_nones(scratch, n)
    p.last = scratch_nones(scratch, n)
    p.alone = scratch_nones(scratch, n)
    p.named = <uint8_t*>scratch_zeros(scratch, section_count, 1)
    p.next = <int32_t*>scratch_zeros(scratch, section_count, 4)
    p.size = <uint64_t*>scratch_zeros(scratch, n, 8)
    p.align = <uint32_t*>scratch_zeros(scratch, n, 4)
    p.stamp = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    p.stack = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    scratch_vector(scratch, &p.rows, sizeof(PoolRow))


cdef void find_named(Pools* p) noexcept:
    cdef const SymbolRow* symbol
    cdef size_t i
    for i in range(p.objects.symbol_count):
        symbol = &p.objects.symbols[i]
        if symbol.section >= 0 and (symbol.info & 15) != STT_SECTION:
            p.named[symbol.section] = True


cdef bint place_all(Pools* p) noexcept nogil:
    """Place what moves within its function, then what kernels share; False without memory."""
    cdef size_t i
    cdef int32_t at, k
    cdef bint stays
    for i in range(p.merged.entity_count):
        stays = p.piece[i] >= 0 and not (p.objects.executable and is_shared(p, <uint32_t>i))
        if (p.alone[i] >= 0 or stays) and not place_own(p, <uint32_t>i):
            return False
    for i in range(p.objects.section_count if p.shared else 0):
        at = <int32_t>(p.objects.section_count - 1 - i)
        k = owner(p, at)
        if k >= 0 and p.piece[k] == at and is_shared(p, <uint32_t>k) and not place_shared(
                p, <uint32_t>k):
            return False
    return True


cdef inline int32_t owner(const Pools* p, int32_t at) noexcept nogil:
    """The live function whose pool section `at` is, or -1."""
    cdef int32_t k = p.merged.section_function[at]
    if k < 0 or not is_pool_row(&p.objects.sections[at]):
        return -1
    return k if p.merged.entities[k].flags & EF_LIVE else -1


cdef inline bint is_shared(const Pools* p, uint32_t k) noexcept nogil:
    """Whether the pool goes to kernels: that of a device function, if it has constants.

    It has none where an earlier stage made it of the pools of copies that lost.
    """
    return not p.merged.entities[k].flags & EF_KERNEL and p.named[p.piece[k]]


cdef bint find_pieces(Pools* p, bint* copies) noexcept nogil:
    """The pools of each function, in input order; whether a device function has one.

    `copies` says whether copies that came after the one that stays have some.
    """
    cdef size_t i
    cdef int32_t k
    cdef bint of_device = False
    for i in range(p.objects.section_count):
        k = owner(p, <int32_t>i) if p.merged.section_resolution[i] == RESOLUTION_WON else -1
        if k >= 0:
            p.piece[k] = p.last[k] = <int32_t>i
            p.size[k] = p.objects.sections[i].size
            p.align[k] = p.objects.sections[i].align
            of_device |= not p.merged.entities[k].flags & EF_KERNEL
    for i in range(p.objects.section_count):
        k = owner(p, <int32_t>i) if p.merged.section_resolution[i] == RESOLUTION_LOST else -1
        if k < 0:
            continue
        if p.last[k] >= 0:
            p.next[p.last[k]] = <int32_t>i
        else:
            p.alone[k] = <int32_t>i
        p.last[k] = <int32_t>i
        copies[0] = True
    return of_device


cdef inline uint64_t rounded(uint64_t size, uint64_t align) noexcept nogil:
    return (size + align - 1) & ~(align - 1)


cdef inline PoolRow* new_row(Pools* p, int32_t section, int32_t kernel,
                             uint32_t function) noexcept nogil:
    cdef PoolRow* row = <PoolRow*>vec_push(&p.rows)
    if row != NULL:
        memset(row, 0, sizeof(PoolRow))
        row.section = section
        row.kernel = kernel
        row.function = function
    return row


cdef bint place_own(Pools* p, uint32_t kernel) noexcept nogil:
    """The pools of a kernel's later copies, after its own; with -r of any function's.

    Where the copy that stays has none, they make one, of a device function as well.
    """
    cdef bint alone = p.alone[kernel] >= 0
    cdef int32_t at = p.alone[kernel] if alone else p.next[p.piece[kernel]]
    cdef PoolRow* row
    if p.objects.executable and not (alone or p.merged.entities[kernel].flags & EF_KERNEL):
        row = new_row(p, p.piece[kernel], <int32_t>kernel, kernel)
        if row == NULL:
            return False
        row.flags = POOL_NEW
        row.end = p.size[kernel]
        row.align = p.align[kernel]
    while at:
        row = new_row(p, at, <int32_t>kernel, kernel)
        if row == NULL:
            return False
        row.flags = POOL_LOST | (POOL_ALONE if alone else 0)
        if at == p.alone[kernel]:
            row.flags |= POOL_NEW
        row.offset = rounded(p.size[kernel], p.objects.sections[at].align)
        p.size[kernel] = row.end = row.offset + p.objects.sections[at].size
        p.align[kernel] = row.align = max(p.align[kernel], p.objects.sections[at].align)
        at = p.next[at]
    return True


cdef int by_kernel(const void* a, const void* b) noexcept nogil:
    """The one created last first."""
    cdef int32_t x = (<const PoolRow*>a).kernel, y = (<const PoolRow*>b).kernel
    return (x < y) - (x > y)


cdef bint place_shared(Pools* p, uint32_t function) noexcept nogil:
    """The pools of one device function, at one place in every kernel that reaches it."""
    cdef size_t depth = 1, first = p.rows.count, count, i
    cdef uint32_t node, to, j, align = 1
    cdef uint64_t start = 0, size
    cdef int32_t at
    cdef const EntityRow* e
    cdef PoolRow* row
    p.stack[0] = function
    p.stamp[function] = function + 1
    while depth:
        depth -= 1
        node = p.stack[depth]
        e = &p.merged.entities[node]
        if (node < p.merged.entity_count and e.flags & EF_KERNEL and e.flags & EF_LIVE
                and not is_idle(e)):
            row = new_row(p, p.piece[function], <int32_t>node, function)
            if row == NULL:
                return False
            if p.piece[node] < 0:
                p.piece[node] = p.piece[function]
                row.flags = POOL_NEW
            start = max(start, p.size[node])
            align = max(align, p.align[node])
        for j in range(p.callers.start[node], p.callers.start[node + 1]):
            to = p.callers.edges[j]
            if p.stamp[to] != function + 1:
                p.stamp[to] = function + 1
                p.stack[depth] = to
                depth += 1
    count = p.rows.count - first
    qsort(<PoolRow*>p.rows.data + first, count, sizeof(PoolRow), by_kernel)
    # All copies stand one after the other in every kernel.
    at = p.piece[function]
    while at:
        align = max(align, p.objects.sections[at].align)
        at = p.next[at]
    start = rounded(start, align)
    size = 0
    at = p.piece[function]
    while at:
        size = rounded(size, p.objects.sections[at].align)
        for i in range(count):
            row = <PoolRow*>p.rows.data + first + i
            if at != p.piece[function]:
                row = new_row(p, at, row.kernel, function)
                if row == NULL:
                    return False
                row.flags = POOL_LOST
            row.offset = start + size
        size += p.objects.sections[at].size
        at = p.next[at]
    size = rounded(start + size, align)
    for i in range(first, p.rows.count):
        row = <PoolRow*>p.rows.data + i
        row.end = p.size[row.kernel] = size
        row.align = p.align[row.kernel] = align
    return True
