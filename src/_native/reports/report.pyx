"""Output that a user requests from a link: resource use of kernels (-v), the call graph.

Nothing here runs in a link that asks for neither.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from attributetypes cimport EIATTR_NUM_BARRIERS
from base.elf64 cimport load16
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from elfnumbers cimport SHF_BARRIERS, SHF_BARRIERS_FIRST
from pylink._native.tables cimport Blob, MergedTables, ObjectTables, Outs, PlacedTables, Spans
from rownumbers cimport (
    EF_DEFINED, EF_KERNEL, EF_LIVE, E_FUNC, E_GLOBAL, KEEPS_ALL, KEEPS_REGISTERS, NO_STACK_BOUND,
)
from sectionkinds cimport IS_CODE, IS_KERNEL_SHARED, IS_VARIABLES, KIND
from tables.attributes cimport find_record, register_limit
from tables.graph cimport CallGraph, CallRows, calls_of, graph_init
from tables.kinds cimport is_a, is_function_bank, is_function_info, is_plain
from tables.rows cimport EntityRow, FunctionRow, OutRow, SectionRow, SpanRow


def memory_use(Outs outs not None):
    cdef const OutRow* out = outs.rows
    cdef size_t count = outs.count, i
    cdef uint64_t total = 0
    cdef list banks = []
    for i in range(count):
        if KIND[out[i].kind].holds == E_GLOBAL:
            total += out[i].size
        elif is_plain(out[i].kind, IS_VARIABLES) and out[i].size:
            banks.append((out[i].bank, out[i].size))
    return total, sorted(banks)


def kernel_use(PlacedTables placed not None):
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t i
    cdef int32_t k
    cdef size_t out_count = placed.outs.count
    cdef const EntityRow* e = merged.entities.rows
    cdef const FunctionRow* f = merged.functions.rows
    cdef const OutRow* out = placed.outs.rows
    cdef uint32_t stack
    cdef dict barriers = {}, shared = {}, banks = {}
    cdef uint64_t flagged
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
        k = out[i].entity
        if (k < 0 or not is_a(out[i].kind, IS_CODE) or not e[k].flags & EF_KERNEL
                or not e[k].flags & EF_LIVE):
            continue
        stack = f[k].stack if objects.executable else 0
        if objects.executable and (stack == NO_STACK_BOUND or f[k].keeps & KEEPS_ALL):
            stack = e[k].frame
        registers = f[k].regcount if objects.executable else e[k].regcount
        # Objects from before 13.0 and outputs of such releases have no record.
        flagged = (out[i].flags & SHF_BARRIERS) >> SHF_BARRIERS_FIRST
        result.append((k, registers, barriers.get(k, flagged),
                       stack, shared.get(k, 0), sorted(banks.get(k, []))))
    result.reverse()
    return result


cdef void count_barriers(const OutRow* out, size_t out_count, Blob blob, Spans spans,
                         dict barriers):
    """Enter NUM_BARRIERS of the records that `spans` places in .nv.info.F sections."""
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
            barriers[out[span[i].out].entity] = load16(record + 2)


def call_lists(MergedTables merged not None):
    cdef size_t n = merged.entities.count
    cdef size_t nodes = n + merged.prototypes.count, i, j
    cdef const EntityRow* e = merged.entities.rows
    cdef list result = [], callees, candidate_numbers
    cdef list number = [0] * n, candidates = [None] * nodes
    cdef CallGraph graph
    cdef Scratch scratch
    cdef CallRows calls = calls_of(merged)
    cdef uint32_t to
    j = 0
    for i in range(n):
        if e[i].kind == E_FUNC:
            j += 1
            number[i] = j
    scratch_init(&scratch)
    try:
        graph_init(&graph, &scratch, &calls)
        if scratch.failed:
            raise MemoryError
        for i in range(n, nodes):
            candidate_numbers = [number[graph.edges[j]] for j in range(graph.start[i],
                                                                       graph.start[i + 1])]
            candidates[i] = sorted(set(candidate_numbers), reverse=True)
        for i in range(n):
            if e[i].kind != E_FUNC:
                continue
            callees = []
            for j in range(graph.start[i + 1], graph.start[i], -1):
                to = graph.edges[j - 1]
                if to < n:
                    callees.append(number[to])
                else:
                    callees.extend(candidates[to])
            result.append((i, <object>e[i].regcount if e[i].flags & EF_DEFINED else -1, callees))
    finally:
        scratch_free(&scratch)
    return result


def propagations(MergedTables merged not None):
    cdef ObjectTables objects = merged.objects
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef const SectionRow* s = objects.sections.rows
    cdef const FunctionRow* f = merged.functions.rows
    cdef size_t n = merged.entities.count
    cdef size_t nodes = n + merged.prototypes.count, i, node, depth
    cdef const EntityRow* e = merged.entities.rows
    cdef const OutRow* out = merged.outs.rows
    cdef CallGraph callers
    cdef uint32_t* current
    cdef uint32_t* stack
    cdef uint32_t* stamp
    cdef Scratch scratch
    cdef CallRows calls = calls_of(merged)
    cdef uint32_t reached_node, caller, j, walk = 0
    cdef int32_t info
    cdef list result = [], raised
    scratch_init(&scratch)
    try:
        graph_init(&callers, &scratch, &calls, True)
        current = <uint32_t*>scratch_zeros(&scratch, nodes, 4)  # by kernel: its registers so far
        stack = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        stamp = <uint32_t*>scratch_zeros(&scratch, nodes, 4)
        if scratch.failed:
            raise MemoryError
        for i in range(n):
            current[i] = e[i].regcount
        for i in range(merged.outs.count):
            if not is_a(out[i].kind, IS_CODE) or out[i].entity < 0:
                continue
            node = out[i].entity
            if e[node].flags & EF_KERNEL:
                continue
            walk += 1
            stamp[node] = walk
            stack[0] = <uint32_t>node
            depth = 1
            raised = []
            while depth:
                depth -= 1
                reached_node = stack[depth]
                if (reached_node < n and e[reached_node].flags & EF_KERNEL
                        and e[reached_node].flags & EF_LIVE):
                    if (e[node].regcount > current[reached_node]
                            and not f[reached_node].keeps & KEEPS_REGISTERS):
                        current[reached_node] = e[node].regcount
                        raised.append(reached_node)
                for j in range(callers.start[reached_node], callers.start[reached_node + 1]):
                    caller = callers.edges[j]
                    if stamp[caller] != walk:
                        stamp[caller] = walk
                        stack[depth] = caller
                        depth += 1
            for kernel in sorted(raised, reverse=True):
                info = f[<size_t>kernel].info
                result.append((e[node].regcount, node, kernel, 255 if info < 0 else
                               register_limit(base + s[info].offset, s[info].size)))
    finally:
        scratch_free(&scratch)
    return result
