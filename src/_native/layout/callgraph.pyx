"""Contents of .nv.callgraph and .nv.prototype."""

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros,
)
from pylink._native.tables cimport MergedTables, PlacedTables
from tables.rows cimport BLOCK_PROTOTYPE, EF_TAKEN, CallRow, EntityRow
from base.vector cimport Vec, vec_push, vec_take


def emit_callgraph(PlacedTables placed not None):
    """Contents of .nv.callgraph and .nv.prototype: rows by birth of the function they begin with.

    Direct calls, calls through a pointer and their candidates come newest first; the other rows
    once a function. With -r a call or a candidate that copies of the function share stands at the
    oldest's place.
    """
    cdef MergedTables merged = placed.merged
    cdef size_t n = merged.entities.count
    cdef size_t count = merged.calls.count
    cdef const CallRow* call = merged.calls.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef const uint32_t* index = placed.symbol_index.rows
    cdef const uint32_t* offsets = merged.prototype_offsets.rows
    cdef Scratch scratch
    cdef Vec graph, prototypes
    cdef int32_t block
    cdef bint once = not merged.objects.executable
    scratch_init(&scratch)
    try:
        head = <int32_t*>scratch_zeros(&scratch, n, 4)
        next_row = <int32_t*>scratch_zeros(&scratch, count, 4)
        oldest = <int32_t*>scratch_zeros(&scratch, n, 4)        # by callee: the row that stays
        scratch_vector(&scratch, &graph, 8)
        scratch_vector(&scratch, &prototypes, 8)
        with nogil:
            for block in range(-1, -6, -1):
                if not scratch.failed and not emit_block(
                        block, call, count, e, n, index, offsets, head, next_row,
                        oldest if once and (block == -1 or block == -4) else NULL,
                        &prototypes if block == BLOCK_PROTOTYPE else &graph):
                    scratch.failed = True
        if scratch.failed:
            raise MemoryError
        return vec_take(&graph), vec_take(&prototypes)
    finally:
        scratch_free(&scratch)


cdef bint emit_block(int32_t block, const CallRow* call, size_t count, const EntityRow* e,
                     size_t n, const uint32_t* index, const uint32_t* offsets, int32_t* head,
                     int32_t* next_row, int32_t* oldest, Vec* out) noexcept nogil:
    cdef size_t i
    cdef uint32_t* pair
    cdef int32_t at
    cdef bint lists = block == -1 or block == -4
    if block != BLOCK_PROTOTYPE:
        pair = <uint32_t*>vec_push(out)
        if pair == NULL:
            return False
        pair[0] = 0
        pair[1] = <uint32_t>block
    memset(head, 0xff, 4 * n)
    for i in range(count):
        if call[i].block == block and index[call[i].caller]:
            if block == BLOCK_PROTOTYPE and e[call[i].caller].flags & EF_TAKEN:
                continue
            if not lists and head[call[i].caller] >= 0 and block != -3:
                continue
            next_row[i] = head[call[i].caller]
            head[call[i].caller] = <int32_t>i
    for i in range(n):
        at = head[i]
        while oldest != NULL and at >= 0:
            oldest[call[at].callee] = at
            at = next_row[at]
        at = head[i]
        while at >= 0:
            if (not lists or index[call[at].callee]) and (
                    oldest == NULL or oldest[call[at].callee] == at):
                pair = <uint32_t*>vec_push(out)
                if pair == NULL:
                    return False
                pair[0] = index[i]
                pair[1] = index[call[at].callee] if lists else offsets[call[at].callee]
            at = next_row[at]
    return True
