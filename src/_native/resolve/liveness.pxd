# Liveness: the entities that the kernels reach over the call graph.

from libc.stdint cimport int32_t, uint8_t, uint32_t

from rownumbers cimport EF_DESELECTED, EF_INNER, EF_KERNEL, EF_LIVE
from tables.graph cimport CallGraph
from tables.rows cimport EntityRow, SectionRow, SymbolRow


# A walk of the call graph.
ctypedef struct Reaching:
    CallGraph graph
    EntityRow* entities
    size_t count
    uint8_t* seen               # by node
    uint32_t* stack             # nodes that it still has before it
    size_t depth


cdef inline void push_node(Reaching* reaching, uint32_t node) noexcept nogil:
    reaching.seen[node] = True
    reaching.stack[reaching.depth] = node
    reaching.depth += 1


cdef inline void flag_reached(Reaching* reaching, uint32_t flags) noexcept nogil:
    """Flag what the nodes on the stack reach and what was not yet seen."""
    cdef uint32_t j, node
    while reaching.depth:
        reaching.depth -= 1
        node = reaching.stack[reaching.depth]
        if node < reaching.count:
            reaching.entities[node].flags |= flags
        for j in range(reaching.graph.start[node], reaching.graph.start[node + 1]):
            if not reaching.seen[reaching.graph.edges[j]]:
                push_node(reaching, reaching.graph.edges[j])


cdef inline size_t count_selected(const EntityRow* e, size_t n,
                                  const uint8_t* chosen) noexcept nogil:
    """The number of kernels that are selected."""
    cdef size_t i, count = 0
    for i in range(n):
        count += e[i].flags & EF_KERNEL and chosen[i]
    return count


cdef inline void follow_owners(const SymbolRow* symbols, const SectionRow* sections,
                               const int32_t* entity, EntityRow* e, size_t n) noexcept nogil:
    """Functions inside of others live and die with these."""
    cdef size_t i
    cdef int32_t owner, section_symbol
    for i in range(n):
        if e[i].flags & EF_INNER:
            section_symbol = sections[symbols[e[i].winner].section].target
            owner = entity[section_symbol]
            e[i].flags &= ~<uint32_t>(EF_LIVE | EF_DESELECTED)
            if e[owner].winner == section_symbol:
                e[i].flags |= e[owner].flags & (EF_LIVE | EF_DESELECTED)
