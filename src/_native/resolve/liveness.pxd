# Which entities the kernels reach over the call graph.

from libc.stdint cimport int32_t, uint8_t, uint32_t

from tables.graph cimport CallGraph
from tables.rows cimport (
    EF_DESELECTED, EF_INNER, EF_KERNEL, EF_LIVE, EntityRow, SectionRow, SymbolRow,
)


# A walk of the call graph.
ctypedef struct Reaching:
    CallGraph graph
    EntityRow* entities
    size_t count
    uint8_t* seen               # by node
    uint32_t* stack             # nodes that it still has before it
    size_t depth


cdef inline void visit(Reaching* w, uint32_t node) noexcept nogil:
    w.seen[node] = True
    w.stack[w.depth] = node
    w.depth += 1


cdef inline void reach(Reaching* w, uint32_t flags) noexcept nogil:
    """Flag what the nodes on the stack reach and what was not yet seen."""
    cdef uint32_t j, at
    while w.depth:
        w.depth -= 1
        at = w.stack[w.depth]
        if at < w.count:
            w.entities[at].flags |= flags
        for j in range(w.graph.start[at], w.graph.start[at + 1]):
            if not w.seen[w.graph.edges[j]]:
                visit(w, w.graph.edges[j])


cdef inline size_t count_selected(const EntityRow* e, size_t n,
                                  const uint8_t* chosen) noexcept nogil:
    """How many kernels are selected."""
    cdef size_t i, count = 0
    for i in range(n):
        count += e[i].flags & EF_KERNEL and chosen[i]
    return count


cdef inline void follow_owners(const SymbolRow* symbols, const SectionRow* sections,
                               const int32_t* entity, EntityRow* e, size_t n) noexcept nogil:
    """Functions inside of others live and die with these."""
    cdef size_t i
    cdef int32_t owner, own
    for i in range(n):
        if e[i].flags & EF_INNER:
            own = sections[symbols[e[i].winner].section].target
            owner = entity[own]
            e[i].flags &= ~<uint32_t>(EF_LIVE | EF_DESELECTED)
            if e[owner].winner == own:
                e[i].flags |= e[owner].flags & (EF_LIVE | EF_DESELECTED)
