# The call graph in arrays, with edges from callers to callees or from callees to callers.
#
# The inputs list calls in `.nv.callgraph`. A direct call names both functions. An indirect call
# names only its prototype, such as `#ii`, and may lead to any function of that prototype whose
# address is taken, in any file (docs/format-notes.md, "What a function reaches"). With C callers
# and T such functions that would be C * T edges. So each prototype is a node of its own, between
# them:
#
#     main calls f                              main -> f
#     main calls through a pointer of `#ii`     main -> #ii
#     g and h of `#ii` have their address taken #ii -> g, #ii -> h
#
# Nodes are numbered: entities first, in their order, then prototypes. The edges of node n are
# `edges[start[n]]` to `edges[start[n + 1] - 1]`, in the order of their rows.
#
# 1. `find_edge_of_call` says which edge a row of the table of calls stands for.
# 2. `graph_init` counts the edges of each node, makes offsets of the counts, and puts each edge in
#    its place: linear in rows and nodes. With `reverse` edges lead from callee to caller.

from libc.stddef cimport size_t
from libc.stdint cimport uint32_t

from base.scratch cimport Scratch, scratch_zeros
from pylink._native.results cimport MergedTables
from rownumbers cimport BLOCK_DIRECT, BLOCK_INDIRECT, BLOCK_TAKEN, EF_TAKEN, EF_UNSELECTED
from tables.rows cimport CallRow, EntityRow


# The number of a node: the number of its entity, or the count of all entities plus the number of
# its prototype.
ctypedef uint32_t NodeRef


# The rows that a graph is made from.
ctypedef struct CallRows:
    const CallRow* rows
    size_t count                # number of rows
    size_t entities             # number of entities
    size_t nodes                # number of entities and prototypes


cdef inline CallRows calls_of(MergedTables merged) noexcept:
    """Return the rows that the call graph of a link is made from."""
    cdef CallRows calls
    calls.rows = merged.calls.rows
    calls.count = merged.calls.count
    calls.entities = merged.entities.count
    calls.nodes = merged.entities.count + merged.prototypes.count
    return calls


ctypedef struct CallGraph:
    uint32_t* start             # by node: index of its first edge in `edges`; `nodes` + 2 elements
    NodeRef* edges              # the node that each edge leads to
    size_t nodes                # number of nodes


cdef inline bint is_idle(const EntityRow* entity) noexcept nogil:
    """Return whether a kernel is idle: it is not selected, and no device code launches it.

    Only links that keep dead code, for example with --preserve-relocs, have such kernels' code.
    """
    return entity.flags & (EF_UNSELECTED | EF_TAKEN) == EF_UNSELECTED


cdef inline bint find_edge_of_call(const CallRow* call, size_t entities, NodeRef* tail,
                                   NodeRef* head) noexcept nogil:
    """Set `tail` and `head` to the nodes that the edge of row `call` leads from and to.

    `entities` is the number of entities. False for a row without an edge (see CallBlock).
    """
    if call.block == BLOCK_DIRECT:
        tail[0] = call.caller
        head[0] = <NodeRef>call.callee
        return True
    if call.block == BLOCK_INDIRECT:
        tail[0] = call.caller
        head[0] = <NodeRef>entities + call.callee
        return True
    if call.block == BLOCK_TAKEN:
        tail[0] = <NodeRef>entities + call.callee
        head[0] = call.caller
        return True
    return False


cdef inline void graph_init(CallGraph* graph, Scratch* scratch, const CallRows* calls,
                            bint reverse=False) noexcept nogil:
    """Make the graph of `calls`; edges lead from caller to callee, with `reverse` the other way.

    `scratch` frees the graph. `scratch.failed` is set if memory is exhausted, or if a row names an
    unknown node.
    """
    cdef size_t node_count = calls.nodes
    cdef size_t i
    cdef NodeRef tail = 0, head = 0
    graph.nodes = node_count
    graph.start = <uint32_t*>scratch_zeros(scratch, node_count + 2, 4)
    graph.edges = <NodeRef*>scratch_zeros(scratch, calls.count, 4)
    if scratch.failed:
        return
    for i in range(calls.count):
        if find_edge_of_call(&calls.rows[i], calls.entities, &tail, &head):
            if tail >= node_count or head >= node_count:
                scratch.failed = True
                return
            graph.start[(head if reverse else tail) + 2] += 1
    for i in range(2, node_count + 2):
        graph.start[i] += graph.start[i - 1]
    for i in range(calls.count):
        if find_edge_of_call(&calls.rows[i], calls.entities, &tail, &head):
            if reverse:
                tail, head = head, tail
            graph.edges[graph.start[tail + 1]] = head
            graph.start[tail + 1] += 1
