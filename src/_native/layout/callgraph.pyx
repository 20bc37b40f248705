"""Contents of .nv.callgraph and .nv.prototype.

A row of either is a pair of u32. .nv.callgraph has blocks -1 to -4, each after a pair (0, number of
the block); block -5 is .nv.prototype, without such a pair:

    -1 DIRECT       caller, callee
    -2 TAKEN        function whose address is taken, offset in .strtab of its prototype
    -3 INDIRECT     caller, offset of the prototype that it calls through a pointer
    -4 CANDIDATE    caller, function that its calls through pointers may reach
    -5 PROTOTYPE    function, offset of its prototype
"""

from libc.stdint cimport int32_t, uint32_t
from libc.string cimport memset

from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec, vec_push, vec_to_bytes
from pylink._native.results cimport MergedTables, PlacedTables
from rownumbers cimport BLOCK_CANDIDATE, BLOCK_DIRECT, BLOCK_INDIRECT, BLOCK_PROTOTYPE, EF_TAKEN
from tables.rows cimport CallNumber, CallRow, EntityRef
from tables.views cimport MergedView, PlacedView


# A block has the rows of one kind, e.g. all direct calls. Returns both contents, as bytes.
def emit_callgraph(PlacedTables placed not None):
    """Make the contents of .nv.callgraph and .nv.prototype: block by block, by function."""
    cdef MergedTables merged = placed.merged
    cdef CallLists call_lists
    cdef Scratch scratch
    cdef Vec graph, prototypes
    cdef int32_t block
    merged.view(&call_lists.merged)
    placed.view(&call_lists.placed)
    call_lists.drops_repeats = not merged.objects.executable
    scratch_init(&scratch)
    try:
        call_lists.head = <CallNumber*>scratch_zeros(&scratch, call_lists.merged.entity_count, 4)
        call_lists.next_row = <CallNumber*>scratch_zeros(&scratch, call_lists.merged.call_count, 4)
        call_lists.oldest = <CallNumber*>scratch_zeros(&scratch, call_lists.merged.entity_count, 4)
        scratch_vector(&scratch, &graph, 2 * sizeof(uint32_t))
        scratch_vector(&scratch, &prototypes, 2 * sizeof(uint32_t))
        with nogil:
            for block in range(-1, -6, -1):     # BLOCK_DIRECT to BLOCK_PROTOTYPE
                if not scratch.failed and not emit_block(
                        &call_lists, block, &prototypes if block == BLOCK_PROTOTYPE else &graph):
                    scratch.failed = True
        check_memory(not scratch.failed)
        return vec_to_bytes(&graph), vec_to_bytes(&prototypes)
    finally:
        scratch_free(&scratch)


# The call rows of the link, and for each caller its rows of one kind (a block), newest first.
ctypedef struct CallLists:
    MergedView merged
    PlacedView placed
    bint drops_repeats          # -r: among equal rows with a callee only the oldest stays
    CallNumber* head            # by entity: newest CallRow of the block with this caller, or -1
    CallNumber* next_row        # by CallRow: the caller's next older one, or -1
    CallNumber* oldest          # by entity: the current caller's oldest CallRow with this callee


cdef bint has_callees(int32_t block) noexcept nogil:
    """Return whether rows of a block name a callee; those of other blocks name a prototype."""
    return block == BLOCK_DIRECT or block == BLOCK_CANDIDATE


cdef void link_rows(CallLists* call_lists, int32_t block) noexcept nogil:
    """Make each caller's list of the rows of a block; callers that are not in the output have none.

    Except in BLOCK_INDIRECT, a list of a block without callees has one row, the oldest. In
    BLOCK_PROTOTYPE, functions whose address is taken have no row.
    """
    cdef const CallRow* call
    cdef size_t i
    memset(call_lists.head, 0xff, 4 * call_lists.merged.entity_count)
    for i in range(call_lists.merged.call_count):
        call = &call_lists.merged.calls[i]
        if call.block == block and call_lists.placed.symbol_index[call.caller]:
            if (block == BLOCK_PROTOTYPE
                    and call_lists.merged.entities[call.caller].flags & EF_TAKEN):
                continue
            if (call_lists.head[call.caller] >= 0 and not has_callees(block)
                    and block != BLOCK_INDIRECT):
                continue
            call_lists.next_row[i] = call_lists.head[call.caller]
            call_lists.head[call.caller] = <CallNumber>i


cdef bint emit_block(CallLists* call_lists, int32_t block, Vec* out) noexcept nogil:
    """Append the rows of a block, by caller in creation order; False without memory."""
    cdef const CallRow* call = call_lists.merged.calls
    cdef size_t i
    cdef uint32_t* pair
    cdef CallNumber row
    cdef EntityRef callee
    cdef bint names_callees = has_callees(block)
    cdef bint drops_repeats = names_callees and call_lists.drops_repeats
    if block != BLOCK_PROTOTYPE:
        pair = <uint32_t*>vec_push(out)
        if pair == NULL:
            return False
        pair[0] = 0
        pair[1] = <uint32_t>block
    link_rows(call_lists, block)
    for i in range(call_lists.merged.entity_count):
        row = call_lists.head[i]
        while drops_repeats and row >= 0:
            call_lists.oldest[<EntityRef>call[row].callee] = row
            row = call_lists.next_row[row]
        row = call_lists.head[i]
        while row >= 0:
            callee = <EntityRef>call[row].callee    # or a prototype
            if (not names_callees or call_lists.placed.symbol_index[callee]) and (
                    not drops_repeats or call_lists.oldest[callee] == row):
                pair = <uint32_t*>vec_push(out)
                if pair == NULL:
                    return False
                pair[0] = call_lists.placed.symbol_index[i]
                pair[1] = (call_lists.placed.symbol_index[callee] if names_callees
                           else call_lists.merged.prototype_offsets[call[row].callee])
            row = call_lists.next_row[row]
    return True
