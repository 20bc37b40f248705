"""EIATTR records: .nv.info, .nv.info.F and their mercury twins.

Records of the inputs are kept in reverse order; kernels inherit what the functions they reach need
(docs/format-notes.md, "Attributes of kernels"). `emit_info` works in two steps:

1. `find_contributors` finds functions with records that kernels inherit, and `find_preexits` those
   with PREEXIT.
2. `emit_rows` writes the records, section by section. Each thread takes runs of sections, and has
   its own copy of Info (info/records.pxd) and its own blob.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from attributetypes cimport JOIN_NOTHING, JOIN_UNION
from base.memory cimport check_memory
from base.prefetch cimport prefetch
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from base.threads cimport MOST_THREADS, claim, claim_items, release_threads, run_each, run_parts
from base.vector cimport vec_push
from info.filerecords cimport emit_file_info, is_file_record_kept
from info.functionrecords cimport emit_function_info
from info.preexit cimport find_preexits, put_closing
from info.records cimport Info, InheritRow, Record, make_barriers_record, set_rules, source_of_info
from pylink._native.results cimport MergedTables, ObjectTables, PlacedTables
from pylink._native.tables cimport Blob, Spans, detach_rows
from rownumbers cimport EF_ALIAS, EF_DEFINED, EF_LIVE, E_FUNC
from sectionkinds cimport IS_RECORDS, KIND, K_INFO
from tables.attributes cimport record_size
from tables.graph cimport CallRows, NodeRef, calls_of, graph_init
from tables.kinds cimport is_a, is_function_info
from tables.rows cimport (
    EntityNumber, EntityRow, FunctionRow, OutCounter, OutNumber, OutRow, SectionNumber, SectionRow,
    SpanRow, SymbolNumber, function_symbol, is_root,
)


# `inherited` has rows of pylink/facts/inheritance.py, `closing` the last records of each function.
# Returns kernels that use tcgen05 by single CTAs and would inherit use by pairs, or vice versa.
def emit_info(PlacedTables placed not None, bytes inherited not None, bytes closing not None):
    """Make the contents of every information section, and add them to `placed`."""
    cdef MergedTables merged = placed.merged
    cdef Info info
    cdef size_t i, k
    memset(&info, 0, sizeof(Info))
    if PyBytes_GET_SIZE(inherited) % sizeof(InheritRow):
        raise ValueError("a table is not made of whole rows")
    set_rules(&info, <const InheritRow*>PyBytes_AS_STRING(inherited),
              PyBytes_GET_SIZE(inherited) // sizeof(InheritRow))
    info.closing_records = <const uint8_t*>PyBytes_AS_STRING(closing)
    info.closing_size = <uint32_t>PyBytes_GET_SIZE(closing)
    merged.objects.view(&info.objects)
    merged.view(&info.merged)
    placed.view(&info.placed)
    cdef size_t node_count = info.merged.entity_count + merged.prototypes.count, next_row = 0
    cdef Scratch scratch
    cdef Info* parts                # one for each thread
    cdef bint failed = False
    cdef CallRows calls = calls_of(merged)
    cdef set mixed = set()          # (OutRow of .nv.info.K, kernel K), of `mixed_kernels` of parts
    cdef EntityNumber kernel
    # Nothing between `claim` and `try` may raise: the threads would never be released.
    cdef size_t rows = info.placed.out_count
    cdef size_t part_count = 1 + claim(rows * ROW_COST, rows, MOST_THREADS - 1)
    info.next = &next_row
    scratch_init(&scratch)
    try:
        graph_init(&info.graph, &scratch, &calls)
        scratch_vector(&scratch, &info.contributors, sizeof(OutNumber))
        info.info_out = scratch_nones(&scratch, info.merged.entity_count)
        info.contributes = <uint8_t*>scratch_zeros(&scratch, info.merged.entity_count, 1)
        info.preexits = <uint8_t*>scratch_zeros(&scratch, info.merged.entity_count, 1)
        info.aliases = <uint32_t*>scratch_zeros(&scratch, info.merged.entity_count, 4)
        if not scratch.failed:
            with nogil:
                count_aliases(&info)
                scratch.failed = not find_contributors(&info, &scratch)
                find_preexits(&info)
        parts = <Info*>scratch_zeros(&scratch, part_count, sizeof(Info))
        for i in range(part_count if parts != NULL else 0):
            parts[i] = info
            start_part(&parts[i], &scratch, node_count)
        if not scratch.failed:
            with nogil:
                run_parts(emit_rows, parts, part_count)
            for i in range(part_count):
                failed = failed or parts[i].failed
        check_memory(not (scratch.failed or failed))
        for i in range(part_count):
            for k in range(parts[i].mixed_kernels.count):
                # Kernels are sorted by OutRow below, so the result does not depend on threads.
                kernel = (<EntityNumber*>parts[i].mixed_kernels.data)[k]
                mixed.add((info.info_out[kernel], kernel))
            placed.add(Blob(detach_rows(&parts[i].blob)), Spans(detach_rows(&parts[i].spans)))
    finally:
        release_threads(part_count - 1)
        scratch_free(&scratch)
    return [entity for _, entity in sorted(mixed)]


cdef enum:
    # ROW_COST and LOOK_COST are times, in bytes that a copy moves in the same time.
    ROW_COST = 420              # writing the records of a section
    LOOK_COST = 64              # looking at a section in `find_contributing`
    SOME_ROWS = 64              # OutRows that a thread takes at a time to write their records
    RUN_ROWS = 1024             # OutRows of a run, which one thread looks through


cdef void start_part(Info* info, Scratch* scratch, size_t node_count) noexcept:
    """Allocate the memory that a thread needs for itself.

    `node_count` is the number of nodes of the call graph.
    """
    scratch_vector(scratch, &info.reached_infos, sizeof(OutNumber))
    scratch_vector(scratch, &info.records, sizeof(Record))
    scratch_vector(scratch, &info.list_items, sizeof(uint32_t))
    scratch_vector(scratch, &info.record_sections, sizeof(SectionNumber))
    scratch_vector(scratch, &info.mixed_kernels, sizeof(EntityNumber))
    scratch_vector(scratch, &info.blob, 1)
    scratch_vector(scratch, &info.spans, sizeof(SpanRow))
    info.stamp = <uint32_t*>scratch_zeros(scratch, node_count, 4)
    info.stack = <NodeRef*>scratch_zeros(scratch, node_count, 4)


cdef enum:
    OUTS_AHEAD = 12             # OutRows between two steps of `fetch_records`


cdef inline const OutRow* function_info_at(Info* info, OutCounter i) noexcept nogil:
    """Return OutRow `i` if it has the records of a function, else NULL."""
    cdef const OutRow* out = &info.placed.outs[i]
    if i < info.placed.out_count and is_a(out.kind, IS_RECORDS) and out.entity >= 0:
        return out
    return NULL


cdef inline void fetch_records(Info* info, OutCounter i) noexcept nogil:
    """Fetch records of three functions after OutRow `i` into the cache, one step for each.

    The FunctionRow is fetched 3 * OUTS_AHEAD rows ahead of its use, the SectionRows 2 * OUTS_AHEAD,
    and the bytes OUTS_AHEAD.
    """
    cdef const OutRow* out = function_info_at(info, i + 3 * OUTS_AHEAD)
    cdef const FunctionRow* function
    if out != NULL:
        prefetch(&info.merged.functions[out.entity])
    out = function_info_at(info, i + 2 * OUTS_AHEAD)
    if out != NULL:
        function = &info.merged.functions[out.entity]
        prefetch(&info.objects.sections[max(function.info, 0)])
        prefetch(&info.objects.sections[max(function.merc_info, 0)])
    out = function_info_at(info, i + OUTS_AHEAD)
    if out != NULL:
        function = &info.merged.functions[out.entity]
        fetch_bytes(info, function.info)
        fetch_bytes(info, function.merc_info)


cdef inline void fetch_bytes(Info* info, SectionNumber section) noexcept nogil:
    """Fetch the first records in an input section, if there is one."""
    cdef const uint8_t* data
    if section >= 0:
        data = info.objects.arena + info.objects.sections[section].offset
        prefetch(data)
        prefetch(data + 64)


cdef void emit_rows(void* context, size_t part) noexcept nogil:
    """Write records of sections until all have been taken: the task of thread number `part`."""
    cdef Info* info = <Info*>context + part
    cdef OutCounter first = <OutCounter>claim_items(info.next, SOME_ROWS), i
    while first < info.placed.out_count:
        for i in range(first, min(first + SOME_ROWS, info.placed.out_count)):
            fetch_records(info, i)
            if is_a(info.placed.outs[i].kind, IS_RECORDS) and not emit_row(info, i):
                info.failed = True
                return
        first = <OutCounter>claim_items(info.next, SOME_ROWS)


cdef bint emit_row(Info* info, OutCounter i) noexcept nogil:
    """Write the records of OutRow `i`, and its span; False without memory."""
    cdef const OutRow* out = &info.placed.outs[i]
    cdef uint64_t start = info.blob.count
    cdef SpanRow* span
    if out.entity < 0:
        if not emit_file_info(info, out.kind):
            return False
    elif not emit_function_info(info, out.entity, KIND[out.kind].mercury):
        return False
    elif not KIND[out.kind].mercury and not put_closing(info, out.entity):
        return False
    span = <SpanRow*>vec_push(&info.spans)
    if span == NULL:
        return False
    span.out = <OutNumber>i
    span.offset = start
    span.size = info.blob.count - start
    return True


cdef void count_aliases(Info* info) noexcept nogil:
    """Fill `aliases`: for each function, the number of live entities that are other names of it."""
    cdef size_t i
    cdef const EntityRow* entity
    cdef SymbolNumber function
    cdef SectionNumber section
    for i in range(info.merged.entity_count):
        entity = &info.merged.entities[i]
        if entity.flags & EF_ALIAS and entity.flags & EF_LIVE:
            section = info.objects.symbols[entity.winner].section
            function = function_symbol(&info.objects.sections[section])
            info.aliases[info.merged.symbol_entity[function]] += 1


# A search by several threads for functions with records that kernels inherit. Each thread takes
# runs, of RUN_ROWS OutRows each.
ctypedef struct ContributorSearch:
    Info* info
    uint32_t* root_counts       # by run: number of kernels that are roots
    uint8_t* bits               # by run: an attribute with JOIN_UNION that a record has, or 0


cdef void find_contributing(void* context, size_t run) noexcept nogil:
    """Mark functions whose records kernels inherit, in `contributes`, for run number `run`.

    Also fills `info_out`, and the run's `root_counts` and `bits`.
    """
    cdef const ContributorSearch* search = <const ContributorSearch*>context
    cdef Info* info = search.info
    cdef OutCounter i, first = <OutCounter>(run * RUN_ROWS)
    cdef const SectionRow* source
    cdef const OutRow* out
    cdef uint64_t offset
    cdef const uint8_t* data
    cdef uint8_t barriers[4]
    for i in range(first, min(first + RUN_ROWS, info.placed.out_count)):
        out = &info.placed.outs[i]
        fetch_records(info, i)
        if not is_function_info(out.kind):
            continue
        info.info_out[out.entity] = <OutNumber>i
        if is_root(&info.merged.entities[out.entity]):
            search.root_counts[run] += 1
        source = source_of_info(info, out.entity)
        if source == NULL:
            continue
        offset = 0
        while offset < source.size:
            data = info.objects.arena + source.offset + offset
            if info.rules[data[1]].how != JOIN_NOTHING:
                info.contributes[out.entity] = True
            if info.rules[data[1]].how == JOIN_UNION:
                search.bits[run] = data[1]
            offset += record_size(data)
        if make_barriers_record(info, source, barriers):
            info.contributes[out.entity] = True


cdef bint find_contributors(Info* info, Scratch* scratch) noexcept nogil:
    """Fill `contributors`: .nv.info.F of functions with records that kernels inherit.

    If any record has JOIN_UNION, all functions with records contribute: those without such a record
    say that their bits are unknown. Also fills `contributes`, `info_out`, `live_kernels` and
    `unknown_bits`. False without memory.
    """
    cdef size_t runs = info.placed.out_count // RUN_ROWS + 1, i
    cdef ContributorSearch search
    cdef const OutRow* out
    cdef OutNumber* row
    search.info = info
    search.root_counts = <uint32_t*>scratch_zeros(scratch, runs, sizeof(uint32_t))
    search.bits = <uint8_t*>scratch_zeros(scratch, runs, 1)
    if scratch.failed:
        return False
    run_each(find_contributing, &search, runs, info.placed.out_count * LOOK_COST)
    for i in range(runs):
        info.live_kernels += search.root_counts[i]
        info.unknown_bits = search.bits[i] if search.bits[i] else info.unknown_bits
    for i in range(info.placed.out_count):
        out = &info.placed.outs[i]
        if not is_function_info(out.kind) or source_of_info(info, out.entity) == NULL:
            continue
        if info.unknown_bits:
            info.contributes[out.entity] = True
        if info.contributes[out.entity]:
            row = <OutNumber*>vec_push(&info.contributors)
            if row == NULL:
                return False
            row[0] = <OutNumber>i
    return True


def has_file_records(MergedTables merged not None):
    """Return whether .nv.info of the output has any record. nvlink omits an empty section."""
    cdef ObjectTables objects = merged.objects
    cdef const EntityRow* entities = merged.entities.rows
    cdef size_t entity_count = merged.entities.count, file
    cdef uint32_t i
    cdef uint64_t offset
    cdef const uint8_t* data
    cdef Info info
    for i in range(entity_count):
        if (entities[i].kind == E_FUNC and entities[i].flags & EF_LIVE
                and entities[i].flags & EF_DEFINED):
            return True
    memset(&info, 0, sizeof(Info))
    objects.view(&info.objects)
    merged.view(&info.merged)
    for file in range(objects.files.count):
        for i in range(info.objects.files[file].first_section,
                       info.objects.files[file].first_section
                       + info.objects.files[file].section_count):
            offset = 0
            while (info.objects.sections[i].kind == K_INFO
                    and offset < info.objects.sections[i].size):
                data = info.objects.arena + info.objects.sections[i].offset + offset
                if is_file_record_kept(&info, data, &info.objects.files[file]):
                    return True
                offset += record_size(data)
    return False
