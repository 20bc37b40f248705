"""Filling of the pools that `pools.place_pools` placed: sizes, bytes and symbols.

A PoolRow of `place_pools` says that the bytes of an input section go to an offset in the pool of a
kernel. `apply_pools` carries the rows out:

1. `grow_pools` sets the sizes and alignments of the kernels' pools, and of their mercury twins.
2. `fill_pools` copies the bytes of each row to its pool.
3. `move_constants` sets the values of constants of device functions, and the pools they are in.

From sm_100 on, nvlink computes new jump tables for definitions that lost, since their code is not
linked. An entry of a table names a place by its offset in the code and in the mercury code.
`learn_labels` lists both for the tables of the linked definition, and `translate` then finds the
entries of a lost table by their mercury offsets:

    table of the linked definition  mercury 0x100, code 0x40
    table of a lost definition      mercury 0x100: becomes 0x40
                                    mercury 0x180: becomes 0, since no entry above has it
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport bsearch, qsort
from libc.string cimport memcpy, memset

from base.elf64 cimport Rela
from base.memory cimport check_memory
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from base.vector cimport Vec, vec_extend, vec_push
from pylink._native.results cimport MergedTables, ObjectTables, PlacedTables
from pylink._native.tables cimport Blob, Numbers, Outs, Spans, Table, Values, detach_rows
from rownumbers cimport E_CONSTANT
from tables.kinds cimport is_pool
from tables.poolrows cimport POOL_ALONE, POOL_LOST, PoolNumber, PoolRow, find_relocation_lists
from tables.rows cimport (
    EntityNumber, EntityRef, EntityRow, OutNumber, OutRow, SectionNumber, SectionRow, SpanRow,
    SymbolRow, function_symbol,
)
from tables.views cimport MergedView, ObjectsView


# A place in the code that an entry of a jump table names. The bytes of the entry have the offset of
# the place in `.text`, and the entry's mercury relocation has its offset in the mercury form.
ctypedef struct Label:
    int64_t mercury             # offset of the place in the mercury form, in bytes
    uint32_t code               # offset of the place in .text, in bytes


# The labels in the jump tables of a function (from sm_100 on), as the linked definition has them.
ctypedef struct JumpTables:
    const uint8_t* arena
    const SectionRow* sections
    # By input symbol, of a function: 1 + section of its pool's mercury relocations, or 0.
    SectionNumber* list_of
    Vec labels                  # Label, of `function`, by mercury offset
    EntityRef function          # entity that `labels` are of; all ones before the first


# The pools that `apply_pools` fills.
ctypedef struct Filling:
    ObjectsView objects
    MergedView merged
    OutRow* outs
    OutNumber* pool_of          # by entity: OutRow of the pool of this kernel (or function), or -1
    PoolNumber* row_of          # by input section: the last PoolRow with its bytes, or -1
    uint64_t* start             # by OutRow: 1 + offset of its contents in `blob`, 0 without any
    JumpTables tables
    bint any_lost               # some bytes are of definitions that lost
    # Offset, in a kernel's pool, of the last lost pool of a device function; 0 without one.
    uint64_t null_value
    Vec blob                    # uint8_t: contents of all pools that rows go to
    Vec spans                   # SpanRow of each pool in `blob`


def apply_pools(PlacedTables placed not None):
    """Fill the kernels' literal pools, and add the contents of every pool that grew."""
    placed.fill()
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t out_count = placed.outs.count
    cdef size_t entity_count = merged.entities.count
    cdef size_t section_count = objects.sections.count
    cdef size_t symbol_count = objects.symbols.count
    cdef const SymbolRow* symbols = objects.symbols.rows
    cdef const EntityRow* entities = merged.entities.rows
    cdef Outs outs = <Outs>Table.writable(<PyObject*>placed.outs)
    cdef Values values = <Values>Table.writable(<PyObject*>placed.values)
    cdef Numbers homes = <Numbers>Table.writable(<PyObject*>placed.homes)
    cdef uint64_t* value = <uint64_t*>values.rows
    cdef OutNumber* home = <OutNumber*>homes.rows
    cdef Filling filling
    cdef Scratch scratch
    memset(&filling, 0, sizeof(Filling))
    objects.view(&filling.objects)
    merged.view(&filling.merged)
    filling.outs = <OutRow*>outs.rows
    scratch_init(&scratch)
    try:
        filling.pool_of = scratch_nones(&scratch, entity_count)
        filling.row_of = scratch_nones(&scratch, section_count)
        filling.start = <uint64_t*>scratch_zeros(&scratch, out_count, 8)
        scratch_vector(&scratch, &filling.tables.labels, sizeof(Label))
        scratch_vector(&scratch, &filling.blob, 1)
        scratch_vector(&scratch, &filling.spans, sizeof(SpanRow))
        if not scratch.failed:
            with nogil:
                grow_pools(&filling, out_count)
                if filling.any_lost:
                    start_tables(&filling, &scratch, section_count, symbol_count)
                if not scratch.failed and not fill_pools(&filling):
                    scratch.failed = True
                move_constants(&filling, entities, entity_count, symbols, value, home)
        check_memory(not scratch.failed)
        placed.outs = outs
        placed.values = values
        placed.homes = homes
        placed.null_value = filling.null_value
        placed.add(Blob(detach_rows(&filling.blob)), Spans(detach_rows(&filling.spans)))
    finally:
        scratch_free(&scratch)


cdef void grow_pools(Filling* filling, size_t out_count) noexcept nogil:
    """Set the sizes and alignments of the kernels' pools, and of their mercury forms."""
    cdef size_t i
    cdef const PoolRow* row
    cdef OutRow* out
    for i in range(out_count):
        if is_pool(filling.outs[i].kind, filling.outs[i].bank):
            filling.pool_of[filling.outs[i].entity] = <OutNumber>i
    for i in range(filling.merged.pool_count):
        row = &filling.merged.pools[i]
        filling.row_of[row.section] = <PoolNumber>i
        out = &filling.outs[filling.pool_of[row.kernel]]
        out.size = max(out.size, row.end)
        out.align = max(out.align, row.align)
        if out.merc >= 0:
            filling.outs[out.merc].size = out.size
            filling.outs[out.merc].align = out.align
        if row.flags & POOL_LOST:
            filling.any_lost = True
            if row.kernel != <EntityNumber>row.function:
                filling.null_value = row.offset


cdef bint fill_pools(Filling* filling) noexcept nogil:
    """Copy the bytes of each row into the pool of its kernel; False without memory."""
    cdef size_t i
    cdef const PoolRow* row
    cdef const SectionRow* piece
    cdef uint8_t* place
    cdef OutNumber pool
    cdef SectionNumber winner_section = -1  # input section: pool of the linked definition, or -1
    for i in range(filling.merged.pool_count):
        row = &filling.merged.pools[i]
        pool = filling.pool_of[row.kernel]
        if filling.start[pool] == 0 and not start_pool(filling, pool, row.flags & POOL_ALONE == 0):
            return False
        piece = &filling.objects.sections[row.section]
        place = filling.blob.data + filling.start[pool] - 1 + row.offset
        memcpy(place, filling.objects.arena + piece.offset, piece.size)
        # The row of a function's linked definition comes first, then the rows of those that lost.
        if not row.flags & POOL_LOST:
            winner_section = row.section
            continue
        if row.kernel == <EntityNumber>row.function:
            winner_section = -1 if row.flags & POOL_ALONE else filling.outs[pool].source
        if not translate(&filling.tables, row, winner_section, place):
            return False
    return True


cdef bint start_pool(Filling* filling, OutNumber pool, bint has_own) noexcept nogil:
    """Make room for the contents of a pool (an OutRow) in `blob`; False without memory.

    With `has_own` the contents begin with the bytes of the pool's input section (`source`), if any.
    """
    cdef const OutRow* out = &filling.outs[pool]
    cdef SpanRow* span = <SpanRow*>vec_push(&filling.spans)
    cdef uint8_t* place = <uint8_t*>vec_extend(&filling.blob, out.size)
    cdef const SectionRow* source
    if span == NULL or place == NULL:
        return False
    filling.start[pool] = filling.blob.count - out.size + 1
    span.out = pool
    span.offset = filling.start[pool] - 1
    span.size = out.size
    memset(place, 0, out.size)
    if has_own and out.source >= 0:
        source = &filling.objects.sections[out.source]
        memcpy(place, filling.objects.arena + source.offset, source.size)
    return True


cdef void move_constants(const Filling* filling, const EntityRow* entities, size_t count,
                         const SymbolRow* symbols, uint64_t* value, OutNumber* home) noexcept nogil:
    """Set values and homes (OutRows) of the constants whose bytes are in the pools of kernels."""
    cdef size_t i
    cdef const SymbolRow* symbol
    cdef const PoolRow* row
    for i in range(count):
        symbol = &symbols[entities[i].winner]
        if (entities[i].kind == E_CONSTANT and symbol.section >= 0
                and filling.row_of[symbol.section] >= 0):
            row = &filling.merged.pools[filling.row_of[symbol.section]]
            value[i] = row.offset + symbol.value
            home[i] = filling.pool_of[row.kernel]


def has_pool_above(PlacedTables placed not None, uint64_t limit):
    """Return whether a pool that `place_pools` placed bytes in has more than `limit` bytes."""
    placed.fill()
    cdef size_t i
    cdef const PoolRow* row = placed.merged.pools.rows
    for i in range(placed.merged.pools.count):
        if row[i].end > limit:
            return True
    return False


cdef void start_tables(Filling* filling, Scratch* scratch, size_t section_count,
                       size_t symbol_count) noexcept nogil:
    """Set up `tables` without labels, but with `list_of`, which `scratch` frees."""
    filling.tables.arena = filling.objects.arena
    filling.tables.sections = filling.objects.sections
    filling.tables.list_of = <SectionNumber*>scratch_zeros(scratch, symbol_count + 1, 4)
    filling.tables.function = <EntityRef>-1
    if filling.tables.list_of != NULL:
        find_relocation_lists(filling.tables.list_of, filling.objects.sections, section_count)


cdef int compare_labels(const void* a, const void* b) noexcept nogil:
    """Order Labels by their mercury offset, for qsort and bsearch."""
    cdef int64_t x = (<const Label*>a).mercury, y = (<const Label*>b).mercury
    return (x > y) - (x < y)


cdef inline const Rela* relocations_of(const JumpTables* tables, const SectionRow* pool,
                                       uint64_t* count) noexcept nogil:
    """Return the mercury relocations of a function's pool, NULL without any; `count` is set."""
    cdef SectionNumber section = tables.list_of[function_symbol(&tables.sections[pool.target])]
    count[0] = tables.sections[section - 1].size // sizeof(Rela) if section else 0
    return <const Rela*>(tables.arena + tables.sections[section - 1].offset) if section else NULL


cdef bint translate(JumpTables* tables, const PoolRow* row, SectionNumber winner_section,
                    uint8_t* place) noexcept nogil:
    """Make the jump table of a lost definition lead to the same places in the code that is linked.

    `place` has the bytes of `row`, `winner_section` is the pool of the linked definition, or -1. An
    entry becomes 0 if no entry of that pool has the same mercury offset. The table does not change
    if it has no mercury relocations, as up to sm_90. False without memory.
    """
    cdef uint64_t count, i
    cdef const SectionRow* pool = &tables.sections[row.section]
    cdef const Rela* relocs
    cdef Label* label
    cdef Label target_label
    cdef uint32_t code          # offset in the linked code
    if tables.function != row.function:
        tables.function = row.function
        if not learn_labels(tables, winner_section):
            return False
    relocs = relocations_of(tables, pool, &count)
    for i in range(count):
        if relocs[i].r_offset > pool.size or pool.size - relocs[i].r_offset < 4:
            continue
        target_label.mercury = relocs[i].r_addend
        label = <Label*>bsearch(&target_label, tables.labels.data, tables.labels.count,
                                sizeof(Label), compare_labels)
        code = label.code if label != NULL else 0
        memcpy(place + relocs[i].r_offset, &code, 4)    # the offset may be odd
    return True


cdef bint learn_labels(JumpTables* tables, SectionNumber winner_section) noexcept nogil:
    """List the labels in the tables of the linked definition; False without memory.

    `winner_section` is the input section of its pool, or -1 if it has none.
    """
    cdef uint64_t count, i
    cdef const SectionRow* pool
    cdef const Rela* relocs
    cdef Label* label
    tables.labels.count = 0
    if winner_section < 0:
        return True
    pool = &tables.sections[winner_section]
    relocs = relocations_of(tables, pool, &count)
    for i in range(count):
        if relocs[i].r_offset > pool.size or pool.size - relocs[i].r_offset < 4:
            continue
        label = <Label*>vec_push(&tables.labels)
        if label == NULL:
            return False
        label.mercury = relocs[i].r_addend
        memcpy(&label.code, tables.arena + pool.offset + relocs[i].r_offset, 4)
    qsort(tables.labels.data, tables.labels.count, sizeof(Label), compare_labels)
    return True
