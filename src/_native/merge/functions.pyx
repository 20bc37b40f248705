"""Registers, barriers, stack and recursion that a kernel inherits from the functions it reaches.

Each function takes the largest register count and barrier count of itself and its callees. Its
stack is its own frame plus the deepest stack of a callee. So the values go up the call graph, from
callees to callers. An example, where K calls F and G, and F calls G:

    function   own registers, frame   with callees
    G          40, 16                 40, 16
    F          24, 8                  40, 24
    K          32, 0                  40, 24

Functions that call each other in a cycle have the same values, and no bound on their stack. They
are a strongly connected component, and `find_components` finds all of these in one depth-first
search (Tarjan's algorithm), a component after those that it calls: O(functions + calls).

A kernel that sets the number of its registers itself (REG_RECONFIG), or reaches a function that
does, keeps its own count. `find_kept_parts` has the exceptions.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t

from attributetypes cimport EIATTR_REG_RECONFIG, EIATTR_TOOLS_PATCH_FUNC
from base.memory cimport check_memory
from base.prefetch cimport AHEAD, prefetch
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from elfnumbers cimport SHF_BARRIERS, SHF_BARRIERS_FIRST
from pylink._native.results cimport MergedTables
from pylink._native.tables cimport Functions
from rownumbers cimport (
    EF_DEFINED, EF_INNER, EF_KERNEL, EF_LIVE, EF_UNBOUNDED, E_FUNC, KEEPS_ALL, KEEPS_REGISTERS,
    NO_STACK_BOUND, RESOLUTION_WON,
)
from sectionkinds cimport IS_RECORDS, KIND
from tables.attributes cimport find_record, register_limit
from tables.graph cimport CallGraph, CallRows, NodeRef, calls_of, graph_init, is_idle
from tables.kinds cimport is_a, is_owned
from tables.rows cimport (
    EntityCounter, EntityNumber, EntityRef, EntityRow, FunctionRow, SectionNumber, SectionRow,
    is_root,
)
from tables.views cimport MergedView, ObjectsView
from traits cimport TRAIT_EARLY_FILES


# State of the depth-first search. Arrays are by node: an entity or a prototype (tables/graph.pxd).
# A component of several nodes, or a node that calls itself, is recursion.
ctypedef struct ComponentSearch:
    ObjectsView objects
    MergedView merged
    FunctionRow* rows               # by entity: the result
    CallGraph graph
    uint32_t* visit_number          # by node: 1 for the one visited first, 0 before the visit
    uint32_t* lowest_reached        # by node: lowest visit number known of its component (lowlink)
    uint32_t* next_edge             # by node: number of edges that have been followed
    NodeRef* path                   # list of nodes, from the root of the search to the current one
    NodeRef* pending                # list of nodes that are not yet in a component
    uint8_t* on_pending             # by node: whether the node is in that list
    uint32_t* regcount              # by node: the largest found so far
    EntityNumber* regcount_from     # by node: entity that `regcount` comes from
    uint32_t* stack                 # by node: bytes of the deepest path so far, or NO_STACK_BOUND
    uint32_t* barriers              # by node: the largest count found so far
    uint8_t* is_kernel              # by node: 1 for a kernel
    uint8_t* reconfigures           # by node: 1 if it, or one that it reaches, has REG_RECONFIG
    uint32_t* unbounded             # by node, a prototype: how many of its functions have no bound
    NodeRef* last_prototype         # by node, a function: node of the prototype it last counted for


def analyze(MergedTables merged not None):
    """Compute registers and stack of every function, O(calls): fills `functions`."""
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
        allocate_search(&search, &scratch, calls.nodes)
        check_memory(not scratch.failed)
        with nogil:
            find_info(&search)
            start_search(&search)
            find_components(&search)
            count_recursive(&search)
            fill_rows(&search)
    finally:
        scratch_free(&scratch)
    merged.functions = Functions(result)


cdef void allocate_search(ComponentSearch* search, Scratch* scratch, size_t nodes) noexcept:
    """Allocate the state of the search, all zeros; `scratch` frees it."""
    search.visit_number = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.lowest_reached = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.next_edge = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.path = <NodeRef*>scratch_zeros(scratch, nodes, 4)
    search.pending = <NodeRef*>scratch_zeros(scratch, nodes, 4)
    search.on_pending = <uint8_t*>scratch_zeros(scratch, nodes, 1)
    search.reconfigures = <uint8_t*>scratch_zeros(scratch, nodes, 1)
    search.regcount = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.regcount_from = <EntityNumber*>scratch_zeros(scratch, nodes, 4)
    search.stack = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.is_kernel = <uint8_t*>scratch_zeros(scratch, nodes, 1)
    search.barriers = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.unbounded = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    search.last_prototype = <NodeRef*>scratch_zeros(scratch, nodes, 4)


cdef inline SectionNumber attributes_of(const ComponentSearch* search,
                                        EntityCounter entity) noexcept nogil:
    """Return the section with a function's attributes, if possible the mercury one; -1 for none."""
    cdef const FunctionRow* row = &search.rows[entity]
    return row.merc_info if row.merc_info >= 0 else row.info


cdef inline void fetch_attributes(const ComponentSearch* search,
                                  EntityCounter entity) noexcept nogil:
    """Fetch the attributes of functions after `entity` into the cache: first rows, then bytes."""
    cdef SectionNumber section
    if entity + 2 * AHEAD >= search.merged.entity_count:
        return
    section = attributes_of(search, entity + 2 * AHEAD)
    if section >= 0:
        prefetch(&search.objects.sections[section])
    section = attributes_of(search, entity + AHEAD)
    if section >= 0:
        prefetch(search.objects.arena + search.objects.sections[section].offset)


cdef void start_search(ComponentSearch* search) noexcept nogil:
    """Set what each function has by itself, before it inherits from others.

    That is its registers, its barriers (release 12.9 alone), whether it has REG_RECONFIG, and
    whether its stack has no bound. Frames are added later (`close_component`).
    """
    cdef const EntityRow* entity
    cdef const SectionRow* info
    cdef SectionNumber section
    cdef size_t i
    for i in range(search.graph.nodes):
        search.regcount_from[i] = <EntityNumber>i
    for i in range(search.merged.entity_count):
        entity = &search.merged.entities[i]
        fetch_attributes(search, i)
        section = attributes_of(search, i)
        if section >= 0:
            info = &search.objects.sections[section]
            search.reconfigures[i] = find_record(search.objects.arena + info.offset, info.size,
                                                 EIATTR_REG_RECONFIG) != NULL
        search.is_kernel[i] = entity.flags & EF_KERNEL != 0
        if entity.flags & EF_DEFINED:
            search.regcount[i] = entity.regcount
            if entity.flags & EF_UNBOUNDED:
                search.stack[i] = NO_STACK_BOUND
            if search.objects.traits & TRAIT_EARLY_FILES:
                search.barriers[i] = barriers_of_flags(search, entity)


cdef void fill_rows(ComponentSearch* search) noexcept nogil:
    """Fill the rows of all functions; only kernels get barriers and inherited register counts.

    Device functions also get `raised_by`, the function whose count they pass on. A kernel that
    keeps its own register count has none.
    """
    cdef const EntityRow* entities = search.merged.entities
    cdef FunctionRow* row
    cdef int64_t lone_kernel = find_lone_kernel(search)     # the only live root, or -1
    cdef size_t i
    for i in range(search.merged.entity_count):
        row = &search.rows[i]
        row.keeps = 0
        row.regcount = entities[i].regcount
        row.raised_by = (search.regcount_from[i] if search.regcount_from[i] != <EntityNumber>i
                         else -1)
        row.stack = search.stack[i]
        row.barriers = 0
        if entities[i].flags & EF_KERNEL:
            row.barriers = search.barriers[i]
            row.keeps = find_kept_parts(search, i, lone_kernel)
            if row.keeps:
                row.raised_by = -1
            else:
                row.regcount = search.regcount[i]


cdef inline uint32_t barriers_of_flags(const ComponentSearch* search,
                                       const EntityRow* function) noexcept nogil:
    """Return a function's number of barriers from sh_flags, where release 12.9 has it."""
    cdef SectionNumber section = search.objects.symbols[function.winner].section
    if section < 0:
        return 0
    return <uint32_t>((search.objects.sections[section].flags & SHF_BARRIERS) >> SHF_BARRIERS_FIRST)


cdef int64_t find_lone_kernel(const ComponentSearch* search) noexcept nogil:
    """Return the only kernel that is a root and alive; -1 if there is none, or several."""
    cdef const EntityRow* entities = search.merged.entities
    cdef size_t i
    cdef int64_t kernel = -1
    for i in range(search.merged.entity_count):
        if is_root(&entities[i]) and entities[i].flags & EF_LIVE:
            if kernel >= 0:
                return -1
            kernel = <int64_t>i
    return kernel


cdef uint32_t find_kept_parts(const ComponentSearch* search, EntityCounter kernel,
                              int64_t lone_kernel) noexcept nogil:
    """Return the KeepsFlag bits of a kernel: which of its own values no callee raises.

    `lone_kernel` is the only live root: a kernel, with a selection a selected one. It keeps its
    registers if any live function sets their number (REG_RECONFIG); all other kernels keep
    everything. Without a lone kernel (-1), a kernel keeps its registers if it or a function it
    reaches sets their number. An idle kernel, which is neither selected nor launched by device
    code, always keeps everything.
    """
    cdef const EntityRow* entities = search.merged.entities
    cdef size_t i
    if is_idle(&entities[kernel]):
        return KEEPS_REGISTERS | KEEPS_ALL
    if lone_kernel < 0:
        return KEEPS_REGISTERS if search.reconfigures[kernel] else 0
    if kernel != <EntityCounter>lone_kernel:
        return KEEPS_REGISTERS | KEEPS_ALL
    for i in range(search.merged.entity_count):
        if search.reconfigures[i] and entities[i].flags & EF_LIVE:
            return KEEPS_REGISTERS
    return 0


cdef void find_components(ComponentSearch* search) noexcept nogil:
    """Find the strongly connected components, and propagate values from callees to callers."""
    cdef size_t root, depth = 0, pending_count = 0
    cdef uint32_t visits = 0
    cdef NodeRef node, caller, callee
    for root in range(search.graph.nodes):
        if search.visit_number[root]:
            continue
        node = <NodeRef>root
        visits += 1
        search.visit_number[node] = search.lowest_reached[node] = visits
        search.path[0] = node
        depth = 1
        search.pending[pending_count] = node
        pending_count += 1
        search.on_pending[node] = True
        while depth:
            node = search.path[depth - 1]
            if search.graph.start[node] + search.next_edge[node] < search.graph.start[node + 1]:
                callee = search.graph.edges[search.graph.start[node] + search.next_edge[node]]
                search.next_edge[node] += 1
                if not search.visit_number[callee]:
                    visits += 1
                    search.visit_number[callee] = search.lowest_reached[callee] = visits
                    search.path[depth] = callee
                    depth += 1
                    search.pending[pending_count] = callee
                    pending_count += 1
                    search.on_pending[callee] = True
                elif search.on_pending[callee]:
                    if search.visit_number[callee] < search.lowest_reached[node]:
                        search.lowest_reached[node] = search.visit_number[callee]
                    if callee == node:
                        search.stack[node] = NO_STACK_BOUND
                else:
                    inherit_values(search, node, callee)
                continue
            depth -= 1
            if search.lowest_reached[node] == search.visit_number[node]:
                pending_count = close_component(search, node, pending_count)
            if depth:
                caller = search.path[depth - 1]
                if search.lowest_reached[node] < search.lowest_reached[caller]:
                    search.lowest_reached[caller] = search.lowest_reached[node]
                if not search.on_pending[node]:
                    inherit_values(search, caller, node)


cdef void count_recursive(ComponentSearch* search) noexcept nogil:
    """Count, for each kernel, the functions without a bound on their stack that it calls.

    Calls through a pointer count, too: a function counts once for a prototype, whatever number of
    files takes its address.
    """
    cdef const CallGraph* graph = &search.graph
    cdef const uint32_t* stack = search.stack
    cdef size_t entity_count = search.merged.entity_count, i
    cdef uint32_t j
    cdef NodeRef callee
    for i in range(entity_count, graph.nodes):
        for j in range(graph.start[i], graph.start[i + 1]):
            callee = graph.edges[j]
            if search.last_prototype[callee] != i:
                search.last_prototype[callee] = <NodeRef>i
                search.unbounded[i] += stack[callee] == NO_STACK_BOUND
    for i in range(entity_count):
        search.rows[i].recursive_calls = 0
        if not search.merged.entities[i].flags & EF_KERNEL or stack[i] != NO_STACK_BOUND:
            continue
        for j in range(graph.start[i], graph.start[i + 1]):
            callee = graph.edges[j]
            if callee < entity_count:
                search.rows[i].recursive_calls += stack[callee] == NO_STACK_BOUND
            else:
                search.rows[i].recursive_calls += search.unbounded[callee]


cdef inline void inherit_values(ComponentSearch* search, NodeRef caller,
                                NodeRef callee) noexcept nogil:
    """Raise the values of a caller to those of a callee."""
    if search.regcount[callee] > search.regcount[caller] or (
            # A device function passes on the entity with the lowest number among those of the
            # largest count. A kernel keeps its own, or that of the first call with that count.
            search.regcount[callee] == search.regcount[caller] and not search.is_kernel[caller]
            and search.regcount_from[callee] < search.regcount_from[caller]):
        search.regcount[caller] = search.regcount[callee]
        search.regcount_from[caller] = search.regcount_from[callee]
    if search.stack[callee] > search.stack[caller]:
        search.stack[caller] = search.stack[callee]
    search.barriers[caller] = max(search.barriers[caller], search.barriers[callee])
    search.reconfigures[caller] |= search.reconfigures[callee]


cdef size_t close_component(ComponentSearch* search, NodeRef root,
                            size_t pending_count) noexcept nogil:
    """Take the component of `root` off the pending nodes, and give its nodes common values.

    Until now `stack` of a node is that of its deepest callee, without its own frame. Returns the
    number of nodes that stay pending.
    """
    cdef const EntityRow* entities = search.merged.entities
    cdef size_t first = pending_count, i
    cdef NodeRef node, best = root
    cdef uint32_t stack = 0, barriers = 0
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
            search.regcount_from[node] = search.regcount_from[best]
        search.reconfigures[node] = reconfigures
        search.barriers[node] = barriers
        search.stack[node] = stack
        if (stack != NO_STACK_BOUND and node < search.merged.entity_count
                and entities[<EntityRef>node].flags & EF_DEFINED):
            search.stack[node] = stack + entities[<EntityRef>node].frame
    return first


cdef void find_info(ComponentSearch* search) noexcept nogil:
    """Find the sections with the attributes of each function's linked copy."""
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
            row.merc_info = <SectionNumber>i
        else:
            row.info = <SectionNumber>i


def find_recursive(MergedTables merged not None):
    """Return kernels of unbounded stack, and whether any reaches more registers than its limit."""
    cdef ObjectsView objects
    cdef const SectionRow* info
    cdef const EntityRow* entities = merged.entities.rows
    cdef const FunctionRow* functions = merged.functions.rows
    cdef list recursive = []
    cdef bint exceeds_registers = False
    cdef size_t i
    merged.objects.view(&objects)
    for i in range(merged.entities.count):
        if (not entities[i].flags & EF_KERNEL or not entities[i].flags & EF_LIVE
                or is_idle(&entities[i])):
            continue
        recursive.extend([i] * functions[i].recursive_calls)
        if functions[i].raised_by >= 0 and functions[i].info >= 0:
            info = &objects.sections[functions[i].info]
            exceeds_registers |= (functions[i].regcount
                                  > register_limit(objects.arena + info.offset, info.size))
    return recursive, exceeds_registers


def find_unpatched(MergedTables merged not None):
    """Return the first defined function (entity) without the attribute TOOLS_PATCH_FUNC, or -1."""
    cdef ObjectsView objects
    cdef const SectionRow* info
    cdef const EntityRow* entities = merged.entities.rows
    cdef const FunctionRow* functions = merged.functions.rows
    cdef Py_ssize_t i
    merged.objects.view(&objects)
    for i in range(<Py_ssize_t>merged.entities.count):
        if (entities[i].kind != E_FUNC or not entities[i].flags & EF_DEFINED
                or entities[i].flags & EF_INNER):
            continue
        if functions[i].info < 0:
            return i
        info = &objects.sections[functions[i].info]
        if find_record(objects.arena + info.offset, info.size, EIATTR_TOOLS_PATCH_FUNC) == NULL:
            return i
    return -1
