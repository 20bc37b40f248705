"""Fill the pools that `pools.place_pools` placed."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport bsearch, calloc, free, qsort
from libc.string cimport memcpy, memset

from elf64 cimport *
from poolrows cimport *
from rows cimport *
from vec cimport *


# A jump table names a place in the code twice: by its offset in `.text`, in the bytes, and by its
# offset in the mercury form, in a relocation.
ctypedef struct Label:
    int64_t mercury
    uint32_t code


# What is known of the tables of a family C function from the copy that stays.
ctypedef struct Tables:
    const uint8_t* arena
    const SectionRow* sections
    int32_t* list_of            # by symbol of a function: see Inputs
    Vec labels                  # of `function`, ascending
    uint32_t function


def apply_pools(bytes arena, bytes sections, bytes symbols, bytes entities, bytes pools,
                bytes outs, bytes values, bytes homes):
    """Fill the kernels' pools: `(outs, values, homes, blob, spans, null_value)`.

    The values of the functions' own constants become offsets in the pools; `blob` has the whole
    contents of every pool that grew, `null_value` is the st_value of the null symbol: where the
    last pool of a copy that lost was put.
    """
    cdef size_t n = PyBytes_GET_SIZE(pools) // sizeof(PoolRow), i
    cdef size_t out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    cdef size_t entity_count = PyBytes_GET_SIZE(entities) // sizeof(EntityRow)
    cdef size_t section_count = PyBytes_GET_SIZE(sections) // sizeof(SectionRow)
    cdef size_t sym_count = PyBytes_GET_SIZE(symbols) // sizeof(SymbolRow)
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
    cdef int32_t o, section, stays = -1
    cdef uint64_t null_value = 0
    cdef Tables tables
    cdef bint any_lost = False
    cdef bint ok = pool_of != NULL and placed != NULL and start != NULL
    memset(&tables, 0, sizeof(Tables))
    vec_init(&tables.labels, sizeof(Label))
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
                out[o].size = max(out[o].size, row[i].end)
                out[o].align = max(out[o].align, row[i].align)
                if row[i].flags & POOL_LOST:
                    any_lost = True
                    if row[i].kernel != <int32_t>row[i].function:
                        null_value = row[i].offset
                if out[o].merc >= 0:
                    out[out[o].merc].size = out[o].size
                    out[out[o].merc].align = out[o].align
            if any_lost:
                ok = tables_init(&tables, base, s, section_count, sym_count)
            for i in range(n):
                if not ok:
                    break
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
                    if out[o].source >= 0 and not row[i].flags & POOL_ALONE:
                        memcpy(place, base + s[out[o].source].offset, s[out[o].source].size)
                place = blob.data + start[o] - 1 + row[i].offset
                memcpy(place, base + s[row[i].section].offset, s[row[i].section].size)
                if row[i].flags & POOL_LOST:
                    if row[i].kernel == <int32_t>row[i].function:
                        stays = -1 if row[i].flags & POOL_ALONE else out[o].source
                    ok = translate(&tables, &row[i], stays, place)
                else:
                    stays = row[i].section
            for i in range(entity_count):
                section = sym[e[i].winner].section
                if e[i].kind == E_CONSTANT and section >= 0 and placed[section]:
                    value[i] = row[placed[section] - 1].offset + sym[e[i].winner].value
                    home[i] = pool_of[row[placed[section] - 1].kernel]
    free(pool_of)
    free(placed)
    free(start)
    tables_free(&tables)
    result = new_outs, new_values, new_homes, vec_take(&blob), vec_take(&spans), null_value
    if not ok:
        raise MemoryError
    return result


cdef bint tables_init(Tables* t, const uint8_t* arena, const SectionRow* s, size_t section_count,
                      size_t symbol_count) noexcept nogil:
    t.arena = arena
    t.sections = s
    t.list_of = <int32_t*>calloc(symbol_count + 1, 4)
    t.function = <uint32_t>-1
    if t.list_of == NULL:
        return False
    find_lists(t.list_of, s, section_count)
    return True


cdef void tables_free(Tables* t) noexcept nogil:
    free(t.list_of)
    vec_free(&t.labels)


cdef int by_mercury(const void* a, const void* b) noexcept nogil:
    cdef int64_t x = (<const Label*>a).mercury, y = (<const Label*>b).mercury
    return (x > y) - (x < y)


cdef inline const Rela* relocations_of(const Tables* t, const SectionRow* pool,
                                       uint64_t* count) noexcept nogil:
    cdef int32_t at = t.list_of[t.sections[pool.target].target]
    count[0] = t.sections[at - 1].size // sizeof(Rela) if at else 0
    return <const Rela*>(t.arena + t.sections[at - 1].offset) if at else NULL


cdef bint translate(Tables* t, const PoolRow* row, int32_t stays, uint8_t* place) noexcept nogil:
    """The table of a copy that lost leads to the same places of the code that stays.

    What that code has no such label for is 0. On families A and B the bytes stay.
    """
    cdef uint64_t n, i
    cdef const SectionRow* pool = &t.sections[row.section]
    cdef const Rela* r
    cdef Label* label
    cdef Label wanted
    if t.function != row.function:
        t.function = row.function
        if not learn_labels(t, stays):
            return False
    r = relocations_of(t, pool, &n)
    for i in range(n):
        if r[i].r_offset > pool.size or pool.size - r[i].r_offset < 4:
            continue
        wanted.mercury = r[i].r_addend
        label = <Label*>bsearch(&wanted, t.labels.data, t.labels.count, sizeof(Label), by_mercury)
        (<uint32_t*>(place + r[i].r_offset))[0] = label.code if label != NULL else 0
    return True


cdef bint learn_labels(Tables* t, int32_t stays) noexcept nogil:
    """The labels in the tables of the copy that stays, whose pool is section `stays`."""
    cdef uint64_t n, i
    cdef const SectionRow* pool
    cdef const Rela* r
    cdef Label* label
    t.labels.count = 0
    if stays < 0:
        return True
    pool = &t.sections[stays]
    r = relocations_of(t, pool, &n)
    for i in range(n):
        if r[i].r_offset > pool.size or pool.size - r[i].r_offset < 4:
            continue
        label = <Label*>vec_push(&t.labels)
        if label == NULL:
            return False
        label.mercury = r[i].r_addend
        memcpy(&label.code, t.arena + pool.offset + r[i].r_offset, 4)
    qsort(t.labels.data, t.labels.count, sizeof(Label), by_mercury)
    return True


# One constant of a pool: a table, or bytes that code reads.
ctypedef struct Constant:
    int32_t section
    uint64_t value
    uint64_t size


# A mercury relocation of a pool, and the constant it lies in.
ctypedef struct Entry:
    const Rela* r
    size_t constant


# What `adopt_relocations` reads of the inputs.
ctypedef struct Inputs:
    const uint8_t* arena
    const FileRow* files
    const SectionRow* sections
    const SymbolRow* symbols
    const int32_t* entity       # by symbol
    int32_t* list_of            # by symbol of a function: its pool's mercury relocations, a section,
                                # numbered from 1, 0 is none
    Vec constants               # of all pools, by section and place
    int32_t* end_of             # by section with a pool: the end of its constants
    Vec entries                 # the relocations `listed` as kernels take them over
    int32_t listed              # a section, numbered from 1


def adopt_relocations(bytes arena, bytes files, bytes sections, bytes symbols, bytes entities,
                      bytes symbol_entity, bytes pools, bytes outs, bytes keeps):
    """Family C: the mercury relocations of pools go with their bytes: `(outs, keeps)`.

    A kernel's own entries come first, then function by function those of each constant in its pool,
    the constant of the highest place first. Those of a copy that lost stand before those of the copy
    that stays, the last copy's first. Each run has the reverse order of the input.
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
    cdef const PoolRow* pool
    cdef size_t first = 0, last
    cdef int32_t reloc
    cdef bint ok, own
    inputs.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    inputs.files = <const FileRow*>PyBytes_AS_STRING(files)
    inputs.sections = <const SectionRow*>PyBytes_AS_STRING(sections)
    inputs.symbols = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    inputs.entity = <const int32_t*>PyBytes_AS_STRING(symbol_entity)
    inputs.list_of = <int32_t*>calloc(symbol_count + 1, 4)
    inputs.end_of = <int32_t*>calloc(section_count + 1, 4)
    inputs.listed = 0
    vec_init(&inputs.constants, sizeof(Constant))
    vec_init(&inputs.entries, sizeof(Entry))
    vec_init(&table, sizeof(KeepRow))
    ok = (reloc_of != NULL and tail_of != NULL and inputs.list_of != NULL
          and inputs.end_of != NULL
          and vec_append(&table, PyBytes_AS_STRING(keeps),
                         PyBytes_GET_SIZE(keeps) // sizeof(KeepRow)))
    if ok:
        with nogil:
            ok = find_pools(&inputs, section_count, symbol_count)
            memset(reloc_of, 0xff, 4 * entity_count)
            for i in range(out_count):
                if out[i].kind == K_CONSTANT_FUNC and out[i].rela >= 0:
                    reloc = out[out[i].rela].merc
                    reloc_of[out[i].entity] = reloc
                    tail_of[out[i].entity] = last_entry(&table, out[reloc].head) \
                        if reloc >= 0 else -1
            while ok and first < n:
                last = first
                while last < n and row[last].function == row[first].function:
                    last += 1
                for i in range(last - first):
                    # Each of a kernel's own goes to the head of the list, the others to its end.
                    own = row[first].kernel == <int32_t>row[first].function
                    pool = &row[first + i] if own else &row[last - 1 - i]
                    if ok and reloc_of[pool.kernel] >= 0:
                        ok = adopt(&table, &out[reloc_of[pool.kernel]], &tail_of[pool.kernel],
                                   &inputs, pool)
                first = last
    free(reloc_of)
    free(tail_of)
    free(inputs.list_of)
    free(inputs.end_of)
    vec_free(&inputs.constants)
    vec_free(&inputs.entries)
    result = new_outs, vec_take(&table)
    if not ok:
        raise MemoryError
    return result


cdef void find_lists(int32_t* list_of, const SectionRow* s, size_t section_count) noexcept nogil:
    """The mercury relocations that the pool of a function brings, by its symbol."""
    cdef size_t i
    for i in range(section_count):
        if s[i].kind == K_MERC_RELA and s[s[i].target].kind == K_MERC_CONSTANT_FUNC:
            list_of[s[s[s[i].target].target].target] = <int32_t>i + 1


cdef int by_place(const void* a, const void* b) noexcept nogil:
    cdef const Constant* x = <const Constant*>a
    cdef const Constant* y = <const Constant*>b
    if x.section != y.section:
        return -1 if x.section < y.section else 1
    return -1 if x.value < y.value else x.value > y.value


cdef int by_turn(const void* a, const void* b) noexcept nogil:
    """The last constant first, and in each the last relocation."""
    cdef const Entry* x = <const Entry*>a
    cdef const Entry* y = <const Entry*>b
    if x.constant != y.constant:
        return -1 if x.constant > y.constant else 1
    return -1 if x.r > y.r else x.r < y.r


cdef bint find_pools(Inputs* inputs, size_t section_count, size_t symbol_count) noexcept nogil:
    """The constants of each pool, and the mercury relocations that it brings."""
    cdef const SectionRow* s = inputs.sections
    cdef const SymbolRow* symbol
    cdef Constant* constant
    cdef size_t i
    find_lists(inputs.list_of, s, section_count)
    for i in range(symbol_count):
        symbol = &inputs.symbols[i]
        if (symbol.section >= 0 and s[symbol.section].kind == K_CONSTANT_FUNC
                and (symbol.info & 15) != STT_SECTION):
            constant = <Constant*>vec_push(&inputs.constants)
            if constant == NULL:
                return False
            constant.section = symbol.section
            constant.value = symbol.value
            constant.size = symbol.size
    qsort(inputs.constants.data, inputs.constants.count, sizeof(Constant), by_place)
    constant = <Constant*>inputs.constants.data
    for i in range(inputs.constants.count):
        inputs.end_of[constant[i].section] = <int32_t>(i + 1)
    return True


cdef inline int32_t last_entry(const Vec* table, int32_t at) noexcept nogil:
    """The end of the list that begins with KeepRow `at`; -1 for an empty list."""
    while at >= 0 and (<const KeepRow*>table.data)[at].next >= 0:
        at = (<const KeepRow*>table.data)[at].next
    return at


cdef bint adopt(Vec* table, OutRow* reloc, int32_t* tail, Inputs* inputs,
                const PoolRow* pool) noexcept nogil:
    """Take over the entries for one pool into the list of its kernel; `tail` is the list's end."""
    cdef const SectionRow* s = inputs.sections
    cdef uint32_t first = inputs.files[s[pool.section].file].first_symbol
    cdef int32_t relocations = inputs.list_of[s[s[pool.section].target].target]
    cdef int32_t head = -1
    cdef bint own = pool.kernel == <int32_t>pool.function
    cdef int32_t* at = &head if own else tail
    cdef const Entry* entry
    cdef KeepRow* keep
    cdef size_t i
    if not relocations or (own and not pool.flags & POOL_LOST):
        return True             # those of a pool that stays where it was do, too
    if relocations != inputs.listed:
        if not list_entries(inputs, pool, relocations, own or pool.flags & POOL_LOST):
            return False
        inputs.listed = relocations
    entry = <const Entry*>inputs.entries.data
    for i in range(inputs.entries.count):
        keep = <KeepRow*>vec_push(table)
        if keep == NULL:
            return False
        keep.offset = entry[i].r.r_offset + pool.offset
        keep.addend = entry[i].r.r_addend
        keep.type = entry[i].r.r_type
        keep.entity = inputs.entity[first + entry[i].r.r_sym]
        keep.section = -1
        if at[0] >= 0:
            keep.next = (<KeepRow*>table.data)[at[0]].next
            (<KeepRow*>table.data)[at[0]].next = <int32_t>(table.count - 1)
        else:
            keep.next = reloc.head
            reloc.head = <int32_t>(table.count - 1)
        at[0] = <int32_t>(table.count - 1)
        reloc.count += 1
    return True


cdef bint list_entries(Inputs* inputs, const PoolRow* pool, int32_t relocations,
                       bint whole) noexcept nogil:
    """The relocations of one pool as `entries`; `whole` pools are not taken apart by constant.

    Those of bytes that no link takes over come first, if copies of this link stand in their place.
    """
    cdef const SectionRow* s = inputs.sections
    cdef const Rela* r = <const Rela*>(inputs.arena + s[relocations - 1].offset)
    cdef uint64_t n = s[relocations - 1].size // sizeof(Rela), i
    cdef size_t constant = 0
    cdef Entry* entry
    inputs.entries.count = 0
    for i in range(n):
        if r[i].r_offset >= s[pool.section].size:
            if whole or r[i].r_offset >= pool.end - pool.offset:
                continue
            constant = <size_t>-1
        elif not whole:
            constant = constant_at(inputs, pool.section, r[i].r_offset)
            if not constant:
                continue
        entry = <Entry*>vec_push(&inputs.entries)
        if entry == NULL:
            return False
        entry.r = r + i
        entry.constant = constant
    qsort(inputs.entries.data, inputs.entries.count, sizeof(Entry), by_turn)
    return True


cdef size_t constant_at(const Inputs* inputs, int32_t section, uint64_t place) noexcept nogil:
    """The constant that holds a place of a pool, numbered from 1; 0 is none."""
    cdef const Constant* c = <const Constant*>inputs.constants.data
    cdef size_t low = 0, high = inputs.end_of[section], middle
    while low < high:
        middle = (low + high) // 2
        if c[middle].section < section or c[middle].value <= place:
            low = middle + 1
        else:
            high = middle
    if not low or c[low - 1].section != section or place - c[low - 1].value >= c[low - 1].size:
        return 0
    return low
