"""Registers, barriers, stack and recursion that a kernel inherits from the functions it reaches.

A kernel that sets the number of its registers itself (REG_RECONFIG), or reaches a function that
does, keeps its own count. `find_kept_parts` has the exceptions.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from attributetypes cimport EIATTR_REG_RECONFIG, EIATTR_TOOLS_PATCH_FUNC
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from elfnumbers cimport SHF_BARRIERS, SHF_BARRIERS_FIRST
from pylink._native.tables cimport Functions, MergedTables
from rownumbers cimport (
    EF_DEFINED, EF_INNER, EF_KERNEL, EF_LIVE, EF_UNBOUNDED, E_FUNC, KEEPS_ALL, KEEPS_REGISTERS,
    NO_STACK_BOUND, RESOLUTION_WON,
)
from sectionkinds cimport IS_RECORDS, KIND
from tables.attributes cimport find_record, register_limit
from tables.graph cimport CallGraph, CallRows, calls_of, graph_init, is_idle
from tables.kinds cimport is_a, is_owned
from tables.rows cimport EntityRow, FunctionRow, SectionRow, is_root
from tables.views cimport MergedView, ObjectsView
from traits cimport TRAIT_EARLY_FILES


# State of one depth-first search that finds strongly connected components (Tarjan): a component
# of several nodes, or one that calls itself, is recursion.
ctypedef struct ComponentSearch:
    ObjectsView objects
    MergedView merged
    FunctionRow* rows
    CallGraph graph
    uint32_t* order         # visit number, 0 before the visit
    uint32_t* low
    uint32_t* next_edge
    uint32_t* path          # nodes between the root and here
    uint32_t* pending       # nodes not yet given to a component
    uint8_t* on_pending
    uint32_t* regcount      # largest seen so far
    int32_t* highest        # the entity it comes from
    uint32_t* stack
    uint32_t* barriers      # largest seen so far
    uint8_t* kernel
    uint8_t* reconfigures   # sets the number of registers, or reaches a function that does
    uint32_t* unbounded     # by prototype: its functions without a bound on their stack
    uint32_t* last          # by function: the last prototype that it counted for


def analyze(MergedTables merged not None):
    merged.fill()
    cdef ComponentSearch search
    cdef CallRows calls = calls_of(merged)
    cdef Scratch scratch
    merged.objects.view(&search.objects)
    merged.view(&search.merged)
    cdef bytes result = PyBytes_FromStringAndSize(NULL,
                                                  search.merged.entity_count * sizeof(FunctionRow))
    search.rows = <FunctionRow*>PyBytes_AS_STRING(result)
    scratch_init(&scratch)
    try:
        graph_init(&search.graph, &scratch, &calls)
        allocate_merge(&search, &scratch, calls.nodes)
        if scratch.failed:
            raise MemoryError
        with nogil:
            find_info(&search)
            start_search(&search)
            find_components(&search)
            count_recursive(&search)
            fill_rows(&search)
    finally:
        scratch_free(&scratch)
    merged.functions = Functions(result)


cdef void allocate_merge(ComponentSearch* search, Scratch* scratch, size_t nodes) noexcept:
    """Allocate the state of the search, all zeros; `scratch` frees it."""
    search.order = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.low = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.next_edge = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.path = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.pending = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.on_pending = <uint8_t*>scratch_zeros(scratch, nodes, 1)
    search.reconfigures = <uint8_t*>scratch_zeros(scratch, nodes, 1)
    search.regcount = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.highest = <int32_t*>scratch_zeros(scratch, nodes, 4)
    search.stack = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.kernel = <uint8_t*>scratch_zeros(scratch, nodes, 1)
    search.barriers = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.unbounded = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.last = <uint32_t*>scratch_zeros(scratch, nodes, 4)


cdef void start_search(ComponentSearch* search) noexcept nogil:
    """Start with the values of each function alone, before it inherits from others."""
    cdef const EntityRow* e
    cdef const SectionRow* info
    cdef int32_t section
    cdef size_t i
    for i in range(search.graph.nodes):
        search.highest[i] = <int32_t>i
    for i in range(search.merged.entity_count):
        e = &search.merged.entities[i]
        section = search.rows[i].merc_info if search.rows[i].merc_info >= 0 else search.rows[i].info
        if section >= 0:
            info = &search.objects.sections[section]
            search.reconfigures[i] = find_record(search.objects.arena + info.offset, info.size,
                                                 EIATTR_REG_RECONFIG) != NULL
        search.kernel[i] = e.flags & EF_KERNEL != 0
        if e.flags & EF_DEFINED:
            search.regcount[i] = e.regcount
            if e.flags & EF_UNBOUNDED:
                search.stack[i] = NO_STACK_BOUND
            if search.objects.traits & TRAIT_EARLY_FILES:
                search.barriers[i] = barriers_of_flags(search, e)


cdef void fill_rows(ComponentSearch* search) noexcept nogil:
    """Fill in the rows of all functions; only kernels get barriers and inherited register counts.

    A kernel that keeps its registers was raised by no function.
    """
    cdef const EntityRow* e = search.merged.entities
    cdef FunctionRow* row
    cdef int64_t alone = find_lone_kernel(search)
    cdef size_t i
    for i in range(search.merged.entity_count):
        row = &search.rows[i]
        row.keeps = 0
        row.regcount = e[i].regcount
        row.raised_by = search.highest[i] if search.highest[i] != <int32_t>i else -1
        row.stack = search.stack[i]
        row.barriers = 0
        if e[i].flags & EF_KERNEL:
            row.barriers = search.barriers[i]
            row.keeps = find_kept_parts(search, i, alone)
            if row.keeps:
                row.raised_by = -1
            else:
                row.regcount = search.regcount[i]


cdef inline uint32_t barriers_of_flags(const ComponentSearch* search,
                                       const EntityRow* e) noexcept nogil:
    """The barriers of a function by sh_flags, where objects from before CUDA 13.0 have them."""
    cdef int32_t section = search.objects.symbols[e.winner].section
    if section < 0:
        return 0
    return <uint32_t>((search.objects.sections[section].flags & SHF_BARRIERS) >> SHF_BARRIERS_FIRST)


cdef int64_t find_lone_kernel(const ComponentSearch* search) noexcept nogil:
    """The only kernel that is alive for its own sake; -1 without, or with others."""
    cdef const EntityRow* e = search.merged.entities
    cdef size_t i
    cdef int64_t kernel = -1
    for i in range(search.merged.entity_count):
        if is_root(&e[i]) and e[i].flags & EF_LIVE:
            if kernel >= 0:
                return -1
            kernel = <int64_t>i
    return kernel


cdef uint32_t find_kept_parts(const ComponentSearch* search, size_t kernel,
                              int64_t alone) noexcept nogil:
    """The KeepsFlag bits of a kernel: values that it keeps of its own instead of inheriting them.

    Without a lone kernel: the registers, if it or a function it reaches sets their number. With a
    lone kernel: that one keeps its registers if any live function sets their number, and all other
    kernels keep everything. An idle kernel always keeps everything.
    """
    cdef const EntityRow* e = search.merged.entities
    cdef size_t i
    if is_idle(&e[kernel]):
        return KEEPS_REGISTERS | KEEPS_ALL
    if alone < 0:
        return KEEPS_REGISTERS if search.reconfigures[kernel] else 0
    if <int64_t>kernel != alone:
        return KEEPS_REGISTERS | KEEPS_ALL
    for i in range(search.merged.entity_count):
        if search.reconfigures[i] and e[i].flags & EF_LIVE:
            return KEEPS_REGISTERS
    return 0


cdef void find_components(ComponentSearch* search) noexcept nogil:
    """Find the strongly connected components, and propagate values from callees to callers."""
    cdef size_t root, depth = 0, pending_count = 0
    cdef uint32_t visits = 0, node, to
    for root in range(search.graph.nodes):
        if search.order[root]:
            continue
        node = <uint32_t>root
        visits += 1
        search.order[node] = search.low[node] = visits
        search.path[0] = node
        depth = 1
        search.pending[pending_count] = node
        pending_count += 1
        search.on_pending[node] = True
        while depth:
            node = search.path[depth - 1]
            if search.graph.start[node] + search.next_edge[node] < search.graph.start[node + 1]:
                to = search.graph.edges[search.graph.start[node] + search.next_edge[node]]
                search.next_edge[node] += 1
                if not search.order[to]:
                    visits += 1
                    search.order[to] = search.low[to] = visits
                    search.path[depth] = to
                    depth += 1
                    search.pending[pending_count] = to
                    pending_count += 1
                    search.on_pending[to] = True
                elif search.on_pending[to]:
                    if search.order[to] < search.low[node]:
                        search.low[node] = search.order[to]
                    if to == node:
                        search.stack[node] = NO_STACK_BOUND
                else:
                    inherit_values(search, node, to)
                continue
            depth -= 1
            if search.low[node] == search.order[node]:
                pending_count = close_component(search, node, pending_count)
            if depth:
                to = search.path[depth - 1]
                if search.low[node] < search.low[to]:
                    search.low[to] = search.low[node]
                if not search.on_pending[node]:
                    inherit_values(search, to, node)


cdef void count_recursive(ComponentSearch* search) noexcept nogil:
    """Count the functions without a bound that a kernel calls, directly or through a pointer.

    A function counts once for a prototype, whatever number of files takes its address.
    """
    cdef const CallGraph* graph = &search.graph
    cdef const uint32_t* stack = search.stack
    cdef size_t n = search.merged.entity_count, i
    cdef uint32_t j, to
    for i in range(n, graph.nodes):
        for j in range(graph.start[i], graph.start[i + 1]):
            to = graph.edges[j]
            if search.last[to] != i:
                search.last[to] = <uint32_t>i
                search.unbounded[i] += stack[to] == NO_STACK_BOUND
    for i in range(n):
        search.rows[i].recursive_calls = 0
        if not search.merged.entities[i].flags & EF_KERNEL or stack[i] != NO_STACK_BOUND:
            continue
        for j in range(graph.start[i], graph.start[i + 1]):
            to = graph.edges[j]
            if to < n:
                search.rows[i].recursive_calls += stack[to] == NO_STACK_BOUND
            else:
                search.rows[i].recursive_calls += search.unbounded[to]


cdef inline void inherit_values(ComponentSearch* search, uint32_t caller,
                                uint32_t callee) noexcept nogil:
    """Raise the values of a caller to those of a callee."""
    if search.regcount[callee] > search.regcount[caller] or (
            # The function that was created first is named if several are equal.
            search.regcount[callee] == search.regcount[caller] and not search.kernel[caller]
            and search.highest[callee] < search.highest[caller]):
        search.regcount[caller] = search.regcount[callee]
        search.highest[caller] = search.highest[callee]
    if search.stack[callee] > search.stack[caller]:
        search.stack[caller] = search.stack[callee]
    search.barriers[caller] = max(search.barriers[caller], search.barriers[callee])
    search.reconfigures[caller] |= search.reconfigures[callee]


cdef size_t close_component(ComponentSearch* search, uint32_t root,
                            size_t pending_count) noexcept nogil:
    """Give the component its common values; `stack` is that of the deepest callee seen so far."""
    cdef const EntityRow* e = search.merged.entities
    cdef size_t first = pending_count, i
    cdef uint32_t node, best = root, stack = 0, barriers = 0
    cdef uint8_t reconfigures = 0
    while True:
        first -= 1
        node = search.pending[first]
        search.on_pending[node] = False
        if search.regcount[node] > search.regcount[best]:
            best = node
        if search.stack[node] > stack:
            stack = search.stack[node]
        barriers = max(barriers, search.barriers[node])
        reconfigures |= search.reconfigures[node]
        if node == root:
            break
    if pending_count - first > 1:
        stack = NO_STACK_BOUND
    for i in range(first, pending_count):
        node = search.pending[i]
        if search.regcount[best] > search.regcount[node]:
            search.regcount[node] = search.regcount[best]
            search.highest[node] = search.highest[best]
        search.reconfigures[node] = reconfigures
        search.barriers[node] = barriers
        search.stack[node] = stack
        if (stack != NO_STACK_BOUND and node < search.merged.entity_count
                and e[node].flags & EF_DEFINED):
            search.stack[node] = stack + e[node].frame
    return first


cdef void find_info(ComponentSearch* search) noexcept nogil:
    """Find the sections with the attributes of each function."""
    cdef const SectionRow* section
    cdef FunctionRow* row
    cdef size_t i
    for i in range(search.merged.entity_count):
        search.rows[i].info = search.rows[i].merc_info = -1
    for i in range(search.objects.section_count):
        section = &search.objects.sections[i]
        if (search.merged.section_resolution[i] != RESOLUTION_WON
                or not is_a(section.kind, IS_RECORDS) or not is_owned(section.kind)):
            continue
        row = &search.rows[search.merged.section_function[i]]
        if KIND[section.kind].mercury:
            row.merc_info = <int32_t>i
        else:
            row.info = <int32_t>i


def find_recursive(MergedTables merged not None):
    cdef ObjectsView v
    cdef const SectionRow* info
    cdef const EntityRow* e = merged.entities.rows
    cdef const FunctionRow* f = merged.functions.rows
    cdef list recursive = []
    cdef bint crowded = False
    cdef size_t i
    merged.objects.view(&v)
    for i in range(merged.entities.count):
        if not e[i].flags & EF_KERNEL or not e[i].flags & EF_LIVE or is_idle(&e[i]):
            continue
        recursive.extend([i] * f[i].recursive_calls)
        if f[i].raised_by >= 0 and f[i].info >= 0:
            info = &v.sections[f[i].info]
            crowded |= f[i].regcount > register_limit(v.arena + info.offset, info.size)
    return recursive, crowded


def find_unpatched(MergedTables merged not None):
    cdef ObjectsView v
    cdef const SectionRow* info
    cdef const EntityRow* e = merged.entities.rows
    cdef const FunctionRow* f = merged.functions.rows
    cdef Py_ssize_t i
    merged.objects.view(&v)
    for i in range(<Py_ssize_t>merged.entities.count):
        if e[i].kind != E_FUNC or not e[i].flags & EF_DEFINED or e[i].flags & EF_INNER:
            continue
        if f[i].info < 0:
            return i
        info = &v.sections[f[i].info]
        if find_record(v.arena + info.offset, info.size, EIATTR_TOOLS_PATCH_FUNC) == NULL:
            return i
    return -1
