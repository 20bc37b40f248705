"""Fill the pools that `pools.place_pools` placed."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport bsearch, calloc, free, qsort
from libc.string cimport memcpy, memset

from elf64 cimport *
from kinds cimport *
from poolrows cimport *
from pylink._native.tables cimport (
    MergedTables, Numbers, ObjectTables, Outs, PlacedTables, Spans, Table, Values,
)
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


def apply_pools(PlacedTables placed not None):
    """Fill the kernels' pools, and add the whole contents of every one that grew.

    The `values` of the functions' own constants become offsets in the pools, their `homes` and the
    `outs` follow; `null_value` is the st_value of the null symbol: where the last pool of a copy
    that lost was put.
    """
    placed.fill()
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t n = merged.pools.count, i
    cdef size_t out_count = placed.outs.count
    cdef size_t entity_count = merged.entities.count
    cdef size_t section_count = objects.sections.count
    cdef size_t sym_count = objects.symbols.count
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef const SectionRow* s = objects.sections.rows
    cdef const SymbolRow* sym = objects.symbols.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef const PoolRow* row = merged.pools.rows
    cdef Outs outs = <Outs>Table.opened(<PyObject*>placed.outs)
    cdef Values values = <Values>Table.opened(<PyObject*>placed.values)
    cdef Numbers homes = <Numbers>Table.opened(<PyObject*>placed.homes)
    cdef OutRow* out = <OutRow*>outs.rows
    cdef uint64_t* value = <uint64_t*>values.rows
    cdef int32_t* home = <int32_t*>homes.rows
    cdef int32_t* pool_of = <int32_t*>calloc(entity_count + 1, 4)   # kernel: OutRow
    cdef int32_t* pool_row = <int32_t*>calloc(section_count + 1, 4)  # section: a PoolRow + 1
    cdef uint64_t* start = <uint64_t*>calloc(out_count + 1, 8)      # OutRow: place in the blob
    cdef Vec blob, spans
    cdef SpanRow* span
    cdef uint8_t* place
    cdef int32_t o, section, stays = -1
    cdef uint64_t null_value = 0
    cdef Tables tables
    cdef bint any_lost = False
    cdef bint ok = pool_of != NULL and pool_row != NULL and start != NULL
    memset(&tables, 0, sizeof(Tables))
    vec_init(&tables.labels, sizeof(Label))
    vec_init(&blob, 1)
    vec_init(&spans, sizeof(SpanRow))
    if ok:
        with nogil:
            memset(pool_of, 0xff, 4 * entity_count)
            for i in range(out_count):
                if is_pool(out[i].kind, out[i].bank):
                    pool_of[out[i].entity] = <int32_t>i
            for i in range(n):
                o = pool_of[row[i].kernel]
                pool_row[row[i].section] = <int32_t>i + 1
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
                if e[i].kind == E_CONSTANT and section >= 0 and pool_row[section]:
                    value[i] = row[pool_row[section] - 1].offset + sym[e[i].winner].value
                    home[i] = pool_of[row[pool_row[section] - 1].kernel]
    free(pool_of)
    free(pool_row)
    free(start)
    tables_free(&tables)
    made = vec_take(&blob), Spans(vec_take(&spans))
    if not ok:
        raise MemoryError
    placed.outs = outs
    placed.values = values
    placed.homes = homes
    placed.null_value = null_value
    placed.add(*made)


def exceeds(PlacedTables placed not None, uint64_t limit):
    """Whether a kernel's pool has more than `limit` bytes, as it was placed."""
    placed.fill()
    cdef size_t n = placed.merged.pools.count, i
    cdef const PoolRow* row = placed.merged.pools.rows
    for i in range(n):
        if row[i].end > limit:
            return True
    return False


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
