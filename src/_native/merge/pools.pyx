"""Placement of literal pools and jump tables: each function's bytes go to its kernels.

Code reads pooled constants from bank 2 at an offset that is written into the instruction. The bank
belongs to the kernel that runs: `.nv.constant2.K`. A device function F has a pool of its own,
`.nv.constant2.F`, which is not a section of an executable. Its bytes are appended to the pool of
every kernel that reaches F, at one offset for all of them, so that F's code works under each. An
example with pools of 8 bytes in K1, 16 in K2, and 8 in each of two functions:

    F, reached by K1 and K2    at 16 in both, after the longer pool: K1 gets 8 zeros before it
    G, reached by K1           placed next, at 24 in K1

F is placed first here since its section comes last in the inputs.

1. `find_pieces` finds the pool of each live function's linked copy, and chains the pools of copies
   that came later and lost: nvlink drops their code but keeps these bytes. The pool of one copy is
   a piece.
2. `place_own` puts the pools of a kernel's lost copies after the kernel's own pool, each at its
   alignment. It does so for device functions, too, if their pool stays a section of its own: with
   -r, if the pool has no constants, or if only lost copies have pools.
3. `place_shared` is called for each other device function, the last section first. It finds the
   kernels that reach the function, and the longest of their pools. The function's pieces, first
   that of the linked copy, begin at that size, rounded up to the largest alignment of all these
   pools and pieces. A kernel without a pool gets one.

`cut_pools` comes before all this: it ends the pool of a linked copy after its last constant, since
the output does not have what an earlier stage of linking put there
(docs/format-notes/literal-pools.md).

A row of the result says where a piece stands in the pool of one kernel. If such a pool is larger
than a bank, `layout/poolmerge.pyx` later makes one pool for all kernels.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from base.elf64 cimport round_up
from base.memory cimport check_memory
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from base.vector cimport Vec, vec_push, vec_to_bytes
from elfnumbers cimport STT_SECTION
from pylink._native.results cimport MergedTables
from pylink._native.tables cimport LiteralPools, Table
from rownumbers cimport EF_KERNEL, EF_LIVE, RESOLUTION_LOST, RESOLUTION_WON
from tables.graph cimport CallGraph, CallRows, NodeRef, calls_of, graph_init, is_idle
from tables.kinds cimport is_pool
from tables.poolrows cimport POOL_ALONE, POOL_LOST, POOL_NEW, PoolRow
from tables.rows cimport EntityNumber, EntityRef, EntityRow, SectionNumber, SectionRow, SymbolRow
from tables.views cimport MergedView, ObjectsView


# State of the placement. Sections are input sections. A piece is such a section that is the pool of
# one copy of a function.
ctypedef struct PoolPlacement:
    ObjectsView objects
    MergedView merged
    # By entity: the piece of the linked copy, or -1. A kernel without one gets the first that is
    # placed in its pool.
    SectionNumber* first_piece
    SectionNumber* last_piece   # by entity: the last piece of any copy, or -1
    SectionNumber* first_lost   # by entity: its first piece if only lost copies have any, or -1
    SectionNumber* next_piece   # by input section: the next piece of the function, or 0
    uint8_t* has_constants      # by input section: 1 if symbols of constants lie in it
    bint has_shared             # pieces may go to the kernels that reach their functions
    uint64_t* pool_size         # by entity: bytes of its pool so far
    uint32_t* pool_align        # by entity: alignment of its pool so far
    CallGraph callers           # the call graph, with edges from callees to callers
    EntityRef* visited_for      # by node: 1 + the last function that it was visited for, or 0
    NodeRef* stack              # nodes that a walk of the graph still has to visit
    Vec rows                    # PoolRow


def cut_pools(MergedTables merged not None):
    """Return the input sections; literal pools of linked copies are cut after the last constant."""
    cdef ObjectsView objects
    cdef const uint8_t* resolution = merged.section_resolution.rows
    cdef const SymbolRow* symbol
    cdef Table result = merged.objects.sections
    cdef SectionRow* rows = NULL
    cdef uint64_t* end_of           # by input section: the end of the constants in a pool, else 0
    cdef Scratch scratch
    cdef size_t i
    merged.objects.view(&objects)
    if merged.section_resolution.count != objects.section_count:
        raise ValueError("one resolution per section")
    if not has_pool(&objects):
        return result
    scratch_init(&scratch)
    try:
        end_of = <uint64_t*>scratch_zeros(&scratch, objects.section_count, 8)
        check_memory(not scratch.failed)
        with nogil:
            for i in range(objects.symbol_count):
                symbol = &objects.symbols[i]
                if (symbol.section >= 0 and (symbol.info & 15) != STT_SECTION
                        and is_pool_section(&objects.sections[symbol.section])):
                    end_of[symbol.section] = max(end_of[symbol.section], symbol.value + symbol.size)
        for i in range(objects.section_count):
            if (end_of[i] == 0 or end_of[i] >= objects.sections[i].size
                    or resolution[i] != RESOLUTION_WON):
                continue
            if rows == NULL:
                result = merged.objects.sections.copy()
                rows = <SectionRow*>result.start
            rows[i].size = end_of[i]
        return result
    finally:
        scratch_free(&scratch)


cdef inline bint is_pool_section(const SectionRow* section) noexcept nogil:
    """Return whether an input section is the pool of a function."""
    return is_pool(section.kind, section.bank)


cdef bint has_pool(const ObjectsView* objects) noexcept:
    """Return whether any input section is a pool."""
    cdef size_t i
    for i in range(objects.section_count):
        if is_pool_section(&objects.sections[i]):
            return True
    return False


def place_pools(MergedTables merged not None):
    """Place the pools that are appended to pools of kernels or functions: fills `pools`."""
    merged.fill()
    cdef CallRows calls = calls_of(merged)
    cdef bint has_lost = False
    cdef Scratch scratch
    cdef PoolPlacement placement
    merged.objects.view(&placement.objects)
    merged.view(&placement.merged)
    if (merged.section_function.count != placement.objects.section_count
            or merged.section_resolution.count != placement.objects.section_count):
        raise ValueError("one function and one resolution per section")
    scratch_init(&scratch)
    try:
        allocate_placement(&placement, &scratch, calls.nodes)
        if not scratch.failed:
            placement.has_shared = (find_pieces(&placement, &has_lost)
                                    and placement.objects.executable)
            if placement.has_shared:
                graph_init(&placement.callers, &scratch, &calls, True)
            if (has_lost or placement.has_shared) and not scratch.failed:
                find_sections_with_constants(&placement)
                with nogil:
                    scratch.failed = not place_all(&placement)
        check_memory(not scratch.failed)
        merged.pools = LiteralPools(vec_to_bytes(&placement.rows))
    finally:
        scratch_free(&scratch)


cdef void allocate_placement(PoolPlacement* pools, Scratch* scratch, size_t nodes) noexcept:
    """Allocate the tables of the placement; `scratch` frees them."""
    cdef size_t entity_count = pools.merged.entity_count
    cdef size_t section_count = pools.objects.section_count
    pools.first_piece = scratch_nones(scratch, entity_count)
    pools.last_piece = scratch_nones(scratch, entity_count)
    pools.first_lost = scratch_nones(scratch, entity_count)
    pools.has_constants = <uint8_t*>scratch_zeros(scratch, section_count, 1)
    pools.next_piece = <SectionNumber*>scratch_zeros(scratch, section_count, 4)
    pools.pool_size = <uint64_t*>scratch_zeros(scratch, entity_count, 8)
    pools.pool_align = <uint32_t*>scratch_zeros(scratch, entity_count, 4)
    pools.visited_for = <EntityRef*>scratch_zeros(scratch, nodes, 4)
    pools.stack = <NodeRef*>scratch_zeros(scratch, nodes, 4)
    scratch_vector(scratch, &pools.rows, sizeof(PoolRow))


cdef void find_sections_with_constants(PoolPlacement* pools) noexcept:
    """Mark the sections in which symbols other than section symbols lie."""
    cdef const SymbolRow* symbol
    cdef size_t i
    for i in range(pools.objects.symbol_count):
        symbol = &pools.objects.symbols[i]
        if symbol.section >= 0 and (symbol.info & 15) != STT_SECTION:
            pools.has_constants[symbol.section] = True


cdef bint place_all(PoolPlacement* pools) noexcept nogil:
    """Place the pieces of functions' own pools, then those that are appended to kernels' pools.

    A piece is the pool section of one input copy of a function. False without memory.
    """
    cdef size_t i
    cdef SectionNumber section
    cdef EntityNumber function
    cdef bint is_own                # the linked copy has a piece, in a pool of the function's own
    for i in range(pools.merged.entity_count):
        is_own = (pools.first_piece[i] >= 0
                  and not (pools.objects.executable and is_for_kernels(pools, <EntityRef>i)))
        if (pools.first_lost[i] >= 0 or is_own) and not place_own(pools, <EntityRef>i):
            return False
    for i in range(pools.objects.section_count if pools.has_shared else 0):
        section = <SectionNumber>(pools.objects.section_count - 1 - i)
        function = find_pool_function(pools, section)
        if (function >= 0 and pools.first_piece[function] == section
                and is_for_kernels(pools, <EntityRef>function)
                and not place_shared(pools, <EntityRef>function)):
            return False
    return True


cdef inline EntityNumber find_pool_function(const PoolPlacement* pools,
                                            SectionNumber section) noexcept nogil:
    """Return the live function whose pool `section` is, or -1."""
    cdef EntityNumber function = pools.merged.section_function[section]
    if function < 0 or not is_pool_section(&pools.objects.sections[section]):
        return -1
    return function if pools.merged.entities[function].flags & EF_LIVE else -1


cdef inline bint is_for_kernels(const PoolPlacement* pools, EntityRef function) noexcept nogil:
    """Return whether a function's pool goes to kernels: if it is a device function with constants.

    The linked copy must have a pool. A pool without constants comes from an earlier stage of
    linking, which made it of the pools of copies that lost.
    """
    return (not pools.merged.entities[function].flags & EF_KERNEL
            and pools.has_constants[pools.first_piece[function]])


cdef bint find_pieces(PoolPlacement* pools, bint* has_lost) noexcept nogil:
    """Chain the pool sections of each live function's copies, that of the linked copy first.

    Returns whether the linked copy of any device function has a pool. Sets `has_lost` if a copy
    with a pool lost against the linked copy of an earlier file.
    """
    cdef size_t i
    cdef EntityNumber function
    cdef bint has_device_pool = False
    for i in range(pools.objects.section_count):
        function = (find_pool_function(pools, <SectionNumber>i)
                    if pools.merged.section_resolution[i] == RESOLUTION_WON else -1)
        if function >= 0:
            pools.first_piece[function] = pools.last_piece[function] = <SectionNumber>i
            pools.pool_size[function] = pools.objects.sections[i].size
            pools.pool_align[function] = pools.objects.sections[i].align
            has_device_pool |= not pools.merged.entities[function].flags & EF_KERNEL
    for i in range(pools.objects.section_count):
        function = (find_pool_function(pools, <SectionNumber>i)
                    if pools.merged.section_resolution[i] == RESOLUTION_LOST else -1)
        if function < 0:
            continue
        if pools.last_piece[function] >= 0:
            pools.next_piece[pools.last_piece[function]] = <SectionNumber>i
        else:
            pools.first_lost[function] = <SectionNumber>i
        pools.last_piece[function] = <SectionNumber>i
        has_lost[0] = True
    return has_device_pool


cdef inline PoolRow* new_row(PoolPlacement* pools, SectionNumber section, EntityNumber kernel,
                             EntityRef function) noexcept nogil:
    """Add a row for a piece in the pool of a kernel; NULL without memory.

    The piece is the input section `section`, with the pool of a copy of `function`. Other fields
    are 0.
    """
    cdef PoolRow* row = <PoolRow*>vec_push(&pools.rows)
    if row != NULL:
        memset(row, 0, sizeof(PoolRow))
        row.section = section
        row.kernel = kernel
        row.function = function
    return row


cdef bint place_own(PoolPlacement* pools, EntityRef function) noexcept nogil:
    """Place the pool sections of a function's lost copies after that of its linked copy.

    If the linked copy has none, those of the lost copies make a pool, also for a device function.
    In an executable, the pool that a device function's linked copy keeps gets a row first. False
    without memory.
    """
    cdef bint is_only_lost = pools.first_lost[function] >= 0
    cdef SectionNumber section = (pools.first_lost[function] if is_only_lost
                                  else pools.next_piece[pools.first_piece[function]])
    cdef PoolRow* row
    if (pools.objects.executable
            and not (is_only_lost or pools.merged.entities[function].flags & EF_KERNEL)):
        row = new_row(pools, pools.first_piece[function], <EntityNumber>function, function)
        if row == NULL:
            return False
        row.flags = POOL_NEW
        row.end = pools.pool_size[function]
        row.align = pools.pool_align[function]
    while section:
        row = new_row(pools, section, <EntityNumber>function, function)
        if row == NULL:
            return False
        row.flags = POOL_LOST | (POOL_ALONE if is_only_lost else 0)
        if section == pools.first_lost[function]:
            row.flags |= POOL_NEW
        row.offset = round_up(pools.pool_size[function], pools.objects.sections[section].align)
        pools.pool_size[function] = row.end = row.offset + pools.objects.sections[section].size
        pools.pool_align[function] = row.align = max(pools.pool_align[function],
                                                     pools.objects.sections[section].align)
        section = pools.next_piece[section]
    return True


cdef int compare_pool_rows(const void* a, const void* b) noexcept nogil:
    """Order PoolRows by kernel, the one with the highest number first, for qsort."""
    cdef EntityNumber kernel = (<const PoolRow*>a).kernel, other = (<const PoolRow*>b).kernel
    return (kernel < other) - (kernel > other)


cdef bint place_shared(PoolPlacement* pools, EntityRef function) noexcept nogil:
    """Place a function's pools at one offset in the live kernels that reach it and are not idle."""
    cdef size_t depth = 1, first_row = pools.rows.count, row_count, i
    cdef NodeRef node, caller
    cdef uint32_t j, align = 1
    cdef uint64_t start = 0, size
    cdef SectionNumber piece
    cdef const EntityRow* entity
    cdef PoolRow* row
    pools.stack[0] = function
    pools.visited_for[function] = function + 1
    while depth:
        depth -= 1
        node = pools.stack[depth]
        entity = &pools.merged.entities[<EntityRef>node]
        if (node < pools.merged.entity_count and entity.flags & EF_KERNEL and entity.flags & EF_LIVE
                and not is_idle(entity)):
            row = new_row(pools, pools.first_piece[function], <EntityNumber>node, function)
            if row == NULL:
                return False
            if pools.first_piece[<EntityRef>node] < 0:
                pools.first_piece[<EntityRef>node] = pools.first_piece[function]
                row.flags = POOL_NEW
            start = max(start, pools.pool_size[<EntityRef>node])
            align = max(align, pools.pool_align[<EntityRef>node])
        for j in range(pools.callers.start[node], pools.callers.start[node + 1]):
            caller = pools.callers.edges[j]
            if pools.visited_for[caller] != function + 1:
                pools.visited_for[caller] = function + 1
                pools.stack[depth] = caller
                depth += 1
    row_count = pools.rows.count - first_row
    qsort(<PoolRow*>pools.rows.data + first_row, row_count, sizeof(PoolRow), compare_pool_rows)
    # The pools of all copies stand one after the other in the pool of each kernel.
    piece = pools.first_piece[function]
    while piece:
        align = max(align, pools.objects.sections[piece].align)
        piece = pools.next_piece[piece]
    start = round_up(start, align)
    size = 0
    piece = pools.first_piece[function]
    while piece:
        size = round_up(size, pools.objects.sections[piece].align)
        for i in range(row_count):
            row = <PoolRow*>pools.rows.data + first_row + i
            if piece != pools.first_piece[function]:
                row = new_row(pools, piece, row.kernel, function)
                if row == NULL:
                    return False
                row.flags = POOL_LOST
            row.offset = start + size
        size += pools.objects.sections[piece].size
        piece = pools.next_piece[piece]
    size = round_up(start + size, align)
    for i in range(first_row, pools.rows.count):
        row = <PoolRow*>pools.rows.data + i
        row.end = pools.pool_size[row.kernel] = size
        row.align = pools.pool_align[row.kernel] = align
    return True
