"""Literal pools and jump tables of device functions.

`.nv.constant2.F` of a device function is no section of an executable: its bytes are appended to
the pool of every kernel that reaches F, at one offset for all of them, so that F's code works
under each. Functions are placed last-born first, each behind the longest pool of its kernels.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from elf64 cimport *
from graph cimport *
from rows cimport *
from vec cimport *

# Where the pool of a device function goes, in one kernel.
cdef packed struct PoolRow:
    int32_t section             # input section with the bytes
    int32_t kernel              # entity
    uint64_t offset             # in .nv.constant2 of the kernel
    uint32_t function           # entity
    uint32_t born               # 1: the kernel had no pool before


def place_pools(bytes sections, bytes entities, bytes symbol_entity, bytes symbol_role,
                bytes calls, bytes prototypes):
    """Place every pool: PoolRow rows in the order of placement."""
    cdef size_t n = PyBytes_GET_SIZE(entities) // sizeof(EntityRow), i, k
    cdef size_t nodes = n + PyBytes_GET_SIZE(prototypes) // 8
    cdef size_t section_count = PyBytes_GET_SIZE(sections) // sizeof(SectionRow)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
    cdef const int32_t* entity = <const int32_t*>PyBytes_AS_STRING(symbol_entity)
    cdef const uint8_t* role = <const uint8_t*>PyBytes_AS_STRING(symbol_role)
    cdef int32_t* pool = <int32_t*>calloc(n + 1, 4)         # by entity: its input section
    cdef uint64_t* size = <uint64_t*>calloc(n + 1, 8)       # by kernel entity: bytes so far
    cdef uint8_t* reaches = <uint8_t*>calloc(nodes + 1, 1)
    cdef uint32_t* stack = <uint32_t*>calloc(nodes + 1, 4)
    cdef CallGraph callers
    cdef Vec rows
    cdef int32_t symbol
    cdef bint any_pool = False
    cdef bint ok = pool != NULL and size != NULL and reaches != NULL and stack != NULL
    vec_init(&rows, sizeof(PoolRow))
    callers.start = callers.edges = NULL
    if ok:
        memset(pool, 0xff, 4 * n)
        for i in range(section_count):
            if s[i].kind != K_CONSTANT_FUNC or s[i].bank != 2:
                continue
            symbol = s[s[i].target].target
            if role[symbol] != ROLE_WON or entity[symbol] < 0:
                continue
            if not e[entity[symbol]].flags & EF_LIVE:
                continue
            pool[entity[symbol]] = <int32_t>i
            if e[entity[symbol]].flags & EF_KERNEL:
                size[entity[symbol]] = s[i].size
            else:
                any_pool = True
    if ok and any_pool:
        ok = graph_init(&callers, <const CallRow*>PyBytes_AS_STRING(calls),
                        PyBytes_GET_SIZE(calls) // sizeof(CallRow), n, nodes, True)
        with nogil:
            for i in range(n):
                k = n - 1 - i
                if ok and pool[k] >= 0 and not e[k].flags & EF_KERNEL:
                    ok = place_one(<uint32_t>k, &s[pool[k]], pool, e, n, &callers, reaches, stack,
                                   size, &rows)
    graph_free(&callers)
    free(pool)
    free(size)
    free(reaches)
    free(stack)
    result = vec_take(&rows)
    if not ok:
        raise MemoryError
    return result


cdef bint place_one(uint32_t function, const SectionRow* s, int32_t* pool, const EntityRow* e,
                    size_t n, const CallGraph* callers, uint8_t* reaches, uint32_t* stack,
                    uint64_t* size, Vec* rows) noexcept nogil:
    cdef size_t depth = 1, i, first = rows.count
    cdef uint32_t node, j
    cdef uint64_t offset = 0, end
    cdef PoolRow* row
    memset(reaches, 0, callers.nodes)
    stack[0] = function
    reaches[function] = True
    while depth:
        depth -= 1
        node = stack[depth]
        for j in range(callers.start[node], callers.start[node + 1]):
            if not reaches[callers.edges[j]]:
                reaches[callers.edges[j]] = True
                stack[depth] = callers.edges[j]
                depth += 1
    for i in range(n):
        node = <uint32_t>(n - 1 - i)
        if reaches[node] and e[node].flags & EF_KERNEL and e[node].flags & EF_LIVE:
            end = (size[node] + s.align - 1) & ~<uint64_t>(s.align - 1)
            if end > offset:
                offset = end
            row = <PoolRow*>vec_push(rows)
            if row == NULL:
                return False
            row.section = pool[function]
            row.kernel = <int32_t>node
            row.function = function
            row.born = pool[node] < 0
            if pool[node] < 0:
                pool[node] = pool[function]
    for i in range(first, rows.count):
        row = <PoolRow*>rows.data + i
        row.offset = offset
        size[row.kernel] = offset + s.size
    return True


def born_kernels(bytes pools):
    """The kernels whose first pool comes from a device function, as int32 entities in order."""
    cdef size_t n = PyBytes_GET_SIZE(pools) // sizeof(PoolRow), i
    cdef const PoolRow* row = <const PoolRow*>PyBytes_AS_STRING(pools)
    cdef Vec kernels
    cdef int32_t* kernel
    vec_init(&kernels, 4)
    for i in range(n):
        if row[i].born:
            kernel = <int32_t*>vec_push(&kernels)
            if kernel == NULL:
                vec_free(&kernels)
                raise MemoryError
            kernel[0] = row[i].kernel
    return vec_take(&kernels)


def apply_pools(bytes arena, bytes sections, bytes symbols, bytes entities, bytes pools,
                bytes outs, bytes values, bytes homes):
    """Fill the kernels' pools: `(outs, values, homes, blob, spans)`.

    The values of the functions' own constants become offsets in the pools; `blob` has the whole
    contents of every pool that grew.
    """
    cdef size_t n = PyBytes_GET_SIZE(pools) // sizeof(PoolRow), i
    cdef size_t out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    cdef size_t entity_count = PyBytes_GET_SIZE(entities) // sizeof(EntityRow)
    cdef size_t section_count = PyBytes_GET_SIZE(sections) // sizeof(SectionRow)
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const SymbolRow* sym = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
    cdef const PoolRow* row = <const PoolRow*>PyBytes_AS_STRING(pools)
    cdef bytes new_outs = PyBytes_FromStringAndSize(PyBytes_AS_STRING(outs),
                                                    PyBytes_GET_SIZE(outs))
    cdef bytes new_values = PyBytes_FromStringAndSize(PyBytes_AS_STRING(values),
                                                      PyBytes_GET_SIZE(values))
    cdef bytes new_homes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(homes),
                                                     PyBytes_GET_SIZE(homes))
    cdef OutRow* out = <OutRow*>PyBytes_AS_STRING(new_outs)
    cdef uint64_t* value = <uint64_t*>PyBytes_AS_STRING(new_values)
    cdef int32_t* home = <int32_t*>PyBytes_AS_STRING(new_homes)
    cdef int32_t* pool_of = <int32_t*>calloc(entity_count + 1, 4)   # kernel: OutRow
    cdef int32_t* placed = <int32_t*>calloc(section_count + 1, 4)   # section: a PoolRow + 1
    cdef uint64_t* start = <uint64_t*>calloc(out_count + 1, 8)      # OutRow: place in the blob
    cdef Vec blob, spans
    cdef SpanRow* span
    cdef uint8_t* place
    cdef int32_t o, section
    cdef bint ok = pool_of != NULL and placed != NULL and start != NULL
    vec_init(&blob, 1)
    vec_init(&spans, sizeof(SpanRow))
    if ok:
        with nogil:
            memset(pool_of, 0xff, 4 * entity_count)
            for i in range(out_count):
                if out[i].kind == K_CONSTANT_FUNC and out[i].bank == 2:
                    pool_of[out[i].entity] = <int32_t>i
            for i in range(n):
                o = pool_of[row[i].kernel]
                placed[row[i].section] = <int32_t>i + 1
                if row[i].offset + s[row[i].section].size > out[o].size:
                    out[o].size = row[i].offset + s[row[i].section].size
                if s[row[i].section].align > out[o].align:
                    out[o].align = s[row[i].section].align
                if out[o].merc >= 0:
                    out[out[o].merc].size = out[o].size
                    out[out[o].merc].align = out[o].align
            for i in range(n):
                o = pool_of[row[i].kernel]
                if start[o] == 0:
                    span = <SpanRow*>vec_push(&spans)
                    place = <uint8_t*>vec_extend(&blob, out[o].size)
                    if span == NULL or place == NULL:
                        ok = False
                        break
                    start[o] = blob.count - out[o].size + 1
                    span.out = o
                    span.spare = 0
                    span.offset = start[o] - 1
                    span.size = out[o].size
                    memset(place, 0, out[o].size)
                    if out[o].source >= 0:
                        memcpy(place, base + s[out[o].source].offset, s[out[o].source].size)
                memcpy(blob.data + start[o] - 1 + row[i].offset, base + s[row[i].section].offset,
                       s[row[i].section].size)
            for i in range(entity_count):
                section = sym[e[i].winner].section
                if e[i].kind == E_CONSTANT and section >= 0 and placed[section]:
                    value[i] = row[placed[section] - 1].offset + sym[e[i].winner].value
                    home[i] = pool_of[row[placed[section] - 1].kernel]
    free(pool_of)
    free(placed)
    free(start)
    tables = new_outs, new_values, new_homes, vec_take(&blob), vec_take(&spans)
    if not ok:
        raise MemoryError
    return tables


def adopt_relocations(bytes arena, bytes files, bytes sections, bytes symbols, bytes entities,
                      bytes symbol_entity, bytes pools, bytes outs, bytes keeps):
    """Family C: the mercury relocations of pools go with their bytes: `(outs, keeps)`.

    A kernel's own entries come first, then pool by pool those of each constant of the function,
    the last constant first.
    """
    cdef size_t n = PyBytes_GET_SIZE(pools) // sizeof(PoolRow), i
    cdef size_t out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const FileRow* file = <const FileRow*>PyBytes_AS_STRING(files)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const SymbolRow* sym = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    cdef const int32_t* entity = <const int32_t*>PyBytes_AS_STRING(symbol_entity)
    cdef const PoolRow* row = <const PoolRow*>PyBytes_AS_STRING(pools)
    cdef bytes new_outs = PyBytes_FromStringAndSize(PyBytes_AS_STRING(outs),
                                                    PyBytes_GET_SIZE(outs))
    cdef OutRow* out = <OutRow*>PyBytes_AS_STRING(new_outs)
    cdef size_t entity_count = PyBytes_GET_SIZE(entities) // sizeof(EntityRow)
    cdef int32_t* reloc_of = <int32_t*>calloc(entity_count + 1, 4)  # kernel: OutRow of the list
    cdef int32_t* tail_of = <int32_t*>calloc(entity_count + 1, 4)   # kernel: last entry there
    cdef Vec table
    cdef int32_t kernel, reloc
    cdef bint ok = reloc_of != NULL and tail_of != NULL
    vec_init(&table, sizeof(KeepRow))
    ok = ok and vec_append(&table, PyBytes_AS_STRING(keeps),
                           PyBytes_GET_SIZE(keeps) // sizeof(KeepRow))
    if ok:
        with nogil:
            memset(reloc_of, 0xff, 4 * entity_count)
            for i in range(out_count):
                if out[i].kind == K_CONSTANT_FUNC and out[i].rela >= 0:
                    reloc = out[out[i].rela].merc
                    reloc_of[out[i].entity] = reloc
                    tail_of[out[i].entity] = last_entry(&table, out[reloc].head) \
                        if reloc >= 0 else -1
            for i in range(n):
                kernel = row[i].kernel
                if ok and reloc_of[kernel] >= 0:
                    ok = append_entries(&table, &out[reloc_of[kernel]], &tail_of[kernel], base,
                                        file, s, sym, entity, &row[i])
    free(reloc_of)
    free(tail_of)
    result = new_outs, vec_take(&table)
    if not ok:
        raise MemoryError
    return result


cdef inline int32_t last_entry(const Vec* table, int32_t at) noexcept nogil:
    """The end of the list that begins with KeepRow `at`; -1 for an empty list."""
    while at >= 0 and (<const KeepRow*>table.data)[at].next >= 0:
        at = (<const KeepRow*>table.data)[at].next
    return at


cdef bint append_entries(Vec* table, OutRow* reloc, int32_t* tail, const uint8_t* base,
                         const FileRow* files, const SectionRow* s, const SymbolRow* sym,
                         const int32_t* entity, const PoolRow* pool) noexcept nogil:
    """Append the entries for one pool to the list of its kernel; `tail` is the list's end."""
    cdef const FileRow* file = &files[s[pool.section].file]
    cdef const SectionRow* list_section = NULL
    cdef const SectionRow* t
    cdef const Rela* r
    cdef KeepRow* keep
    cdef uint32_t i, k, symbol
    cdef uint64_t n
    for i in range(file.first_section, file.first_section + file.section_count):
        t = &s[i]
        if (t.kind == K_MERC_RELA and s[t.target].kind == K_MERC_CONSTANT_FUNC
                and s[s[t.target].target].target == s[s[pool.section].target].target):
            list_section = t
    if list_section == NULL:
        return True
    n = list_section.size // sizeof(Rela)
    for i in range(file.symbol_count):
        symbol = file.first_symbol + file.symbol_count - 1 - i
        if sym[symbol].section != pool.section or (sym[symbol].info & 15) == STT_SECTION:
            continue
        for k in range(<uint32_t>n):
            r = <const Rela*>(base + list_section.offset) + (n - 1 - k)
            if not (sym[symbol].value <= r.r_offset < sym[symbol].value + sym[symbol].size):
                continue
            keep = <KeepRow*>vec_push(table)
            if keep == NULL:
                return False
            keep.offset = r.r_offset + pool.offset
            keep.addend = r.r_addend
            keep.type = r.r_type
            keep.entity = entity[file.first_symbol + r.r_sym]
            keep.section = -1
            keep.next = -1
            if tail[0] >= 0:
                (<KeepRow*>table.data)[tail[0]].next = <int32_t>(table.count - 1)
            else:
                reloc.head = <int32_t>(table.count - 1)
            tail[0] = <int32_t>(table.count - 1)
            reloc.count += 1
    return True
