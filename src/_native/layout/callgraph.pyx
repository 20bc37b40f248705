"""Contents of .nv.callgraph and .nv.prototype."""

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from pylink._native.tables cimport MergedTables, PlacedTables
from tables.rows cimport (
    BLOCK_CANDIDATE, BLOCK_DIRECT, BLOCK_INDIRECT, BLOCK_PROTOTYPE, EF_TAKEN, CallRow,
)
from base.vector cimport Vec, vec_push, vec_take
from tables.views cimport MergedView, PlacedView


def emit_callgraph(PlacedTables placed not None):
    """Contents of .nv.callgraph and .nv.prototype: rows by creation of the function they begin
    with.

    Direct calls, calls through a pointer and their candidates come newest first; the other rows
    once a function. With -r a call or a candidate that copies of the function share stands at the
    oldest's place.
    """
    cdef MergedTables merged = placed.merged
    cdef CallLists l
    cdef Scratch scratch
    cdef Vec graph, prototypes
    cdef int32_t block
    merged.view(&l.merged)
    placed.view(&l.placed)
    l.once = not merged.objects.executable
    scratch_init(&scratch)
    try:
        l.head = <int32_t*>scratch_zeros(&scratch, l.merged.entity_count, 4)
        l.next_row = <int32_t*>scratch_zeros(&scratch, l.merged.call_count, 4)
        l.oldest = <int32_t*>scratch_zeros(&scratch, l.merged.entity_count, 4)
        scratch_vector(&scratch, &graph, 8)
        scratch_vector(&scratch, &prototypes, 8)
        with nogil:
            for block in range(-1, -6, -1):
                if not scratch.failed and not emit_block(
                        &l, block, &prototypes if block == BLOCK_PROTOTYPE else &graph):
                    scratch.failed = True
        if scratch.failed:
            raise MemoryError
        return vec_take(&graph), vec_take(&prototypes)
    finally:
        scratch_free(&scratch)


# The rows of the link, and lists of those of one block.
ctypedef struct CallLists:
    MergedView merged
    PlacedView placed
    bint once                   # -r: of rows that are the same the oldest stays
    int32_t* head               # by caller: its newest row, or -1
    int32_t* next_row           # by row: the one before it
    int32_t* oldest             # by callee: the row that stays


cdef void link_rows(CallLists* l, int32_t block) noexcept nogil:
    """Lists of the rows of a block that the output has."""
    cdef const CallRow* call
    cdef size_t i
    cdef bint lists = block == BLOCK_DIRECT or block == BLOCK_CANDIDATE
    memset(l.head, 0xff, 4 * l.merged.entity_count)
    for i in range(l.merged.call_count):
        call = &l.merged.calls[i]
        if call.block == block and l.placed.symbol_index[call.caller]:
            if block == BLOCK_PROTOTYPE and l.merged.entities[call.caller].flags & EF_TAKEN:
                continue
            if not lists and l.head[call.caller] >= 0 and block != BLOCK_INDIRECT:
                continue
            l.next_row[i] = l.head[call.caller]
            l.head[call.caller] = <int32_t>i


cdef bint emit_block(CallLists* l, int32_t block, Vec* out) noexcept nogil:
    """Write the rows of a block; False without memory."""
    cdef const CallRow* call = l.merged.calls
    cdef size_t i
    cdef uint32_t* pair
    cdef int32_t at
    cdef bint lists = block == BLOCK_DIRECT or block == BLOCK_CANDIDATE, once = lists and l.once
    if block != BLOCK_PROTOTYPE:
        pair = <uint32_t*>vec_push(out)
        if pair == NULL:
            return False
        pair[0] = 0
        pair[1] = <uint32_t>block
    link_rows(l, block)
    for i in range(l.merged.entity_count):
        at = l.head[i]
        while once and at >= 0:
            l.oldest[call[at].callee] = at
            at = l.next_row[at]
        at = l.head[i]
        while at >= 0:
            if (not lists or l.placed.symbol_index[call[at].callee]) and (
                    not once or l.oldest[call[at].callee] == at):
                pair = <uint32_t*>vec_push(out)
                if pair == NULL:
                    return False
                pair[0] = l.placed.symbol_index[i]
                pair[1] = (l.placed.symbol_index[call[at].callee] if lists
                           else l.merged.prototype_offsets[call[at].callee])
            at = l.next_row[at]
    return True
