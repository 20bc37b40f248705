"""What a kernel inherits from the functions it reaches: registers, barriers, stack, recursion.

One that sets the number of its registers itself (REG_RECONFIG), or reaches a function that does,
keeps its own count.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from elfnumbers cimport SHF_BARRIERS, SHF_BARRIERS_FIRST
from sectionkinds cimport IS_RECORDS, KIND
from tables.attributes cimport find_record, register_limit
from attributetypes cimport EIATTR_REG_RECONFIG, EIATTR_TOOLS_PATCH_FUNC
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from tables.graph cimport CallGraph, CallRows, calls_of, graph_init, is_idle
from pylink._native.tables cimport Functions, MergedTables
from tables.kinds cimport is_a, is_owned
from tables.rows cimport (
    EF_DEFINED, EF_INNER, EF_KERNEL, EF_LIVE, EF_UNBOUNDED, E_FUNC, KEEPS_ALL, KEEPS_REGISTERS,
    NO_STACK_BOUND, RESOLUTION_WON, EntityRow, FunctionRow, SectionRow, is_root,
)
from tables.views cimport MergedView, ObjectsView
from traits cimport TRAIT_EARLY_FILES


# State of one depth-first search that finds strongly connected components (Tarjan): a component
# of several nodes, or one that calls itself, is recursion.
ctypedef struct Search:
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
    """Register and stack need of every function, O(calls): fills `functions`."""
    merged.fill()
    cdef Search s
    cdef CallRows calls = calls_of(merged)
    cdef Scratch scratch
    merged.objects.view(&s.objects)
    merged.view(&s.merged)
    cdef bytes result = PyBytes_FromStringAndSize(NULL, s.merged.entity_count * sizeof(FunctionRow))
    s.rows = <FunctionRow*>PyBytes_AS_STRING(result)
    scratch_init(&scratch)
    try:
        graph_init(&s.graph, &scratch, &calls)
        take_room(&s, &scratch, calls.nodes)
        if scratch.failed:
            raise MemoryError
        with nogil:
            find_info(&s)
            start_search(&s)
            search(&s)
            count_recursive(&s)
            fill_rows(&s)
    finally:
        scratch_free(&scratch)
    merged.functions = Functions(result)


cdef void take_room(Search* s, Scratch* scratch, size_t nodes) noexcept:
    s.order = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    s.low = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    s.next_edge = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    s.path = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    s.pending = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    s.on_pending = <uint8_t*>scratch_zeros(scratch, nodes, 1)
    s.reconfigures = <uint8_t*>scratch_zeros(scratch, nodes, 1)
    s.regcount = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    s.highest = <int32_t*>scratch_zeros(scratch, nodes, 4)
    s.stack = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    s.kernel = <uint8_t*>scratch_zeros(scratch, nodes, 1)
    s.barriers = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    s.unbounded = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    s.last = <uint32_t*>scratch_zeros(scratch, nodes, 4)


cdef void start_search(Search* s) noexcept nogil:
    """What each function needs by itself."""
    cdef const EntityRow* e
    cdef const SectionRow* info
    cdef int32_t section
    cdef size_t i
    for i in range(s.graph.nodes):
        s.highest[i] = <int32_t>i
    for i in range(s.merged.entity_count):
        e = &s.merged.entities[i]
        section = s.rows[i].merc_info if s.rows[i].merc_info >= 0 else s.rows[i].info
        if section >= 0:
            info = &s.objects.sections[section]
            s.reconfigures[i] = find_record(s.objects.arena + info.offset, info.size,
                                            EIATTR_REG_RECONFIG) != NULL
        s.kernel[i] = e.flags & EF_KERNEL != 0
        if e.flags & EF_DEFINED:
            s.regcount[i] = e.regcount
            if e.flags & EF_UNBOUNDED:
                s.stack[i] = NO_STACK_BOUND
            if s.objects.traits & TRAIT_EARLY_FILES:
                s.barriers[i] = flag_barriers(s, e)


cdef void fill_rows(Search* s) noexcept nogil:
    cdef const EntityRow* e = s.merged.entities
    cdef FunctionRow* row
    cdef int64_t alone = lone_kernel(s)
    cdef size_t i
    for i in range(s.merged.entity_count):
        row = &s.rows[i]
        row.keeps = 0
        row.regcount = e[i].regcount
        row.raised_by = s.highest[i] if s.highest[i] != <int32_t>i else -1
        row.stack = s.stack[i]
        row.barriers = 0
        if e[i].flags & EF_KERNEL:
            row.barriers = s.barriers[i]
            row.keeps = find_kept_parts(s, i, alone)
            if row.keeps:
                row.raised_by = -1
            else:
                row.regcount = s.regcount[i]


cdef inline uint32_t flag_barriers(const Search* s, const EntityRow* e) noexcept nogil:
    """Barriers by sh_flags, where objects before CUDA 13.0 for targets below sm_100 have them."""
    cdef int32_t section = s.objects.symbols[e.winner].section
    if section < 0:
        return 0
    return <uint32_t>((s.objects.sections[section].flags & SHF_BARRIERS) >> SHF_BARRIERS_FIRST)


cdef int64_t lone_kernel(const Search* s) noexcept nogil:
    """The only kernel that is alive for its own sake; -1 without, or with others."""
    cdef const EntityRow* e = s.merged.entities
    cdef size_t i
    cdef int64_t kernel = -1
    for i in range(s.merged.entity_count):
        if is_root(&e[i]) and e[i].flags & EF_LIVE:
            if kernel >= 0:
                return -1
            kernel = <int64_t>i
    return kernel


cdef uint32_t find_kept_parts(const Search* s, size_t kernel, int64_t alone) noexcept nogil:
    """KeepsBit bits of a kernel. A lone one takes over from every live function, others nothing.

    Nor does an idle one.
    """
    cdef const EntityRow* e = s.merged.entities
    cdef size_t i
    if is_idle(&e[kernel]):
        return KEEPS_REGISTERS | KEEPS_ALL
    if alone < 0:
        return KEEPS_REGISTERS if s.reconfigures[kernel] else 0
    if <int64_t>kernel != alone:
        return KEEPS_REGISTERS | KEEPS_ALL
    for i in range(s.merged.entity_count):
        if s.reconfigures[i] and e[i].flags & EF_LIVE:
            return KEEPS_REGISTERS
    return 0


cdef void search(Search* s) noexcept nogil:
    cdef size_t root, depth = 0, waiting = 0
    cdef uint32_t visits = 0, node, to
    for root in range(s.graph.nodes):
        if s.order[root]:
            continue
        node = <uint32_t>root
        visits += 1
        s.order[node] = s.low[node] = visits
        s.path[0] = node
        depth = 1
        s.pending[waiting] = node
        waiting += 1
        s.on_pending[node] = True
        while depth:
            node = s.path[depth - 1]
            if s.graph.start[node] + s.next_edge[node] < s.graph.start[node + 1]:
                to = s.graph.edges[s.graph.start[node] + s.next_edge[node]]
                s.next_edge[node] += 1
                if not s.order[to]:
                    visits += 1
                    s.order[to] = s.low[to] = visits
                    s.path[depth] = to
                    depth += 1
                    s.pending[waiting] = to
                    waiting += 1
                    s.on_pending[to] = True
                elif s.on_pending[to]:
                    if s.order[to] < s.low[node]:
                        s.low[node] = s.order[to]
                    if to == node:
                        s.stack[node] = NO_STACK_BOUND
                else:
                    inherit(s, node, to)
                continue
            depth -= 1
            if s.low[node] == s.order[node]:
                waiting = close_component(s, node, waiting)
            if depth:
                to = s.path[depth - 1]
                if s.low[node] < s.low[to]:
                    s.low[to] = s.low[node]
                if not s.on_pending[node]:
                    inherit(s, to, node)


cdef void count_recursive(Search* s) noexcept nogil:
    """How many functions that a kernel calls, directly or through a pointer, have no bound.

    A function counts once for a prototype, whatever number of files takes its address.
    """
    cdef const CallGraph* graph = &s.graph
    cdef const uint32_t* stack = s.stack
    cdef size_t n = s.merged.entity_count, i
    cdef uint32_t j, to
    for i in range(n, graph.nodes):
        for j in range(graph.start[i], graph.start[i + 1]):
            to = graph.edges[j]
            if s.last[to] != i:
                s.last[to] = <uint32_t>i
                s.unbounded[i] += stack[to] == NO_STACK_BOUND
    for i in range(n):
        s.rows[i].recursive_calls = 0
        if not s.merged.entities[i].flags & EF_KERNEL or stack[i] != NO_STACK_BOUND:
            continue
        for j in range(graph.start[i], graph.start[i + 1]):
            to = graph.edges[j]
            if to < n:
                s.rows[i].recursive_calls += stack[to] == NO_STACK_BOUND
            else:
                s.rows[i].recursive_calls += s.unbounded[to]


cdef inline void inherit(Search* s, uint32_t caller, uint32_t callee) noexcept nogil:
    if s.regcount[callee] > s.regcount[caller] or (
            # The function that was created first is named if several are equal.
            s.regcount[callee] == s.regcount[caller] and not s.kernel[caller]
            and s.highest[callee] < s.highest[caller]):
        s.regcount[caller] = s.regcount[callee]
        s.highest[caller] = s.highest[callee]
    if s.stack[callee] > s.stack[caller]:
        s.stack[caller] = s.stack[callee]
    s.barriers[caller] = max(s.barriers[caller], s.barriers[callee])
    s.reconfigures[caller] |= s.reconfigures[callee]


cdef size_t close_component(Search* s, uint32_t root, size_t waiting) noexcept nogil:
    """Give the component its common values; `stack` is that of the deepest callee seen so far."""
    cdef const EntityRow* e = s.merged.entities
    cdef size_t first = waiting, i
    cdef uint32_t node, best = root, stack = 0, barriers = 0
    cdef uint8_t reconfigures = 0
    while True:
        first -= 1
        node = s.pending[first]
        s.on_pending[node] = False
        if s.regcount[node] > s.regcount[best]:
            best = node
        if s.stack[node] > stack:
            stack = s.stack[node]
        barriers = max(barriers, s.barriers[node])
        reconfigures |= s.reconfigures[node]
        if node == root:
            break
    if waiting - first > 1:
        stack = NO_STACK_BOUND
    for i in range(first, waiting):
        node = s.pending[i]
        if s.regcount[best] > s.regcount[node]:
            s.regcount[node] = s.regcount[best]
            s.highest[node] = s.highest[best]
        s.reconfigures[node] = reconfigures
        s.barriers[node] = barriers
        s.stack[node] = stack
        if (stack != NO_STACK_BOUND and node < s.merged.entity_count
                and e[node].flags & EF_DEFINED):
            s.stack[node] = stack + e[node].frame
    return first


cdef void find_info(Search* s) noexcept nogil:
    """The records of each function, in both forms."""
    cdef const SectionRow* section
    cdef FunctionRow* row
    cdef size_t i
    for i in range(s.merged.entity_count):
        s.rows[i].info = s.rows[i].merc_info = -1
    for i in range(s.objects.section_count):
        section = &s.objects.sections[i]
        if (s.merged.section_resolution[i] != RESOLUTION_WON or not is_a(section.kind, IS_RECORDS)
                or not is_owned(section.kind)):
            continue
        row = &s.rows[s.merged.section_function[i]]
        if KIND[section.kind].mercury:
            row.merc_info = <int32_t>i
        else:
            row.info = <int32_t>i


def find_recursive(MergedTables merged not None):
    """Kernels whose callees ask too much: `(recursive, crowded)`.

    `recursive` lists, in creation order, kernels without a bound on their stack, once for each
    callee without one; `crowded` says whether any kernel reaches a function with more registers
    than the kernel itself was limited to.
    """
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
    """The function created first without TOOLS_PATCH_FUNC in its records; -1 if all have it."""
    cdef ObjectsView v
    cdef const SectionRow* info
    cdef const EntityRow* e = merged.entities.rows
    cdef const FunctionRow* f = merged.functions.rows
    cdef Py_ssize_t i
    merged.objects.view(&v)
    for i in range(<Py_ssize_t>merged.entities.count):
        if e[i].kind != E_FUNC or not e[i].flags & EF_DEFINED or e[i].flags & EF_INNER:
            continue
        info = &v.sections[f[i].info]
        if f[i].info < 0 or find_record(v.arena + info.offset, info.size,
                                        EIATTR_TOOLS_PATCH_FUNC) == NULL:
            return i
    return -1
