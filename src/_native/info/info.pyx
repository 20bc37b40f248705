"""EIATTR records: .nv.info, .nv.info.F and their mercury twins.

Records of the inputs are kept in reverse order; kernels take over what the functions they reach
need (docs/format-notes.md, "Attributes of kernels").
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from libc.stddef cimport size_t
from sectionkinds cimport IS_RECORDS, KIND, K_INFO
from tables.attributes cimport find_record, record_size
from attributetypes cimport (
    ATTRIBUTE, EIATTR_EXTERNS, EIATTR_FRAME_SIZE, EIATTR_KPARAM_INFO, EIATTR_MAX_STACK_SIZE,
    EIATTR_MERCURY_FINALIZER_OPTIONS, EIATTR_MERCURY_ISA_VERSION, EIATTR_MIN_STACK_SIZE,
    EIATTR_NVSAL_SW_WAR, EIATTR_PARAM_CBANK, EIATTR_REGCOUNT, FIRST_ISA_VERSION, JOIN_NOTHING,
    JOIN_NUMBERS, JOIN_UNION,
)
from base.elf64 cimport load32
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from tables.graph cimport CallRows, calls_of, graph_init
from info.frames cimport CodeFrame, find_frames, has_whole_file
from info.inherit cimport inherit, mark_recursion, put_unknown_bits
from info.preexit cimport find_preexits, put_closing
from info.records cimport (
    Info, InheritRow, Record, entity_of, external, has_barriers, info_source, inherits, put,
    section_symbol, set_length, set_record, set_rules,
)
from pylink._native.tables cimport Blob, MergedTables, ObjectTables, PlacedTables, Spans, take_rows
from tables.kinds cimport is_a, is_function_info
from tables.rows cimport (
    EF_ALIAS, EF_DEFINED, EF_LIVE, E_FUNC, NO_STACK_BOUND, RESOLUTION_WON, EntityRow, FileRow,
    OutRow, SectionRow, SpanRow, is_root,
)
from traits cimport TRAIT_EARLY_FILES, TRAIT_KEEPS_SHARED, TRAIT_MERCURY
from base.vector cimport vec_extend, vec_push
from base.threads cimport MOST_THREADS, claim, give_back, in_parts, take_run


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
        scratch_vector(&scratch, &m.givers, 4)
        m.info_out = scratch_nones(&scratch, m.merged.entity_count)
        m.gives = <uint8_t*>scratch_zeros(&scratch, m.merged.entity_count, 1)
        m.preexits = <uint8_t*>scratch_zeros(&scratch, m.merged.entity_count, 1)
        m.aliases = <uint32_t*>scratch_zeros(&scratch, m.merged.entity_count, 4)
        if not scratch.failed:
            with nogil:
                count_aliases(&m)
                scratch.failed = not find_givers(&m)
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


cdef bint find_givers(Info* m) noexcept nogil:
    """Functions with records that kernels take over; all, where one knows the bits it uses."""
    cdef size_t i
    cdef const SectionRow* s
    cdef const OutRow* out
    cdef uint64_t at
    cdef const uint8_t* data
    cdef int32_t* row
    cdef uint8_t barriers[4]
    for i in range(m.placed.out_count):
        out = &m.placed.outs[i]
        if not is_function_info(out.kind):
            continue
        m.info_out[out.entity] = <int32_t>i
        if is_root(&m.merged.entities[out.entity]):
            m.live_kernels += 1
        s = info_source(m, out.entity)
        if s == NULL:
            continue
        at = 0
        while at < s.size:
            data = m.objects.arena + s.offset + at
            if m.rules[data[1]].how != JOIN_NOTHING:
                m.gives[out.entity] = True
            if m.rules[data[1]].how == JOIN_UNION:
                m.unknown_bits = data[1]
            at += record_size(data)
        if has_barriers(m, s, barriers):
            m.gives[out.entity] = True
    for i in range(m.placed.out_count):
        out = &m.placed.outs[i]
        if not is_function_info(out.kind) or info_source(m, out.entity) == NULL:
            continue
        if m.unknown_bits:
            m.gives[out.entity] = True
        if m.gives[out.entity]:
            row = <int32_t*>vec_push(&m.givers)
            if row == NULL:
                return False
            row[0] = <int32_t>i
    return True


# --- .nv.info ---------------------------------------------------------------------------------


cdef bint emit_file_info(Info* m, uint16_t kind) noexcept nogil:
    cdef Scratch scratch
    cdef CodeFrame* frames = NULL
    cdef bint done
    scratch_init(&scratch)
    if not KIND[kind].mercury and m.objects.traits & TRAIT_MERCURY and has_whole_file(m):
        frames = find_frames(m, &scratch)
    done = not scratch.failed and emit_file_records(m, kind, frames)
    scratch_free(&scratch)
    return done


cdef bint emit_file_records(Info* m, uint16_t kind, const CodeFrame* frames) noexcept nogil:
    """Records of .nv.info or its twin; `frames` are by input section, or NULL."""
    cdef size_t f, i
    cdef uint32_t j
    cdef const SectionRow* s
    cdef const uint8_t* data
    cdef uint8_t* place
    cdef uint64_t at
    cdef Record* record
    cdef int32_t symbol, section
    cdef uint32_t value
    m.records.count = 0
    for f in range(m.objects.file_count):
        for j in range(m.objects.files[f].first_section,
                       m.objects.files[f].first_section + m.objects.files[f].section_count):
            s = &m.objects.sections[j]
            if s.kind != kind:
                continue
            at = 0
            while at < s.size:
                data = m.objects.arena + s.offset + at
                at += record_size(data)
                if not file_record_stays(m, data, &m.objects.files[f]):
                    continue
                record = <Record*>vec_push(&m.records)
                if record == NULL:
                    return False
                set_record(record, data, <uint32_t>f)
    for i in range(m.records.count):
        record = <Record*>m.records.data + (m.records.count - 1 - i)
        place = put(m, record.data, record.size)
        if place == NULL:
            return False
        if names_function(record.data):
            symbol = entity_of(m, record.file, load32(record.data + 4))
            memcpy(place + 4, &m.placed.symbol_index[symbol], 4)
            section = m.objects.symbols[m.merged.entities[symbol].winner].section
            if (frames != NULL and record.data[1] == EIATTR_FRAME_SIZE and section >= 0
                    and frames[section].known):
                memcpy(place + 8, &frames[section].size, 4)
            if m.objects.executable and record.data[1] == EIATTR_REGCOUNT:
                value = m.merged.functions[symbol].regcount
                memcpy(place + 8, &value, 4)
    return not m.objects.executable or emit_stack_sizes(m)


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


cdef inline bint names_function(const uint8_t* data) noexcept nogil:
    return data[0] == 4 and ATTRIBUTE[data[1]].of_function


cdef bint file_record_stays(Info* m, const uint8_t* data, const FileRow* file) noexcept nogil:
    cdef uint32_t symbol
    cdef int32_t e
    if not names_function(data):
        return True
    if m.objects.executable and (
            data[1] == EIATTR_MAX_STACK_SIZE or data[1] == EIATTR_MIN_STACK_SIZE):
        return False
    symbol = file.first_symbol + load32(data + 4)
    e = m.merged.symbol_entity[symbol]
    return (e >= 0 and m.merged.symbol_resolution[symbol] == RESOLUTION_WON
            and m.merged.entities[e].flags & EF_LIVE != 0)


cdef packed struct StackSize:
    uint8_t format
    uint8_t attribute
    uint16_t size
    uint32_t symbol
    uint32_t bytes


cdef int by_symbol(const void* a, const void* b) noexcept nogil:
    cdef uint32_t x = (<const StackSize*>a).symbol, y = (<const StackSize*>b).symbol
    return -1 if x < y else x > y


cdef bint emit_stack_sizes(Info* m) noexcept nogil:
    """MIN_STACK_SIZE of each kernel, by symbol index."""
    cdef size_t start = m.blob.count, i
    cdef StackSize* record
    for i in range(m.merged.entity_count):
        if inherits(m, <int32_t>i) and m.merged.entities[i].flags & EF_LIVE:
            record = <StackSize*>vec_extend(&m.blob, sizeof(StackSize))
            if record == NULL:
                return False
            record.format = 4
            record.attribute = EIATTR_MIN_STACK_SIZE
            record.size = 8
            record.symbol = m.placed.symbol_index[i]
            record.bytes = m.merged.functions[i].stack
    qsort(m.blob.data + start, (m.blob.count - start) // sizeof(StackSize), sizeof(StackSize),
          by_symbol)
    return True


# --- .nv.info.F -------------------------------------------------------------------------------


cdef bint emit_function_info(Info* m, int32_t e, bint mercury) noexcept nogil:
    """One function's records. `sass` lists what only the machine code's own list has."""
    cdef int32_t at = m.merged.functions[e].merc_info
    cdef const SectionRow* s = NULL
    cdef const SectionRow* sass = NULL
    cdef uint64_t start
    cdef size_t i
    cdef Record* record
    cdef bint kernel = m.objects.executable and inherits(m, e)
    cdef uint8_t barriers[4]
    if m.merged.functions[e].info >= 0:
        sass = &m.objects.sections[m.merged.functions[e].info]
    if at >= 0:
        s = &m.objects.sections[at]
    else:
        s = sass
    if s == NULL:
        return not kernel or inherit(m, e, m.blob.count)
    if not list_records(m, s):
        return False
    if not mercury and at >= 0 and sass != NULL:
        match_records(m, sass)
    start = m.blob.count
    if (m.objects.traits & TRAIT_MERCURY and not m.objects.traits & TRAIT_EARLY_FILES
            and not put_isa_version(m, s)):
        return False
    for i in range(m.records.count):
        record = <Record*>m.records.data + (m.records.count - 1 - i)
        if not mercury and at >= 0 and record.data[1] == EIATTR_MERCURY_FINALIZER_OPTIONS:
            continue
        if not mercury and closes(m, record.data[1]):
            continue
        if m.objects.executable and m.rules[record.data[1]].how == JOIN_NUMBERS and not kernel:
            continue
        if not put_record(m, record, kernel):
            return False
    if has_barriers(m, s, barriers) and put(m, barriers, 4) == NULL:
        return False
    if kernel and m.merged.functions[e].stack == NO_STACK_BOUND and not mark_recursion(m, start):
        return False
    if m.objects.executable and m.unknown_bits and not put_unknown_bits(m, e, start):
        return False
    if kernel and not inherit(m, e, start):
        return False
    if not mercury and at >= 0 and sass != NULL:
        return put_sass_only(m, sass)
    return True


cdef bint put_isa_version(Info* m, const SectionRow* s) noexcept nogil:
    """From sm_100 on functions of objects from before 13.0 get the version that those have."""
    cdef uint16_t version = FIRST_ISA_VERSION
    cdef uint8_t record[4]
    if find_record(m.objects.arena + s.offset, s.size, EIATTR_MERCURY_ISA_VERSION) != NULL:
        return True
    record[0] = 3
    record[1] = EIATTR_MERCURY_ISA_VERSION
    memcpy(record + 2, &version, 2)
    return put(m, record, 4) != NULL


cdef bint list_records(Info* m, const SectionRow* s) noexcept nogil:
    cdef uint64_t at = 0
    cdef Record* record
    m.records.count = 0
    while at < s.size:
        record = <Record*>vec_push(&m.records)
        if record == NULL:
            return False
        set_record(record, m.objects.arena + s.offset + at, s.file)
        at += record.size
    return True


cdef void match_records(Info* m, const SectionRow* sass) noexcept nogil:
    """Give each mercury record the machine code's: that of the same attribute and turn, if any.

    Linear: for each of the 256 attributes the machine code's list is read once.
    """
    cdef uint64_t cursor[256]
    cdef Record* record
    cdef size_t i
    cdef uint64_t at
    cdef const uint8_t* data
    cdef uint8_t attribute
    memset(cursor, 0, sizeof(cursor))
    for i in range(m.records.count):
        record = <Record*>m.records.data + i
        attribute = record.data[1]
        at = cursor[attribute]
        while at < sass.size:
            data = m.objects.arena + sass.offset + at
            at += record_size(data)
            if data[1] == attribute:
                record.twin = data
                break
        cursor[attribute] = at


cdef bint put_record(Info* m, Record* record, bint keep_empty) noexcept nogil:
    """Append one record; an empty list goes, unless `keep_empty`: `inherit` may fill it."""
    cdef const uint8_t* data = record.twin if record.twin != NULL else record.data
    cdef uint8_t* place
    cdef uint32_t symbol, index, i, count = 0
    cdef int32_t at
    cdef uint8_t head[4]
    if data[0] == 4 and data[1] == EIATTR_EXTERNS:
        memcpy(head, data, 4)
        place = put(m, head, 4)
        if place == NULL:
            return False
        index = <uint32_t>(m.blob.count - 4)
        for i in range((record_size(data) - 4) // 4):
            symbol = external(m, record.file, load32(data + 4 + 4 * i))
            if symbol:
                if put(m, <const uint8_t*>&symbol, 4) == NULL:
                    return False
                count += 1
        if count == 0 and not keep_empty:
            m.blob.count -= 4
            return True
        set_length(m.blob.data + index, 4 * count)
        return True
    if (data[0] == 4 and record_size(data) == 4 and m.rules[data[1]].how == JOIN_NUMBERS
            and not keep_empty):
        return True
    place = put(m, data, record_size(data))
    if place == NULL:
        return False
    if data[0] == 4 and data[1] == EIATTR_PARAM_CBANK:
        symbol = section_symbol(m, record.file, load32(data + 4))
        memcpy(place + 4, &symbol, 4)
    elif data[0] == 4 and data[1] == EIATTR_KPARAM_INFO and load32(data + 4) == 0:
        # It names the null symbol, which stays that except for some releases and -g.
        at = entity_of(m, record.file, 0)
        if at >= 0:
            memcpy(place + 4, &m.placed.symbol_index[at], 4)
    return True


cdef bint put_sass_only(Info* m, const SectionRow* sass) noexcept nogil:
    """Records that the mercury list lacks, in input order."""
    cdef Record* records = <Record*>m.records.data
    cdef Record record
    cdef uint64_t at = 0
    cdef uint32_t rest[256]         # by attribute: records of the mercury list not yet met
    cdef size_t i
    memset(rest, 0, sizeof(rest))
    for i in range(m.records.count):
        rest[records[i].data[1]] += 1
    while at < sass.size:
        set_record(&record, m.objects.arena + sass.offset + at, sass.file)
        at += record.size
        if rest[record.data[1]]:
            rest[record.data[1]] -= 1
        elif not closes(m, record.data[1]) and not put_record(m, &record, False):
            return False
    return True


cdef inline bint closes(Info* m, uint8_t attribute) noexcept nogil:
    """Whether the link writes the record anew, or omits it, whatever inputs say."""
    if (attribute == EIATTR_NVSAL_SW_WAR and m.objects.traits & TRAIT_MERCURY
            and m.objects.traits & TRAIT_KEEPS_SHARED):
        # It follows the code, which all has become that of the release. Releases before 13.2 do not
        # know it, and leave it as it is.
        return True
    return m.closing_size and find_record(m.closing, m.closing_size, attribute) != NULL
