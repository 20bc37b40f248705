"""Literal pools and jump tables of device functions.

`.nv.constant2.F` of a device function is no section of an executable: its bytes are appended to
the pool of every kernel that reaches F, at one offset for all of them, so that F's code works
under each. Functions are placed last-born first, each behind the longest pool of its kernels.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, qsort
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
    cdef uint32_t* stamp = <uint32_t*>calloc(nodes + 1, 4)
    cdef uint32_t* stack = <uint32_t*>calloc(nodes + 1, 4)
    cdef CallGraph callers
    cdef Vec rows
    cdef int32_t symbol
    cdef bint any_pool = False
    cdef bint ok = pool != NULL and size != NULL and stamp != NULL and stack != NULL
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
                    ok = place_one(<uint32_t>k, &s[pool[k]], pool, e, n, &callers, stamp, stack,
                                   size, &rows)
    graph_free(&callers)
    free(pool)
    free(size)
    free(stamp)
    free(stack)
    result = vec_take(&rows)
    if not ok:
        raise MemoryError
    return result


cdef int by_kernel(const void* a, const void* b) noexcept nogil:
    """The one born last first."""
    cdef int32_t x = (<const PoolRow*>a).kernel, y = (<const PoolRow*>b).kernel
    return (x < y) - (x > y)


cdef bint place_one(uint32_t function, const SectionRow* s, int32_t* pool, const EntityRow* e,
                    size_t n, const CallGraph* callers, uint32_t* stamp, uint32_t* stack,
                    uint64_t* size, Vec* rows) noexcept nogil:
    """Place the pool of one function in every kernel that reaches it."""
    cdef size_t depth = 1, i, first = rows.count
    cdef uint32_t node, to, j
    cdef uint64_t offset = 0, end
    cdef PoolRow* row
    stack[0] = function
    stamp[function] = function + 1
    while depth:
        depth -= 1
        node = stack[depth]
        if node < n and e[node].flags & EF_KERNEL and e[node].flags & EF_LIVE:
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
        for j in range(callers.start[node], callers.start[node + 1]):
            to = callers.edges[j]
            if stamp[to] != function + 1:
                stamp[to] = function + 1
                stack[depth] = to
                depth += 1
    row = <PoolRow*>rows.data + first
    qsort(row, rows.count - first, sizeof(PoolRow), by_kernel)
    for i in range(rows.count - first):
        row[i].offset = offset
        size[row[i].kernel] = offset + s.size
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


# What `adopt_relocations` reads of the inputs. Numbers are from 1, 0 is none.
ctypedef struct Inputs:
    const uint8_t* arena
    const FileRow* files
    const SectionRow* sections
    const SymbolRow* symbols
    const int32_t* entity       # by symbol
    int32_t* list_of            # by symbol of a function: its pool's mercury relocations, a section
    int32_t* last_in            # by section with a pool: the last symbol in it
    int32_t* before             # by symbol: the one before it in the same pool


def adopt_relocations(bytes arena, bytes files, bytes sections, bytes symbols, bytes entities,
                      bytes symbol_entity, bytes pools, bytes outs, bytes keeps):
    """Family C: the mercury relocations of pools go with their bytes: `(outs, keeps)`.

    A kernel's own entries come first, then pool by pool those of each constant of the function,
    the last constant first.
    """
    cdef size_t n = PyBytes_GET_SIZE(pools) // sizeof(PoolRow), i
    cdef size_t out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    cdef size_t section_count = PyBytes_GET_SIZE(sections) // sizeof(SectionRow)
    cdef size_t symbol_count = PyBytes_GET_SIZE(symbols) // sizeof(SymbolRow)
    cdef const PoolRow* row = <const PoolRow*>PyBytes_AS_STRING(pools)
    cdef bytes new_outs = PyBytes_FromStringAndSize(PyBytes_AS_STRING(outs),
                                                    PyBytes_GET_SIZE(outs))
    cdef OutRow* out = <OutRow*>PyBytes_AS_STRING(new_outs)
    cdef size_t entity_count = PyBytes_GET_SIZE(entities) // sizeof(EntityRow)
    cdef int32_t* reloc_of = <int32_t*>calloc(entity_count + 1, 4)  # kernel: OutRow of the list
    cdef int32_t* tail_of = <int32_t*>calloc(entity_count + 1, 4)   # kernel: last entry there
    cdef Inputs inputs
    cdef Vec table
    cdef int32_t kernel, reloc
    cdef bint ok
    inputs.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    inputs.files = <const FileRow*>PyBytes_AS_STRING(files)
    inputs.sections = <const SectionRow*>PyBytes_AS_STRING(sections)
    inputs.symbols = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    inputs.entity = <const int32_t*>PyBytes_AS_STRING(symbol_entity)
    inputs.list_of = <int32_t*>calloc(symbol_count + 1, 4)
    inputs.last_in = <int32_t*>calloc(section_count + 1, 4)
    inputs.before = <int32_t*>calloc(symbol_count + 1, 4)
    vec_init(&table, sizeof(KeepRow))
    ok = (reloc_of != NULL and tail_of != NULL and inputs.list_of != NULL
          and inputs.last_in != NULL and inputs.before != NULL
          and vec_append(&table, PyBytes_AS_STRING(keeps),
                         PyBytes_GET_SIZE(keeps) // sizeof(KeepRow)))
    if ok:
        with nogil:
            find_pools(&inputs, section_count, symbol_count)
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
                    ok = append_entries(&table, &out[reloc_of[kernel]], &tail_of[kernel], &inputs,
                                        &row[i])
    free(reloc_of)
    free(tail_of)
    free(inputs.list_of)
    free(inputs.last_in)
    free(inputs.before)
    result = new_outs, vec_take(&table)
    if not ok:
        raise MemoryError
    return result


cdef void find_pools(Inputs* inputs, size_t section_count, size_t symbol_count) noexcept nogil:
    """The constants of each pool, and the mercury relocations that it brings."""
    cdef const SectionRow* s = inputs.sections
    cdef size_t i
    cdef int32_t section
    for i in range(section_count):
        if s[i].kind == K_MERC_RELA and s[s[i].target].kind == K_MERC_CONSTANT_FUNC:
            inputs.list_of[s[s[s[i].target].target].target] = <int32_t>i + 1
    for i in range(symbol_count):
        section = inputs.symbols[i].section
        if (section >= 0 and s[section].kind == K_CONSTANT_FUNC
                and (inputs.symbols[i].info & 15) != STT_SECTION):
            inputs.before[i] = inputs.last_in[section]
            inputs.last_in[section] = <int32_t>i + 1


cdef inline int32_t last_entry(const Vec* table, int32_t at) noexcept nogil:
    """The end of the list that begins with KeepRow `at`; -1 for an empty list."""
    while at >= 0 and (<const KeepRow*>table.data)[at].next >= 0:
        at = (<const KeepRow*>table.data)[at].next
    return at


cdef bint append_entries(Vec* table, OutRow* reloc, int32_t* tail, const Inputs* inputs,
                         const PoolRow* pool) noexcept nogil:
    """Append the entries for one pool to the list of its kernel; `tail` is the list's end."""
    cdef const SectionRow* s = inputs.sections
    cdef int32_t relocations = inputs.list_of[s[s[pool.section].target].target]
    cdef int32_t at = inputs.last_in[pool.section]
    cdef uint32_t first = inputs.files[s[pool.section].file].first_symbol
    cdef const SymbolRow* symbol
    cdef const Rela* list_
    cdef const Rela* r
    cdef KeepRow* keep
    cdef uint64_t n, i
    if not relocations:
        return True
    list_ = <const Rela*>(inputs.arena + s[relocations - 1].offset)
    n = s[relocations - 1].size // sizeof(Rela)
    while at:
        symbol = &inputs.symbols[at - 1]
        at = inputs.before[at - 1]
        for i in range(n):
            r = list_ + (n - 1 - i)
            if not (symbol.value <= r.r_offset < symbol.value + symbol.size):
                continue
            keep = <KeepRow*>vec_push(table)
            if keep == NULL:
                return False
            keep.offset = r.r_offset + pool.offset
            keep.addend = r.r_addend
            keep.type = r.r_type
            keep.entity = inputs.entity[first + r.r_sym]
            keep.section = -1
            keep.next = -1
            if tail[0] >= 0:
                (<KeepRow*>table.data)[tail[0]].next = <int32_t>(table.count - 1)
            else:
                reloc.head = <int32_t>(table.count - 1)
            tail[0] = <int32_t>(table.count - 1)
            reloc.count += 1
    return True
