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
from pylink._native.tables cimport Functions, MergedTables, ObjectTables
from tables.kinds cimport is_a, is_owned
from tables.rows cimport (
    EF_DEFINED, EF_INNER, EF_KERNEL, EF_LIVE, EF_UNBOUNDED, E_FUNC, KEEPS_ALL, KEEPS_REGISTERS,
    NO_STACK_BOUND, RESOLUTION_WON, EntityRow, FunctionRow, SectionRow, SymbolRow, is_root,
)
from traits cimport TRAIT_EARLY_FILES


# State of one depth-first search that finds strongly connected components (Tarjan): a component
# of several nodes, or one that calls itself, is recursion.
ctypedef struct Search:
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


def analyze(MergedTables merged not None):
    """Register and stack need of every function, O(calls): fills `functions`."""
    merged.fill()
    cdef size_t n = merged.entities.count
    cdef size_t nodes = n + merged.prototypes.count, i
    cdef const EntityRow* e = merged.entities.rows
    cdef bytes result = PyBytes_FromStringAndSize(NULL, n * sizeof(FunctionRow))
    cdef FunctionRow* rows = <FunctionRow*>PyBytes_AS_STRING(result)
    cdef uint32_t* unbounded
    cdef uint32_t* last
    cdef int64_t alone
    cdef Search s
    cdef CallRows calls = calls_of(merged)
    cdef Scratch scratch
    cdef const SectionRow* sections = merged.objects.sections.rows
    cdef const SymbolRow* symbols = merged.objects.symbols.rows
    cdef bint flags_count = merged.objects.traits & TRAIT_EARLY_FILES != 0
    scratch_init(&scratch)
    try:
        graph_init(&s.graph, &scratch, &calls)
        s.order = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        s.low = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        s.next_edge = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        s.path = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        s.pending = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        s.on_pending = <uint8_t*>scratch_zeros(&scratch, nodes, 1)
        s.reconfigures = <uint8_t*>scratch_zeros(&scratch, nodes, 1)
        s.regcount = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        s.highest = <int32_t*>scratch_zeros(&scratch, nodes, 4)
        s.stack = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        s.kernel = <uint8_t*>scratch_zeros(&scratch, nodes, 1)
        s.barriers = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        unbounded = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        last = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        if scratch.failed:
            raise MemoryError
        find_info(rows, n, merged)
        find_reconfiguring(merged, rows, n, s.reconfigures)
        with nogil:
            for i in range(nodes):
                s.highest[i] = <int32_t>i
                s.kernel[i] = i < n and e[i].flags & EF_KERNEL != 0
                if i < n and e[i].flags & EF_DEFINED:
                    s.regcount[i] = e[i].regcount
                    if e[i].flags & EF_UNBOUNDED:
                        s.stack[i] = NO_STACK_BOUND
                    if flags_count:
                        s.barriers[i] = flag_barriers(sections, symbols, &e[i])
            search(&s, e, n)
            count_recursive(&s, e, n, unbounded, last, rows)
            alone = lone_kernel(e, n)
            for i in range(n):
                rows[i].keeps = 0
                rows[i].regcount = e[i].regcount
                rows[i].raised_by = s.highest[i] if s.highest[i] != <int32_t>i else -1
                rows[i].stack = s.stack[i]
                rows[i].barriers = 0
                if e[i].flags & EF_KERNEL:
                    rows[i].barriers = s.barriers[i]
                    rows[i].keeps = find_kept_parts(&s, e, n, i, alone)
                    if rows[i].keeps:
                        rows[i].raised_by = -1
                    else:
                        rows[i].regcount = s.regcount[i]
    finally:
        scratch_free(&scratch)
    merged.functions = Functions(result)


cdef inline uint32_t flag_barriers(const SectionRow* sections, const SymbolRow* symbols,
                                   const EntityRow* e) noexcept nogil:
    """Barriers by sh_flags, where objects before CUDA 13.0 for targets below sm_100 have them."""
    cdef int32_t section = symbols[e.winner].section
    if section < 0:
        return 0
    return <uint32_t>((sections[section].flags & SHF_BARRIERS) >> SHF_BARRIERS_FIRST)


cdef int64_t lone_kernel(const EntityRow* e, size_t n) noexcept nogil:
    """The only kernel that is alive for its own sake; -1 without, or with others."""
    cdef size_t i
    cdef int64_t found = -1
    for i in range(n):
        if is_root(&e[i]) and e[i].flags & EF_LIVE:
            if found >= 0:
                return -1
            found = <int64_t>i
    return found


cdef uint32_t find_kept_parts(const Search* s, const EntityRow* e, size_t n, size_t kernel,
                            int64_t alone) noexcept nogil:
    """KeepsBit bits of a kernel. A lone one takes over from every live function, others nothing.

    Nor does an idle one.
    """
    cdef size_t i
    if is_idle(&e[kernel]):
        return KEEPS_REGISTERS | KEEPS_ALL
    if alone < 0:
        return KEEPS_REGISTERS if s.reconfigures[kernel] else 0
    if <int64_t>kernel != alone:
        return KEEPS_REGISTERS | KEEPS_ALL
    for i in range(n):
        if s.reconfigures[i] and e[i].flags & EF_LIVE:
            return KEEPS_REGISTERS
    return 0


cdef void search(Search* s, const EntityRow* e, size_t n) noexcept nogil:
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
                waiting = close_component(s, node, waiting, e, n)
            if depth:
                to = s.path[depth - 1]
                if s.low[node] < s.low[to]:
                    s.low[to] = s.low[node]
                if not s.on_pending[node]:
                    inherit(s, to, node)


cdef void count_recursive(const Search* s, const EntityRow* e, size_t n, uint32_t* unbounded,
                          uint32_t* last, FunctionRow* rows) noexcept nogil:
    """How many functions that a kernel calls, directly or through a pointer, have no bound.

    A function counts once for a prototype, whatever number of files takes its address: `unbounded`
    and `last` are zeros, one per node.
    """
    cdef const CallGraph* graph = &s.graph
    cdef const uint32_t* stack = s.stack
    cdef size_t i
    cdef uint32_t j, to
    for i in range(n, graph.nodes):
        for j in range(graph.start[i], graph.start[i + 1]):
            to = graph.edges[j]
            if last[to] != i:
                last[to] = <uint32_t>i
                unbounded[i] += stack[to] == NO_STACK_BOUND
    for i in range(n):
        rows[i].recursive_calls = 0
        if not e[i].flags & EF_KERNEL or stack[i] != NO_STACK_BOUND:
            continue
        for j in range(graph.start[i], graph.start[i + 1]):
            to = graph.edges[j]
            if to < n:
                rows[i].recursive_calls += stack[to] == NO_STACK_BOUND
            else:
                rows[i].recursive_calls += unbounded[to]


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


cdef size_t close_component(Search* s, uint32_t root, size_t waiting, const EntityRow* e,
                            size_t n) noexcept nogil:
    """Give the component its common values; `stack` is that of the deepest callee seen so far."""
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
        if stack != NO_STACK_BOUND and node < n and e[node].flags & EF_DEFINED:
            s.stack[node] = stack + e[node].frame
    return first


cdef void find_reconfiguring(MergedTables merged, const FunctionRow* rows, size_t n,
                             uint8_t* reconfigures):
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(merged.objects.arena)
    cdef const SectionRow* s = merged.objects.sections.rows
    cdef size_t i
    cdef int32_t info
    for i in range(n):
        info = rows[i].merc_info if rows[i].merc_info >= 0 else rows[i].info
        if info >= 0:
            reconfigures[i] = find_record(base + s[info].offset, s[info].size,
                                          EIATTR_REG_RECONFIG) != NULL


cdef void find_info(FunctionRow* rows, size_t n, MergedTables merged):
    cdef const SectionRow* s = merged.objects.sections.rows
    cdef const uint8_t* resolution = merged.section_resolution.rows
    cdef size_t i
    cdef int32_t e
    for i in range(n):
        rows[i].info = rows[i].merc_info = -1
    for i in range(merged.objects.sections.count):
        if (resolution[i] != RESOLUTION_WON or not is_a(s[i].kind, IS_RECORDS)
                or not is_owned(s[i].kind)):
            continue
        e = merged.section_function.rows[i]
        if KIND[s[i].kind].mercury:
            rows[e].merc_info = <int32_t>i
        else:
            rows[e].info = <int32_t>i


def find_recursive(MergedTables merged not None):
    """Kernels whose callees ask too much: `(recursive, crowded)`.

    `recursive` lists, in creation order, kernels without a bound on their stack, once for each
    callee without one; `crowded` says whether any kernel reaches a function with more registers
    than the kernel itself was limited to.
    """
    cdef ObjectTables objects = merged.objects
    cdef size_t n = merged.entities.count, i
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef const SectionRow* s = objects.sections.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef const FunctionRow* f = merged.functions.rows
    cdef list recursive = []
    cdef bint crowded = False
    for i in range(n):
        if not e[i].flags & EF_KERNEL or not e[i].flags & EF_LIVE or is_idle(&e[i]):
            continue
        recursive.extend([i] * f[i].recursive_calls)
        if f[i].raised_by >= 0 and f[i].info >= 0:
            crowded |= f[i].regcount > register_limit(base + s[f[i].info].offset,
                                                      s[f[i].info].size)
    return recursive, crowded


def find_unpatched(MergedTables merged not None):
    """The function created first without TOOLS_PATCH_FUNC in its records; -1 if all have it."""
    cdef ObjectTables objects = merged.objects
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef const SectionRow* s = objects.sections.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef const FunctionRow* f = merged.functions.rows
    cdef int32_t info
    cdef Py_ssize_t i
    for i in range(<Py_ssize_t>merged.entities.count):
        if e[i].kind != E_FUNC or not e[i].flags & EF_DEFINED or e[i].flags & EF_INNER:
            continue
        info = f[i].info
        if info < 0 or find_record(base + s[info].offset, s[info].size,
                                   EIATTR_TOOLS_PATCH_FUNC) == NULL:
            return i
    return -1
