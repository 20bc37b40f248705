"""EIATTR records: .nv.info, .nv.info.F and their mercury twins.

Records of the inputs are kept in reverse order; kernels take over what the functions they reach
need (docs/format-notes.md, "Function attributes").
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, qsort
from libc.string cimport memcpy, memset

from elf64 cimport *
from graph cimport *
from rows cimport *
from vec cimport *


# A record of an input, and the file whose symbol numbers it uses.
ctypedef struct Record:
    const uint8_t* data
    uint32_t size
    uint32_t file


ctypedef struct Info:
    const uint8_t* arena
    const FileRow* files
    const SectionRow* sections
    const SymbolRow* symbols
    const EntityRow* entities
    const int32_t* entity
    const uint8_t* role
    const FunctionRow* functions
    const OutRow* outs
    const int32_t* out_of
    const uint32_t* index           # by entity: symbol index in the output, 0 when dropped
    const uint32_t* section_index   # by OutRow: index of its section symbol
    size_t file_count
    size_t section_count
    size_t entity_count
    size_t out_count
    uint32_t family
    bint executable
    CallGraph graph
    uint32_t* stamp                 # by node: the last walk that came here
    uint32_t walk
    uint32_t* stack
    int32_t* info_out               # by entity: its .nv.info.F OutRow, -1 without
    uint8_t* gives                  # by entity: has records that kernels take over
    uint32_t live_kernels
    Vec reached                     # int32 OutRow numbers of .nv.info.F, for one kernel
    Vec givers                      # int32 OutRow numbers of all functions that give
    Vec records
    Vec externs                     # uint32 symbol indices, for one kernel
    Vec blob
    Vec spans                       # SpanRow


def emit_info(bytes arena, bytes files, bytes sections, bytes symbols, bytes entities,
              bytes symbol_entity, bytes symbol_role, bytes calls, bytes prototypes,
              bytes functions, bytes outs, bytes out_of, bytes symbol_index,
              bytes section_symbol_index, int family, bint executable):
    """Contents of every information section.

    Returns `(blob, spans)`: the bytes, and packed SpanRow rows that say which OutRow each part
    belongs to.
    """
    cdef Info m
    memset(&m, 0, sizeof(Info))
    m.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    m.files = <const FileRow*>PyBytes_AS_STRING(files)
    m.sections = <const SectionRow*>PyBytes_AS_STRING(sections)
    m.symbols = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    m.entities = <const EntityRow*>PyBytes_AS_STRING(entities)
    m.entity = <const int32_t*>PyBytes_AS_STRING(symbol_entity)
    m.role = <const uint8_t*>PyBytes_AS_STRING(symbol_role)
    m.functions = <const FunctionRow*>PyBytes_AS_STRING(functions)
    m.outs = <const OutRow*>PyBytes_AS_STRING(outs)
    m.out_of = <const int32_t*>PyBytes_AS_STRING(out_of)
    m.index = <const uint32_t*>PyBytes_AS_STRING(symbol_index)
    m.section_index = <const uint32_t*>PyBytes_AS_STRING(section_symbol_index)
    m.file_count = PyBytes_GET_SIZE(files) // sizeof(FileRow)
    m.section_count = PyBytes_GET_SIZE(sections) // sizeof(SectionRow)
    m.entity_count = PyBytes_GET_SIZE(entities) // sizeof(EntityRow)
    m.out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    m.family = family
    m.executable = executable
    vec_init(&m.reached, 4)
    vec_init(&m.givers, 4)
    vec_init(&m.records, sizeof(Record))
    vec_init(&m.externs, 4)
    vec_init(&m.blob, 1)
    vec_init(&m.spans, sizeof(SpanRow))
    cdef size_t nodes = m.entity_count + PyBytes_GET_SIZE(prototypes) // 8
    cdef bint ok = graph_init(&m.graph, <const CallRow*>PyBytes_AS_STRING(calls),
                              PyBytes_GET_SIZE(calls) // sizeof(CallRow), m.entity_count, nodes)
    m.stamp = <uint32_t*>calloc(nodes + 1, 4)
    m.stack = <uint32_t*>calloc(nodes + 1, 4)
    m.info_out = <int32_t*>calloc(m.entity_count + 1, 4)
    m.gives = <uint8_t*>calloc(m.entity_count + 1, 1)
    ok = (ok and m.stamp != NULL and m.stack != NULL and m.info_out != NULL and m.gives != NULL)
    if ok:
        with nogil:
            ok = emit_all(&m)
    graph_free(&m.graph)
    free(m.stamp)
    free(m.stack)
    free(m.info_out)
    free(m.gives)
    vec_free(&m.reached)
    vec_free(&m.givers)
    vec_free(&m.records)
    vec_free(&m.externs)
    result = vec_take(&m.blob), vec_take(&m.spans)
    if not ok:
        raise MemoryError
    return result


cdef bint emit_all(Info* m) noexcept nogil:
    cdef size_t i
    cdef const OutRow* out
    cdef SpanRow* span
    cdef uint64_t start
    cdef bint ok = True
    find_givers(m)
    for i in range(m.out_count):
        out = &m.outs[i]
        start = m.blob.count
        if out.kind == K_INFO or out.kind == K_MERC_INFO:
            ok = emit_file_info(m, K_INFO if out.kind == K_INFO else K_MERC_INFO)
        elif out.kind == K_INFO_FUNC:
            ok = emit_function_info(m, out.entity, False)
        elif out.kind == K_MERC_INFO_FUNC:
            ok = emit_function_info(m, out.entity, True)
        else:
            continue
        span = <SpanRow*>vec_push(&m.spans)
        if not ok or span == NULL:
            return False
        span.out = <int32_t>i
        span.spare = 0
        span.offset = start
        span.size = m.blob.count - start
    return True


cdef inline uint32_t record_size(const uint8_t* data) noexcept nogil:
    if data[0] == 4:
        return 4 + (<uint32_t>data[2] | <uint32_t>data[3] << 8)
    return 4


cdef inline uint32_t word_at(const uint8_t* data) noexcept nogil:
    cdef uint32_t word
    memcpy(&word, data, 4)
    return word


cdef void find_givers(Info* m) noexcept nogil:
    """Functions with barriers, reserved shared memory or external functions of their own."""
    cdef size_t i
    cdef const SectionRow* s
    cdef const OutRow* out
    cdef uint64_t at
    cdef const uint8_t* data
    cdef int32_t* row
    memset(m.info_out, 0xff, 4 * m.entity_count)
    for i in range(m.out_count):
        out = &m.outs[i]
        if out.kind != K_INFO_FUNC:
            continue
        m.info_out[out.entity] = <int32_t>i
        if m.entities[out.entity].flags & EF_KERNEL:
            m.live_kernels += 1
        s = info_source(m, out.entity)
        if s == NULL:
            continue
        at = 0
        while at < s.size:
            data = m.arena + s.offset + at
            if data[1] == EIATTR_NUM_BARRIERS or data[1] == EIATTR_EXTERNS \
                    or data[1] == EIATTR_RESERVED_SMEM_USED:
                if not m.gives[out.entity]:
                    row = <int32_t*>vec_push(&m.givers)
                    if row != NULL:
                        row[0] = <int32_t>i
                m.gives[out.entity] = True
            at += record_size(data)


cdef const SectionRow* info_source(Info* m, int32_t entity) noexcept nogil:
    """The records that decide: the mercury list where there is one."""
    cdef int32_t at = m.functions[entity].merc_info
    if at < 0:
        at = m.functions[entity].info
    return &m.sections[at] if at >= 0 else NULL


cdef uint8_t* put(Info* m, const uint8_t* data, uint32_t size) noexcept nogil:
    cdef uint8_t* place = <uint8_t*>vec_extend(&m.blob, size)
    if place != NULL:
        memcpy(place, data, size)
    return place


# --- .nv.info ---------------------------------------------------------------------------------

cdef bint emit_file_info(Info* m, uint16_t kind) noexcept nogil:
    cdef size_t f, i
    cdef uint32_t j
    cdef const SectionRow* s
    cdef const uint8_t* data
    cdef uint8_t* place
    cdef uint64_t at
    cdef Record* record
    cdef int32_t symbol
    cdef uint32_t value
    m.records.count = 0
    for f in range(m.file_count):
        for j in range(m.files[f].first_section,
                       m.files[f].first_section + m.files[f].section_count):
            s = &m.sections[j]
            if s.kind != kind:
                continue
            at = 0
            while at < s.size:
                data = m.arena + s.offset + at
                at += record_size(data)
                if not file_record_stays(m, data, &m.files[f]):
                    continue
                record = <Record*>vec_push(&m.records)
                if record == NULL:
                    return False
                record.data = data
                record.size = record_size(data)
                record.file = <uint32_t>f
    for i in range(m.records.count):
        record = <Record*>m.records.data + (m.records.count - 1 - i)
        place = put(m, record.data, record.size)
        if place == NULL:
            return False
        if names_function(record.data):
            symbol = m.entity[m.files[record.file].first_symbol + word_at(record.data + 4)]
            memcpy(place + 4, &m.index[symbol], 4)
            if m.executable and record.data[1] == EIATTR_REGCOUNT:
                value = m.functions[symbol].regcount
                memcpy(place + 8, &value, 4)
    return not m.executable or emit_stack_sizes(m)


def has_file_records(bytes arena, bytes files, bytes sections, bytes entities,
                     bytes symbol_entity, bytes symbol_role, bint executable):
    """Whether .nv.info of the output has any record; nvlink leaves out an empty one."""
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
    cdef size_t n = PyBytes_GET_SIZE(entities) // sizeof(EntityRow), f
    cdef uint32_t i
    cdef uint64_t at
    cdef const uint8_t* data
    cdef Info m
    for i in range(n):
        if e[i].kind == E_FUNC and e[i].flags & EF_LIVE and e[i].flags & EF_DEFINED:
            return True
    memset(&m, 0, sizeof(Info))
    m.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    m.files = <const FileRow*>PyBytes_AS_STRING(files)
    m.sections = <const SectionRow*>PyBytes_AS_STRING(sections)
    m.entities = e
    m.entity = <const int32_t*>PyBytes_AS_STRING(symbol_entity)
    m.role = <const uint8_t*>PyBytes_AS_STRING(symbol_role)
    m.executable = executable
    for f in range(PyBytes_GET_SIZE(files) // sizeof(FileRow)):
        for i in range(m.files[f].first_section,
                       m.files[f].first_section + m.files[f].section_count):
            at = 0
            while m.sections[i].kind == K_INFO and at < m.sections[i].size:
                data = m.arena + m.sections[i].offset + at
                if file_record_stays(&m, data, &m.files[f]):
                    return True
                at += record_size(data)
    return False


cdef inline bint names_function(const uint8_t* data) noexcept nogil:
    return data[0] == 4 and (data[1] == EIATTR_REGCOUNT or data[1] == EIATTR_FRAME_SIZE
                             or data[1] == EIATTR_MAX_STACK_SIZE
                             or data[1] == EIATTR_MIN_STACK_SIZE)


cdef bint file_record_stays(Info* m, const uint8_t* data, const FileRow* file) noexcept nogil:
    cdef uint32_t symbol
    cdef int32_t e
    if not names_function(data):
        return True
    if m.executable and (data[1] == EIATTR_MAX_STACK_SIZE or data[1] == EIATTR_MIN_STACK_SIZE):
        return False
    symbol = file.first_symbol + word_at(data + 4)
    e = m.entity[symbol]
    return e >= 0 and m.role[symbol] == ROLE_WON and m.entities[e].flags & EF_LIVE != 0


cdef int by_index(const void* a, const void* b) noexcept nogil:
    cdef uint32_t x = (<const uint32_t*>a)[0], y = (<const uint32_t*>b)[0]
    return -1 if x < y else x > y


cdef bint emit_stack_sizes(Info* m) noexcept nogil:
    """MIN_STACK_SIZE of each kernel, by symbol index."""
    cdef size_t i
    cdef uint32_t* pair
    cdef uint8_t* place
    m.records.count = 0
    for i in range(m.entity_count):
        if m.entities[i].flags & EF_KERNEL and m.entities[i].flags & EF_LIVE:
            pair = <uint32_t*>vec_push(&m.records)
            if pair == NULL:
                return False
            pair[0] = m.index[i]
            pair[1] = m.functions[i].stack
    qsort(m.records.data, m.records.count, sizeof(Record), by_index)
    for i in range(m.records.count):
        pair = <uint32_t*>(<Record*>m.records.data + i)
        place = <uint8_t*>vec_extend(&m.blob, 12)
        if place == NULL:
            return False
        place[0] = 4
        place[1] = EIATTR_MIN_STACK_SIZE
        place[2] = 8
        place[3] = 0
        memcpy(place + 4, pair, 8)
    return True


# --- .nv.info.F -------------------------------------------------------------------------------

cdef bint emit_function_info(Info* m, int32_t e, bint mercury) noexcept nogil:
    """One function's records. `sass` lists what only the machine code's own list has."""
    cdef int32_t at = m.functions[e].merc_info
    cdef const SectionRow* s = NULL
    cdef const SectionRow* sass = NULL
    cdef uint64_t start
    cdef size_t i
    cdef Record* record
    cdef bint kernel = m.executable and m.entities[e].flags & EF_KERNEL != 0
    if m.functions[e].info >= 0:
        sass = &m.sections[m.functions[e].info]
    if at >= 0:
        s = &m.sections[at]
    else:
        s = sass
    if s == NULL:
        return not kernel or inherit(m, e, m.blob.count)
    if not list_records(m, s):
        return False
    start = m.blob.count
    for i in range(m.records.count):
        record = <Record*>m.records.data + (m.records.count - 1 - i)
        if not mercury and at >= 0 and record.data[1] == 0x5a:
            continue
        if not put_record(m, record, sass if not mercury and at >= 0 else NULL,
                          m.records.count - 1 - i):
            return False
    if kernel and not inherit(m, e, start):
        return False
    if not mercury and at >= 0 and sass != NULL:
        return put_sass_only(m, sass)
    return True


cdef bint list_records(Info* m, const SectionRow* s) noexcept nogil:
    cdef uint64_t at = 0
    cdef Record* record
    m.records.count = 0
    while at < s.size:
        record = <Record*>vec_push(&m.records)
        if record == NULL:
            return False
        record.data = m.arena + s.offset + at
        record.size = record_size(record.data)
        record.file = s.file
        at += record.size
    return True


cdef const uint8_t* counterpart(Info* m, const SectionRow* sass, size_t position) noexcept nogil:
    """The machine code's record for mercury record `position`: same attribute, same turn."""
    cdef Record* records = <Record*>m.records.data
    cdef uint8_t attribute = records[position].data[1]
    cdef uint32_t turn = 0
    cdef size_t i
    cdef uint64_t at = 0
    cdef const uint8_t* data
    for i in range(position):
        turn += records[i].data[1] == attribute
    while at < sass.size:
        data = m.arena + sass.offset + at
        if data[1] == attribute:
            if turn == 0:
                return data
            turn -= 1
        at += record_size(data)
    return records[position].data


cdef bint put_record(Info* m, Record* record, const SectionRow* sass,
                     size_t position) noexcept nogil:
    cdef const uint8_t* data = record.data
    cdef uint8_t* place
    cdef uint32_t symbol, index, i, count = 0
    cdef uint8_t head[4]
    if sass != NULL:
        data = counterpart(m, sass, position)
    if data[0] == 4 and data[1] == EIATTR_EXTERNS:
        memcpy(head, data, 4)
        place = put(m, head, 4)
        if place == NULL:
            return False
        index = <uint32_t>(m.blob.count - 4)
        for i in range((record_size(data) - 4) // 4):
            symbol = external(m, record.file, word_at(data + 4 + 4 * i))
            if symbol:
                if put(m, <const uint8_t*>&symbol, 4) == NULL:
                    return False
                count += 1
        if count == 0 and not (m.executable and is_kernel_record(m, record)):
            m.blob.count -= 4
            return True
        set_length(m.blob.data + index, 4 * count)
        return True
    place = put(m, data, record_size(data))
    if place == NULL:
        return False
    if data[0] == 4 and data[1] == EIATTR_PARAM_CBANK:
        symbol = section_symbol(m, record.file, word_at(data + 4))
        memcpy(place + 4, &symbol, 4)
    return True


cdef inline void set_length(uint8_t* record, uint32_t length) noexcept nogil:
    record[2] = <uint8_t>(length & 0xff)
    record[3] = <uint8_t>(length >> 8)


cdef bint is_kernel_record(Info* m, Record* record) noexcept nogil:
    """Kernels keep an emptied EXTERNS until `inherit` has seen what they reach."""
    cdef uint32_t j
    for j in range(m.files[record.file].first_section,
                   m.files[record.file].first_section + m.files[record.file].section_count):
        if (m.sections[j].kind in (K_INFO_FUNC, K_MERC_INFO_FUNC) and m.sections[j].size
                and m.arena + m.sections[j].offset <= record.data
                and record.data < m.arena + m.sections[j].offset + m.sections[j].size):
            return m.entities[m.entity[m.sections[m.sections[j].target].target]].flags \
                & EF_KERNEL != 0
    return False


cdef uint32_t external(Info* m, uint32_t file, uint32_t symbol) noexcept nogil:
    """Output index of a function that EXTERNS still names, or 0."""
    cdef int32_t e = m.entity[m.files[file].first_symbol + symbol]
    if e < 0:
        return 0
    if m.entities[e].flags & EF_DEFINED:
        # From sm_100 on kernels stay listed: they are launched from the device.
        if m.family != FAMILY_C or not m.entities[e].flags & EF_KERNEL:
            return 0
    return m.index[e]


cdef uint32_t section_symbol(Info* m, uint32_t file, uint32_t symbol) noexcept nogil:
    cdef int32_t section = m.symbols[m.files[file].first_symbol + symbol].section
    if section < 0 or m.out_of[section] < 0:
        return 0
    return m.section_index[m.out_of[section]]


cdef bint put_sass_only(Info* m, const SectionRow* sass) noexcept nogil:
    """Records that the mercury list lacks, in input order."""
    cdef Record* records = <Record*>m.records.data
    cdef Record record
    cdef uint64_t at = 0, back
    cdef uint32_t have, turn
    cdef size_t i
    cdef const uint8_t* data
    while at < sass.size:
        data = m.arena + sass.offset + at
        have = turn = 0
        for i in range(m.records.count):
            have += records[i].data[1] == data[1]
        back = 0
        while back < at:
            turn += m.arena[sass.offset + back + 1] == data[1]
            back += record_size(m.arena + sass.offset + back)
        if turn >= have:
            record.data = data
            record.size = record_size(data)
            record.file = sass.file
            if not put_record(m, &record, NULL, 0):
                return False
        at += record_size(data)
    return True


# --- what kernels take over -------------------------------------------------------------------

cdef int by_number(const void* a, const void* b) noexcept nogil:
    cdef int32_t x = (<const int32_t*>a)[0], y = (<const int32_t*>b)[0]
    return -1 if x < y else x > y


cdef bint find_reached(Info* m, int32_t kernel) noexcept nogil:
    """`reached`: the functions the kernel reaches that give something, in section order."""
    cdef size_t depth = 0
    cdef uint32_t node, to, j
    cdef int32_t* row
    m.reached.count = 0
    if m.givers.count == 0:
        return True
    if m.live_kernels == 1:
        # A single kernel takes over from every live function.
        row = <int32_t*>vec_extend(&m.reached, m.givers.count)
        if row == NULL:
            return False
        memcpy(row, m.givers.data, 4 * m.givers.count)
        return True
    m.walk += 1
    m.stamp[kernel] = m.walk
    m.stack[0] = <uint32_t>kernel
    depth = 1
    while depth:
        depth -= 1
        node = m.stack[depth]
        if node < m.entity_count and m.gives[node] and m.info_out[node] >= 0:
            row = <int32_t*>vec_push(&m.reached)
            if row == NULL:
                return False
            row[0] = m.info_out[node]
        for j in range(m.graph.start[node], m.graph.start[node + 1]):
            to = m.graph.edges[j]
            if m.stamp[to] != m.walk:
                m.stamp[to] = m.walk
                m.stack[depth] = to
                depth += 1
    qsort(m.reached.data, m.reached.count, 4, by_number)
    return True


cdef int64_t own_record(Info* m, uint64_t start, uint8_t attribute) noexcept nogil:
    """Offset in the blob of the record with that attribute from `start` on, or -1."""
    cdef uint64_t at = start
    while at < m.blob.count:
        if m.blob.data[at + 1] == attribute:
            return <int64_t>at
        at += record_size(m.blob.data + at)
    return -1


cdef bint inherit(Info* m, int32_t kernel, uint64_t start) noexcept nogil:
    """Add to the kernel's records, which begin at `start`, what it takes from its callees."""
    cdef uint8_t crs[8]
    cdef uint8_t empty[4]
    cdef int64_t at
    cdef uint64_t offset
    cdef size_t i
    cdef const SectionRow* s
    cdef const uint8_t* data
    cdef uint16_t mine, theirs
    cdef int32_t function
    if m.functions[kernel].stack == NO_STACK_BOUND:
        memset(crs, 0xff, 8)
        crs[0] = 4
        crs[1] = EIATTR_CRS_STACK_SIZE
        crs[2] = 4
        crs[3] = 0
        at = own_record(m, start, EIATTR_CRS_STACK_SIZE)
        if at >= 0:
            memcpy(m.blob.data + at, crs, 8)
        elif put(m, crs, 8) == NULL:
            return False
    if not find_reached(m, kernel):
        return False
    for i in range(m.reached.count):
        function = m.outs[(<int32_t*>m.reached.data)[i]].entity
        s = info_source(m, function)
        if function == kernel or s == NULL:
            continue
        offset = 0
        while offset < s.size:
            data = m.arena + s.offset + offset
            offset += record_size(data)
            if data[1] == EIATTR_NUM_BARRIERS or data[1] == EIATTR_RESERVED_SMEM_USED:
                at = own_record(m, start, data[1])
                if at < 0:
                    if put(m, data, record_size(data)) == NULL:
                        return False
                elif data[1] == EIATTR_NUM_BARRIERS:
                    memcpy(&mine, m.blob.data + at + 2, 2)
                    memcpy(&theirs, data + 2, 2)
                    if theirs > mine:
                        memcpy(m.blob.data + at + 2, &theirs, 2)
            elif data[1] == EIATTR_EXTERNS and data[0] == 4 and m.live_kernels > 1:
                if own_record(m, start, EIATTR_EXTERNS) < 0:
                    empty[0] = 4
                    empty[1] = EIATTR_EXTERNS
                    empty[2] = empty[3] = 0
                    if put(m, empty, 4) == NULL:
                        return False
                if not add_externs(m, start, data, s.file):
                    return False
    if m.live_kernels == 1 and not gather_externs(m, start):
        return False
    return drop_empty_externs(m, start)


cdef bint gather_externs(Info* m, uint64_t start) noexcept nogil:
    """EXTERNS of a single kernel: those of every live function, newest first.

    The kernel's own record stays while the others add nothing to it; else one at the end
    replaces it.
    """
    cdef size_t i
    cdef const OutRow* out
    cdef const SectionRow* s
    cdef uint64_t at, place
    cdef int64_t own
    cdef uint32_t size
    cdef uint8_t head[4]
    m.externs.count = 0
    for i in range(m.out_count):
        out = &m.outs[i]
        if out.kind != K_TEXT or not m.gives[out.entity]:
            continue
        s = info_source(m, out.entity)
        at = 0
        while at < s.size:
            if not push_externs(m, m.arena + s.offset + at, s.file):
                return False
            at += record_size(m.arena + s.offset + at)
    size = <uint32_t>(4 * m.externs.count)
    own = own_record(m, start, EIATTR_EXTERNS)
    if size == 0 or size > 0xffff:
        return True
    if own >= 0:
        place = <uint64_t>own
        if record_size(m.blob.data + place) == 4 + size:
            return True
        cut_record(m, place)
    head[0] = 4
    head[1] = EIATTR_EXTERNS
    set_length(head, size)
    if put(m, head, 4) == NULL:
        return False
    for i in range(m.externs.count):
        if put(m, m.externs.data + 4 * (m.externs.count - 1 - i), 4) == NULL:
            return False
    return True


cdef bint push_externs(Info* m, const uint8_t* data, uint32_t file) noexcept nogil:
    """Append to `externs` what an EXTERNS record adds."""
    cdef uint32_t i, symbol
    cdef uint32_t* row
    cdef size_t j
    if data[0] != 4 or data[1] != EIATTR_EXTERNS:
        return True
    for i in range((record_size(data) - 4) // 4):
        symbol = external(m, file, word_at(data + 4 + 4 * i))
        row = <uint32_t*>m.externs.data
        j = 0
        while j < m.externs.count and row[j] != symbol:
            j += 1
        if symbol and j == m.externs.count:
            row = <uint32_t*>vec_push(&m.externs)
            if row == NULL:
                return False
            row[0] = symbol
    return True


cdef bint add_externs(Info* m, uint64_t start, const uint8_t* data, uint32_t file) noexcept nogil:
    cdef uint64_t at = <uint64_t>own_record(m, start, EIATTR_EXTERNS), end, tail
    cdef uint32_t i, j, symbol, length
    cdef bint known
    for i in range((record_size(data) - 4) // 4):
        symbol = external(m, file, word_at(data + 4 + 4 * i))
        if symbol == 0:
            continue
        length = record_size(m.blob.data + at) - 4
        known = False
        for j in range(length // 4):
            if word_at(m.blob.data + at + 4 + 4 * j) == symbol:
                known = True
        if known or length + 4 > 0xffff:
            continue
        end = at + 4 + length
        tail = m.blob.count - end
        if vec_extend(&m.blob, 4) == NULL:
            return False
        # Later records make room: the list grows in place.
        shift_right(m.blob.data + end, tail)
        memcpy(m.blob.data + end, &symbol, 4)
        set_length(m.blob.data + at, length + 4)
    return True


cdef inline void shift_right(uint8_t* data, uint64_t size) noexcept nogil:
    cdef uint64_t i
    for i in range(size):
        data[size - 1 - i + 4] = data[size - 1 - i]


cdef bint drop_empty_externs(Info* m, uint64_t start) noexcept nogil:
    cdef int64_t at = own_record(m, start, EIATTR_EXTERNS)
    if at >= 0 and m.blob.data[at] == 4 and record_size(m.blob.data + at) == 4:
        cut_record(m, <uint64_t>at)
    return True


cdef void cut_record(Info* m, uint64_t at) noexcept nogil:
    cdef uint64_t size = record_size(m.blob.data + at), i
    for i in range(at + size, m.blob.count):
        m.blob.data[i - size] = m.blob.data[i]
    m.blob.count -= size


# --- .nv.callgraph, .nv.prototype ---------------------------------------------------------------

def emit_callgraph(bytes calls, bytes entities, bytes symbol_index, bytes prototype_offsets):
    """Contents of .nv.callgraph and .nv.prototype: rows by birth of the function they begin with.

    Direct and indirect calls of one function come newest first; the other rows once a function.
    """
    cdef size_t n = PyBytes_GET_SIZE(entities) // sizeof(EntityRow)
    cdef size_t count = PyBytes_GET_SIZE(calls) // sizeof(CallRow), i
    cdef const CallRow* call = <const CallRow*>PyBytes_AS_STRING(calls)
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
    cdef const uint32_t* index = <const uint32_t*>PyBytes_AS_STRING(symbol_index)
    cdef const uint32_t* offsets = <const uint32_t*>PyBytes_AS_STRING(prototype_offsets)
    cdef int32_t* head = <int32_t*>calloc(n + 1, 4)
    cdef int32_t* next_row = <int32_t*>calloc(count + 1, 4)
    cdef Vec graph, prototypes
    cdef int32_t block
    cdef bint ok = head != NULL and next_row != NULL
    vec_init(&graph, 8)
    vec_init(&prototypes, 8)
    if ok:
        with nogil:
            for block in range(-1, -6, -1):
                ok = ok and emit_block(block, call, count, e, n, index, offsets, head, next_row,
                                       &prototypes if block == BLOCK_PROTOTYPE else &graph)
    free(head)
    free(next_row)
    result = vec_take(&graph), vec_take(&prototypes)
    if not ok:
        raise MemoryError
    return result


cdef bint emit_block(int32_t block, const CallRow* call, size_t count, const EntityRow* e,
                     size_t n, const uint32_t* index, const uint32_t* offsets, int32_t* head,
                     int32_t* next_row, Vec* out) noexcept nogil:
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
        while at >= 0:
            if not lists or index[call[at].callee]:
                pair = <uint32_t*>vec_push(out)
                if pair == NULL:
                    return False
                pair[0] = index[i]
                pair[1] = index[call[at].callee] if lists else offsets[call[at].callee]
            at = next_row[at]
    return True
