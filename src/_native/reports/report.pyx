"""Resource use of kernels (-v), the call graph, and register counts that propagate to kernels.

This runs only in links that report one of these, also as a remark or an error.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from attributetypes cimport EIATTR_NUM_BARRIERS
from base.elf64 cimport load16
from base.memory cimport check_memory
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from elfnumbers cimport SHF_BARRIERS, SHF_BARRIERS_FIRST
from pylink._native.results cimport MergedTables, ObjectTables, PlacedTables
from pylink._native.tables cimport Blob, Outs, Spans
from rownumbers cimport (
    EF_DEFINED, EF_KERNEL, EF_LIVE, E_FUNC, E_GLOBAL, KEEPS_ALL, KEEPS_REGISTERS, NO_STACK_BOUND,
)
from sectionkinds cimport IS_CODE, IS_KERNEL_SHARED, IS_VARIABLES, KIND
from tables.attributes cimport find_record, register_limit
from tables.graph cimport CallGraph, CallRows, NodeRef, calls_of, graph_init
from tables.kinds cimport is_a, is_function_bank, is_function_info, is_plain
from tables.rows cimport (
    EntityNumber, EntityRef, EntityRow, FunctionRow, OutRow, SectionNumber, SectionRow, SpanRow,
)


cdef enum:
    MOST_REGISTERS = 255        # limit of a kernel whose attributes set none


cdef class KernelUse:
    """The resources of a kernel of the output; with -r without those of functions that it calls."""
    cdef readonly EntityNumber entity
    cdef readonly uint32_t registers
    cdef readonly uint32_t barriers
    cdef readonly uint32_t stack        # bytes
    cdef readonly uint64_t shared       # bytes of .nv.shared.K
    cdef readonly list banks            # pairs: a constant bank of its own, its bytes


cdef class FunctionCalls:
    """A function and the functions that it calls."""
    cdef readonly EntityNumber entity
    cdef readonly int64_t registers     # its own count; -1: no input defines the function
    cdef readonly list callees          # numbers in the result of `list_calls`, from 1


cdef class Propagation:
    """The register count of a function that propagates to a kernel, and the kernel's limit."""
    cdef readonly uint32_t registers    # of the function
    cdef readonly EntityNumber function
    cdef readonly EntityNumber kernel
    cdef readonly uint32_t limit        # most registers that the kernel may have


def sum_memory(Outs outs not None):
    """Return the bytes of global memory, and (bank, bytes) of banks that all kernels share."""
    cdef const OutRow* out = outs.rows
    cdef size_t count = outs.count, i
    cdef uint64_t total = 0
    cdef list banks = []
    for i in range(count):
        if KIND[out[i].kind].entity_kind == E_GLOBAL:
            total += out[i].size
        elif is_plain(out[i].kind, IS_VARIABLES) and out[i].size:
            banks.append((out[i].bank, out[i].size))
    return total, sorted(banks)


def list_kernel_use(PlacedTables placed not None):
    """List the resources of each kernel; the last kernel in creation order of code comes first."""
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t i
    cdef EntityNumber entity
    cdef size_t out_count = placed.outs.count
    cdef const EntityRow* entities = merged.entities.rows
    cdef const FunctionRow* functions = merged.functions.rows
    cdef const OutRow* out = placed.outs.rows
    cdef dict barriers = {}, shared = {}, banks = {}
    cdef uint64_t flagged
    cdef KernelUse use
    cdef list result = []
    for blob, spans in zip(placed.blobs, placed.spans):
        count_barriers(out, out_count, blob, spans, barriers)
    for i in range(out_count):
        if out[i].entity < 0:
            continue
        if is_a(out[i].kind, IS_KERNEL_SHARED):
            shared[out[i].entity] = out[i].size
        elif is_function_bank(out[i].kind):
            banks.setdefault(out[i].entity, []).append((out[i].bank, out[i].size))
    for i in range(out_count):
        entity = out[i].entity
        if (entity < 0 or not is_a(out[i].kind, IS_CODE)
                or not entities[entity].flags & EF_KERNEL
                or not entities[entity].flags & EF_LIVE):
            continue
        use = KernelUse.__new__(KernelUse)
        use.entity = entity
        use.registers = (functions[entity].regcount if objects.executable
                         else entities[entity].regcount)
        use.stack = functions[entity].stack if objects.executable else 0
        if objects.executable and (use.stack == NO_STACK_BOUND
                                   or functions[entity].keeps & KEEPS_ALL):
            use.stack = entities[entity].frame
        # Objects of releases before 13.0, and outputs for these, lack EIATTR_NUM_BARRIERS: there
        # sh_flags has the number.
        flagged = (out[i].flags & SHF_BARRIERS) >> SHF_BARRIERS_FIRST
        use.barriers = barriers.get(entity, flagged)
        use.shared = shared.get(entity, 0)
        use.banks = sorted(banks.get(entity, []))
        result.append(use)
    result.reverse()
    return result


cdef void count_barriers(const OutRow* out, size_t out_count, Blob blob, Spans spans,
                         dict barriers):
    """Map each function (entity) whose .nv.info.F has EIATTR_NUM_BARRIERS to its value.

    `barriers` gets these values. `blob` has contents that the link made, and `spans` says which
    range of it is the contents of which section.
    """
    cdef const SpanRow* span = spans.rows
    cdef uint64_t limit = blob.count
    cdef const uint8_t* record
    cdef size_t i
    for i in range(spans.count):
        if (span[i].out < 0 or <size_t>span[i].out >= out_count
                or not is_function_info(out[span[i].out].kind)):
            continue
        if span[i].offset > limit or span[i].size > limit - span[i].offset:
            raise IndexError("span outside its blob")
        record = find_record(blob.rows + span[i].offset, span[i].size, EIATTR_NUM_BARRIERS)
        if record != NULL:
            barriers[out[span[i].out].entity] = load16(record + 2)     # the record's value


def list_calls(MergedTables merged not None):
    """List every function, in creation order, with the functions that it calls."""
    cdef size_t entity_count = merged.entities.count
    cdef size_t nodes = entity_count + merged.prototypes.count, i, j
    cdef const EntityRow* entities = merged.entities.rows
    # list_number: by entity, the number of a function in the result, from 1; 0 for others.
    # candidates: by node of a prototype, the numbers of all functions that an indirect call of that
    # prototype may reach.
    cdef list result = [], candidate_numbers
    cdef FunctionCalls function
    cdef list list_number = [0] * entity_count, candidates = [None] * nodes
    cdef CallGraph graph
    cdef Scratch scratch
    cdef CallRows calls = calls_of(merged)
    cdef NodeRef callee
    j = 0
    for i in range(entity_count):
        if entities[i].kind == E_FUNC:
            j += 1
            list_number[i] = j
    scratch_init(&scratch)
    try:
        graph_init(&graph, &scratch, &calls)
        check_memory(not scratch.failed)
        for i in range(entity_count, nodes):
            candidate_numbers = [list_number[graph.edges[j]] for j in range(graph.start[i],
                                                                            graph.start[i + 1])]
            candidates[i] = sorted(set(candidate_numbers), reverse=True)
        for i in range(entity_count):
            if entities[i].kind != E_FUNC:
                continue
            function = FunctionCalls.__new__(FunctionCalls)
            function.entity, function.callees = <int32_t>i, []
            function.registers = entities[i].regcount if entities[i].flags & EF_DEFINED else -1
            for j in range(graph.start[i + 1], graph.start[i], -1):
                callee = graph.edges[j - 1]
                if callee < entity_count:
                    function.callees.append(list_number[callee])
                else:
                    function.callees.extend(candidates[callee])
            result.append(function)
    finally:
        scratch_free(&scratch)
    return result


# Walks from a function over all its callers, one walk after the other.
ctypedef struct CallerWalk:
    const EntityRow* entities
    const FunctionRow* functions
    size_t entity_count         # number of entities; nodes after these are prototypes
    CallGraph callers           # edges from each node to its callers
    uint32_t* registers         # by node: register count so far; only kernels' are used
    NodeRef* stack              # nodes that are reached and whose callers are not visited yet
    uint32_t* last_walk         # by node: number of the last walk that reached it
    uint32_t walk_number        # of the current walk, from 1


def list_propagations(MergedTables merged not None):
    """List all register counts that propagate to kernels, in the order of nvlink's messages."""
    cdef ObjectTables objects = merged.objects
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef const SectionRow* sections = objects.sections.rows
    cdef const EntityRow* entities = merged.entities.rows
    cdef const OutRow* out = merged.outs.rows
    cdef size_t nodes = merged.entities.count + merged.prototypes.count, i
    cdef CallerWalk walk
    cdef Scratch scratch
    cdef CallRows calls = calls_of(merged)
    cdef Propagation row
    cdef EntityNumber node
    cdef SectionNumber info
    cdef list result = []
    walk.entities, walk.functions = entities, merged.functions.rows
    walk.entity_count, walk.walk_number = merged.entities.count, 0
    scratch_init(&scratch)
    try:
        graph_init(&walk.callers, &scratch, &calls, True)
        walk.registers = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        walk.stack = <NodeRef*>scratch_zeros(&scratch, nodes, 4)
        walk.last_walk = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        check_memory(not scratch.failed)
        for i in range(walk.entity_count):
            walk.registers[i] = entities[i].regcount
        for i in range(merged.outs.count):
            node = out[i].entity
            if not is_a(out[i].kind, IS_CODE) or node < 0 or entities[node].flags & EF_KERNEL:
                continue
            for kernel in sorted(raise_registers(&walk, <EntityRef>node), reverse=True):
                row = Propagation.__new__(Propagation)
                row.registers, row.function, row.kernel = (
                    entities[node].regcount, node, <EntityNumber>kernel)
                info = walk.functions[row.kernel].info
                row.limit = MOST_REGISTERS
                if info >= 0:
                    row.limit = register_limit(base + sections[info].offset, sections[info].size)
                result.append(row)
    finally:
        scratch_free(&scratch)
    return result


cdef list raise_registers(CallerWalk* walk, EntityRef function):
    """Raise the register count of each live kernel that reaches `function` and has fewer registers.

    Kernels that keep their own count (KEEPS_REGISTERS) are skipped. Returns the entities of the
    kernels whose count was raised.
    """
    cdef uint32_t registers = walk.entities[function].regcount, j
    cdef NodeRef node, caller
    cdef EntityRef kernel
    cdef size_t depth = 1
    cdef list raised = []
    walk.walk_number += 1
    walk.last_walk[function] = walk.walk_number
    walk.stack[0] = function
    while depth:
        depth -= 1
        node = walk.stack[depth]
        kernel = <EntityRef>node        # or a prototype
        if (node < walk.entity_count and walk.entities[kernel].flags & EF_KERNEL
                and walk.entities[kernel].flags & EF_LIVE and registers > walk.registers[kernel]
                and not walk.functions[kernel].keeps & KEEPS_REGISTERS):
            walk.registers[kernel] = registers
            raised.append(kernel)
        for j in range(walk.callers.start[node], walk.callers.start[node + 1]):
            caller = walk.callers.edges[j]
            if walk.last_walk[caller] != walk.walk_number:
                walk.last_walk[caller] = walk.walk_number
                walk.stack[depth] = caller
                depth += 1
    return raised
