"""EIATTR records: .nv.info, .nv.info.F and their mercury twins.

Records of the inputs are kept in reverse order; kernels take over what the functions they reach
need (docs/format-notes.md, "Attributes of kernels").
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from libc.stddef cimport size_t
from sectionkinds cimport IS_RECORDS, KIND, K_INFO
from tables.attributes cimport record_size
from attributetypes cimport JOIN_NOTHING, JOIN_UNION
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from tables.graph cimport CallRows, calls_of, graph_init
from info.preexit cimport find_preexits, put_closing
from info.records cimport Info, InheritRow, Record, has_barriers, info_source, set_rules
from pylink._native.tables cimport Blob, MergedTables, ObjectTables, PlacedTables, Spans, take_rows
from tables.kinds cimport is_a, is_function_info
from tables.rows cimport (
    EF_ALIAS, EF_DEFINED, EF_LIVE, E_FUNC, EntityRow, OutRow, SectionRow, SpanRow, is_root,
)
from base.vector cimport vec_push
from base.threads cimport MOST_THREADS, claim, for_each, give_back, in_parts, take_run
from info.filerecords cimport emit_file_info, file_record_stays
from info.functionrecords cimport emit_function_info


def emit_info(PlacedTables placed not None, bytes inherited not None, bytes closing not None):
    """Contents of every information section.

    `inherited` is the table of `pylink.facts.inheritance`; `closing` are the records that end those
    of each function. Adds the bytes to the contents that the link makes, and returns the entities
    of kernels that reach functions for one CTA and for a pair of them.
    """
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef Info m
    cdef size_t i, at
    memset(&m, 0, sizeof(Info))
    if PyBytes_GET_SIZE(inherited) % sizeof(InheritRow):
        raise ValueError("one row per attribute")
    set_rules(&m, <const InheritRow*>PyBytes_AS_STRING(inherited),
              PyBytes_GET_SIZE(inherited) // sizeof(InheritRow))
    m.closing = <const uint8_t*>PyBytes_AS_STRING(closing)
    m.closing_size = <uint32_t>PyBytes_GET_SIZE(closing)
    objects.view(&m.objects)
    merged.view(&m.merged)
    placed.view(&m.placed)
    cdef size_t nodes = m.merged.entity_count + merged.prototypes.count, next_row = 0
    cdef Scratch scratch
    cdef Info* parts
    cdef bint failed = False
    cdef CallRows calls = calls_of(merged)
    cdef set mixed = set()
    cdef int32_t kernel
    # Last: what raises before the block below would keep the threads.
    cdef size_t rows = m.placed.out_count
    cdef size_t part_count = 1 + claim(rows * ROW_AS_BYTES, rows, MOST_THREADS - 1)
    m.next = &next_row
    scratch_init(&scratch)
    try:
        graph_init(&m.graph, &scratch, &calls)
        scratch_vector(&scratch, &m.contributors, 4)
        m.info_out = scratch_nones(&scratch, m.merged.entity_count)
        m.contributes = <uint8_t*>scratch_zeros(&scratch, m.merged.entity_count, 1)
        m.preexits = <uint8_t*>scratch_zeros(&scratch, m.merged.entity_count, 1)
        m.aliases = <uint32_t*>scratch_zeros(&scratch, m.merged.entity_count, 4)
        if not scratch.failed:
            with nogil:
                count_aliases(&m)
                scratch.failed = not find_contributors(&m, &scratch)
                find_preexits(&m)
        parts = <Info*>scratch_zeros(&scratch, part_count, sizeof(Info))
        for i in range(part_count if parts != NULL else 0):
            parts[i] = m
            start_part(&parts[i], &scratch, nodes)
        if not scratch.failed:
            with nogil:
                in_parts(emit_rows, parts, part_count)
            for i in range(part_count):
                failed = failed or parts[i].failed
        if scratch.failed or failed:
            raise MemoryError
        for i in range(part_count):
            for at in range(parts[i].mixed.count):
                # Whichever thread found it: in the order of the output.
                kernel = (<int32_t*>parts[i].mixed.data)[at]
                mixed.add((m.info_out[kernel], kernel))
            placed.add(Blob(take_rows(&parts[i].blob)), Spans(take_rows(&parts[i].spans)))
    finally:
        give_back(part_count - 1)
        scratch_free(&scratch)
    return [found for _, found in sorted(mixed)]


cdef enum:
    ROW_AS_BYTES = 420          # moved in the time that the records of a section take
    SOME_ROWS = 64              # that a thread does in a row
    GIVERS_AT_ONCE = 1024       # rows that a thread looks through
    LOOK_AS_BYTES = 64          # moved in the time of a look at one of them


cdef void start_part(Info* m, Scratch* scratch, size_t nodes) noexcept:
    """What a thread needs for itself."""
    scratch_vector(scratch, &m.reached, 4)
    scratch_vector(scratch, &m.records, sizeof(Record))
    scratch_vector(scratch, &m.listed, 4)
    scratch_vector(scratch, &m.walked, 4)
    scratch_vector(scratch, &m.mixed, 4)
    scratch_vector(scratch, &m.blob, 1)
    scratch_vector(scratch, &m.spans, sizeof(SpanRow))
    m.stamp = <uint32_t*>scratch_zeros(scratch, nodes, 4)
    m.stack = <uint32_t*>scratch_zeros(scratch, nodes, 4)


cdef void emit_rows(void* context, size_t part) noexcept nogil:
    """Write records until no row of the output is left that nobody has begun with."""
    cdef Info* m = <Info*>context + part
    cdef size_t first = take_run(m.next, SOME_ROWS), i
    while first < m.placed.out_count:
        for i in range(first, min(first + SOME_ROWS, m.placed.out_count)):
            if is_a(m.placed.outs[i].kind, IS_RECORDS) and not emit_row(m, i):
                m.failed = True
                return
        first = take_run(m.next, SOME_ROWS)


cdef bint emit_row(Info* m, size_t i) noexcept nogil:
    cdef const OutRow* out = &m.placed.outs[i]
    cdef uint64_t start = m.blob.count
    cdef SpanRow* span
    if out.entity < 0:
        if not emit_file_info(m, out.kind):
            return False
    elif not emit_function_info(m, out.entity, KIND[out.kind].mercury):
        return False
    elif not KIND[out.kind].mercury and not put_closing(m, out.entity):
        return False
    span = <SpanRow*>vec_push(&m.spans)
    if span == NULL:
        return False
    span.out = <int32_t>i
    span.offset = start
    span.size = m.blob.count - start
    return True


cdef void count_aliases(Info* m) noexcept nogil:
    cdef size_t i
    cdef const EntityRow* e
    cdef int32_t section
    for i in range(m.merged.entity_count):
        e = &m.merged.entities[i]
        if e.flags & EF_ALIAS and e.flags & EF_LIVE:
            section = m.objects.symbols[e.winner].section
            m.aliases[m.merged.symbol_entity[m.objects.sections[section].target]] += 1


# What is found of functions by several threads, each with runs of rows of the output.
ctypedef struct Givers:
    Info* info
    uint32_t* roots             # by run: how many kernels
    uint8_t* bits               # by run: an attribute of bits that a record has, or 0


cdef void find_givers(void* context, size_t run) noexcept nogil:
    """Which functions have records that kernels take over, in a run of rows."""
    cdef const Givers* givers = <const Givers*>context
    cdef Info* m = givers.info
    cdef size_t i, first = run * GIVERS_AT_ONCE
    cdef const SectionRow* s
    cdef const OutRow* out
    cdef uint64_t at
    cdef const uint8_t* data
    cdef uint8_t barriers[4]
    for i in range(first, min(first + GIVERS_AT_ONCE, m.placed.out_count)):
        out = &m.placed.outs[i]
        if not is_function_info(out.kind):
            continue
        m.info_out[out.entity] = <int32_t>i
        if is_root(&m.merged.entities[out.entity]):
            givers.roots[run] += 1
        s = info_source(m, out.entity)
        if s == NULL:
            continue
        at = 0
        while at < s.size:
            data = m.objects.arena + s.offset + at
            if m.rules[data[1]].how != JOIN_NOTHING:
                m.contributes[out.entity] = True
            if m.rules[data[1]].how == JOIN_UNION:
                givers.bits[run] = data[1]
            at += record_size(data)
        if has_barriers(m, s, barriers):
            m.contributes[out.entity] = True


cdef bint find_contributors(Info* m, Scratch* scratch) noexcept nogil:
    """Functions with records that kernels take over; all, where one knows the bits it uses."""
    cdef size_t runs = m.placed.out_count // GIVERS_AT_ONCE + 1, i
    cdef Givers givers
    cdef const OutRow* out
    cdef int32_t* row
    givers.info = m
    givers.roots = <uint32_t*>scratch_zeros(scratch, runs, sizeof(uint32_t))
    givers.bits = <uint8_t*>scratch_zeros(scratch, runs, 1)
    if scratch.failed:
        return False
    for_each(find_givers, &givers, runs, m.placed.out_count * LOOK_AS_BYTES)
    for i in range(runs):
        m.live_kernels += givers.roots[i]
        m.unknown_bits = givers.bits[i] if givers.bits[i] else m.unknown_bits
    for i in range(m.placed.out_count):
        out = &m.placed.outs[i]
        if not is_function_info(out.kind) or info_source(m, out.entity) == NULL:
            continue
        if m.unknown_bits:
            m.contributes[out.entity] = True
        if m.contributes[out.entity]:
            row = <int32_t*>vec_push(&m.contributors)
            if row == NULL:
                return False
            row[0] = <int32_t>i
    return True


def has_file_records(MergedTables merged not None):
    """Whether .nv.info of the output has any record; nvlink omits an empty one."""
    cdef ObjectTables objects = merged.objects
    cdef const EntityRow* e = merged.entities.rows
    cdef size_t n = merged.entities.count, f
    cdef uint32_t i
    cdef uint64_t at
    cdef const uint8_t* data
    cdef Info m
    for i in range(n):
        if e[i].kind == E_FUNC and e[i].flags & EF_LIVE and e[i].flags & EF_DEFINED:
            return True
    memset(&m, 0, sizeof(Info))
    objects.view(&m.objects)
    merged.view(&m.merged)
    for f in range(objects.files.count):
        for i in range(m.objects.files[f].first_section,
                       m.objects.files[f].first_section + m.objects.files[f].section_count):
            at = 0
            while m.objects.sections[i].kind == K_INFO and at < m.objects.sections[i].size:
                data = m.objects.arena + m.objects.sections[i].offset + at
                if file_record_stays(&m, data, &m.objects.files[f]):
                    return True
                at += record_size(data)
    return False
