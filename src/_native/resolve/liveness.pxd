# Liveness: walks over the call graph that flag the entities which kernels reach.

from libc.stdint cimport uint8_t, uint32_t

from rownumbers cimport EF_DESELECTED, EF_INNER, EF_KERNEL, EF_LIVE
from tables.graph cimport CallGraph, NodeRef
from tables.rows cimport (
    EntityNumber, EntityRef, EntityRow, SectionRow, SymbolNumber, SymbolRow, function_symbol,
)


# A walk of the call graph. Its nodes are entities, then prototypes (tables/graph.pxd).
ctypedef struct LiveWalk:
    CallGraph graph
    EntityRow* entities
    size_t count                # of entities
    uint8_t* seen               # by node: it is or was on the stack
    NodeRef* stack              # nodes that the walk still has to visit
    size_t depth                # nodes on the stack


cdef inline void push_node(LiveWalk* walk, NodeRef node) noexcept nogil:
    """Put a node that has not been seen on the stack."""
    walk.seen[node] = True
    walk.stack[walk.depth] = node
    walk.depth += 1


cdef inline void flag_reached(LiveWalk* walk, uint32_t flags) noexcept nogil:
    """Add `flags` to the entities on the stack, and to all that they reach.

    Nodes that an earlier walk has seen are skipped. The stack is empty afterwards.
    """
    cdef uint32_t j
    cdef NodeRef node
    while walk.depth:
        walk.depth -= 1
        node = walk.stack[walk.depth]
        if node < walk.count:
            walk.entities[<EntityRef>node].flags |= flags
        for j in range(walk.graph.start[node], walk.graph.start[node + 1]):
            if not walk.seen[walk.graph.edges[j]]:
                push_node(walk, walk.graph.edges[j])


cdef inline size_t count_selected(const EntityRow* entities, size_t entity_count,
                                  const uint8_t* is_selected) noexcept nogil:
    """Count the selected kernels; `is_selected` says of each entity whether it is selected."""
    cdef size_t i, count = 0
    for i in range(entity_count):
        count += entities[i].flags & EF_KERNEL and is_selected[i]
    return count


cdef inline void update_inner_functions(const SymbolRow* symbols, const SectionRow* sections,
                                        const EntityNumber* entity_of, EntityRow* entities,
                                        size_t entity_count) noexcept nogil:
    """Copy EF_LIVE and EF_DESELECTED from each function to those that lie inside of its code.

    `entity_of` has the entity of each symbol. An inner function is neither live nor deselected if
    another file's copy of the outer one is linked. EF_DESELECTED: it is dead only because some
    kernels were not selected.
    """
    cdef size_t i
    cdef EntityNumber owner
    cdef SymbolNumber owner_symbol
    for i in range(entity_count):
        if entities[i].flags & EF_INNER:
            owner_symbol = function_symbol(&sections[symbols[entities[i].winner].section])
            owner = entity_of[owner_symbol]
            entities[i].flags &= ~<uint32_t>(EF_LIVE | EF_DESELECTED)
            # An inner function is not linked if another file's copy of its owner is.
            if entities[owner].winner == owner_symbol:
                entities[i].flags |= entities[owner].flags & (EF_LIVE | EF_DESELECTED)
