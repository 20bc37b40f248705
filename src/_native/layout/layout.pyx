"""Layout: values of symbols, order and indices of sections and symbols, places in the file."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset, strlen

from base.nameindex cimport StringTable, scratch_strings
from sectionkinds cimport (
    IS_KERNEL_SHARED, IS_LITERALS, KIND, K_SHSTRTAB, SIZE_ENTRIES, SIZE_INDICES, SIZE_STRINGS,
    SIZE_SYMBOLS,
)
from base.elf64 cimport Phdr, Shdr, Sym
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from tables.kinds cimport is_a, is_pool, is_renamed, shrinks
from layout.names cimport mercury_names, renew_prototypes, used_names, write_lean_names
from layout.order cimport Ordering, is_lean, order_sections, push_number
from layout.plan cimport Plan, take_offsets
from layout.segments cimport program_headers
from layout.values cimport Assignment, assign_all
from pylink._native.tables cimport (
    Blob, FilePlaces, Indices, MergedTables, Numbers, ObjectTables, OutSymbols, Outs,
    PlacedTables, Spans, Table, Values, new_rows, take_rows,
)
from tables.rows cimport (
    BLOCK_PROTOTYPE, EF_LIVE, EF_TAKEN, E_CONSTANT, FROM_INPUTS, FROM_SPAN, OF_LATE, OF_NO_SYMBOL,
    PART_LOCAL, PART_TAIL, CallRow, EntityRow, OutRow, OutSymbolRow, PlaceRow, SpanRow,
)
from traits cimport TRAIT_MERCURY
from base.vector cimport Vec, vec_take


def assign_values(PlacedTables placed not None):
    """Offsets of data symbols in their sections; common symbols get room at the end of .nv.global.

    Fills `values`, `homes`, and `outs` with the grown .nv.global. Shared variables are placed
    elsewhere.
    """
    placed.fill()
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t n = merged.entities.count
    cdef Values values = Values(new_rows(8 * n))
    cdef Numbers homes = Numbers(new_rows(4 * n))
    cdef Outs outs = <Outs>merged.outs.copy()
    cdef Assignment a
    cdef Scratch scratch
    if merged.section_function.count != objects.sections.count:
        raise ValueError("one function per section")
    if merged.symbol_entity.count != objects.symbols.count:
        raise ValueError("one entity per symbol")
    objects.view(&a.objects)
    merged.view(&a.merged)
    a.outs = <OutRow*>outs.rows
    a.out_count = outs.count
    a.value = <uint64_t*>values.rows
    a.home = <int32_t*>homes.rows
    scratch_init(&scratch)
    try:
        a.parameters = <int32_t*>scratch_zeros(&scratch, n, 4)
        a.pool = <int32_t*>scratch_zeros(&scratch, n, 4)
        if not scratch.failed:
            with nogil:
                scratch.failed = not assign_all(&a, &scratch)
        if scratch.failed:
            raise MemoryError
    finally:
        scratch_free(&scratch)
    placed.values = values
    placed.homes = homes
    placed.outs = outs


def order(PlacedTables placed not None, bint has_file_records):
    """Number the sections and symbols of the output.

    Fills the two orders and the four columns of indices.
    """
    placed.fill()
    cdef MergedTables merged = placed.merged
    cdef size_t n = placed.outs.count, i, at
    cdef size_t symbol_count = merged.out_symbols.count
    cdef size_t entity_count = merged.entities.count
    cdef size_t call_count = merged.calls.count
    cdef const OutRow* row = placed.outs.rows
    cdef const OutSymbolRow* symbol = merged.out_symbols.rows
    cdef const CallRow* call = merged.calls.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef Indices section_index = Indices(new_rows(4 * n))
    cdef Indices symbol_index = Indices(new_rows(4 * entity_count))
    cdef Indices section_symbol_index = Indices(new_rows(4 * n))
    cdef Indices instance_index = Indices(new_rows(4 * entity_count))
    cdef uint32_t* by_instance = <uint32_t*>instance_index.rows
    cdef uint32_t* index = <uint32_t*>section_index.rows
    cdef uint32_t* by_entity = <uint32_t*>symbol_index.rows
    cdef uint32_t* by_section = <uint32_t*>section_symbol_index.rows
    cdef Vec sections, symbols
    cdef Ordering o
    cdef Scratch scratch
    cdef bint lean = is_lean(merged.objects.traits)
    cdef const int32_t* homes = placed.homes.rows if lean and merged.objects.executable else NULL
    cdef int turn
    o.outs = row
    o.count = n
    o.family = merged.objects.family
    o.traits = merged.objects.traits
    o.records = has_file_records
    o.prototypes = False
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &sections, 4)
        scratch_vector(&scratch, &symbols, 4)
        with nogil:
            memset(index, 0, 4 * n)
            memset(by_entity, 0, 4 * entity_count)
            memset(by_section, 0, 4 * n)
            memset(by_instance, 0, 4 * entity_count)
            for i in range(call_count):
                if (call[i].block == BLOCK_PROTOTYPE and e[call[i].caller].flags & EF_LIVE
                        and not e[call[i].caller].flags & EF_TAKEN):
                    o.prototypes = True
            order_sections(&o, &scratch, &sections, index)
            for turn in range(0 if scratch.failed else 4):
                for i in range(symbol_count):
                    if symbol[i].dropped or turn_of(&symbol[i], row, homes) != turn:
                        continue
                    at = symbols.count + 1
                    if symbol[i].section >= 0:
                        if (index[symbol[i].section] == 0
                                or row[symbol[i].section].marks & OF_NO_SYMBOL):
                            continue
                        by_section[symbol[i].section] = <uint32_t>at
                    elif symbol[i].instance >= 0:
                        by_instance[symbol[i].instance] = <uint32_t>at
                    else:
                        by_entity[symbol[i].entity] = <uint32_t>at
                    if not push_number(&symbols, <int32_t>i):
                        scratch.failed = True
        if scratch.failed:
            raise MemoryError
        placed.section_order = Numbers(take_rows(&sections))
        placed.symbol_order = Numbers(take_rows(&symbols))
    finally:
        scratch_free(&scratch)
    placed.section_index = section_index
    placed.symbol_index = symbol_index
    placed.section_symbol_index = section_symbol_index
    placed.instance_index = instance_index


cdef inline int turn_of(const OutSymbolRow* symbol, const OutRow* outs,
                        const int32_t* homes) noexcept nogil:
    """Which of four walks writes a symbol: local, global, of parameters.

    With `homes` (docs/format-notes/releases.md) the second takes those of a kernel's shared
    variables ahead, which are local by then.
    """
    if symbol.part == PART_LOCAL:
        return 0
    if symbol.part == PART_TAIL:
        return 3
    if (homes != NULL and symbol.entity >= 0 and homes[symbol.entity] >= 0
            and is_a(outs[homes[symbol.entity]].kind, IS_KERNEL_SHARED)):
        return 1
    return 2


cdef enum:
    # After .shstrtab, family C: the names `.symtab_shndx` and `.nv.merc.symtab_shndx`, should only
    # the final file need these sections. If it does, the names stand there.
    MERCURY_GAP = 0x24


def place(PlacedTables placed not None):
    """Give every section its size and offset in the file.

    Fills `places`, the final `shstrtab`, `phdrs`, `table_offset` and `size`.
    """
    placed.fill()
    cdef ObjectTables objects = placed.merged.objects
    cdef FilePlaces places = FilePlaces(new_rows(placed.outs.count * sizeof(PlaceRow)))
    cdef Plan p
    cdef Vec headers, names
    cdef uint64_t end
    cdef Scratch scratch
    memset(&p, 0, sizeof(Plan))
    objects.view(&p.objects)
    placed.view(&p.placed)
    p.count = placed.section_order.count
    p.place = <PlaceRow*>places.rows
    p.second = objects.traits & TRAIT_MERCURY != 0
    p.lean = is_lean(objects.traits)
    take_sizes(&p, placed)
    if p.second:
        find_leavings(&p, placed)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &headers, sizeof(Phdr))
        scratch_vector(&scratch, &names, 1)
        scratch.failed |= not section_names(&p, &names, placed)
        end = take_offsets(&p)
        placed.table_offset = end
        end += (p.count + 1) * sizeof(Shdr)
        if objects.executable:
            scratch.failed |= not program_headers(&p, end, &headers)
            end += headers.count * sizeof(Phdr)
        if scratch.failed:
            raise MemoryError
        placed.places = places
        placed.shstrtab = Blob(take_rows(&names))
        placed.phdrs = vec_take(&headers)
        placed.size = end
    finally:
        scratch_free(&scratch)


cdef void take_sizes(Plan* p, PlacedTables placed):
    """Sizes by the rules of kinds, or of the contents that the link has made."""
    cdef const OutSymbolRow* symbol = placed.merged.out_symbols.rows
    cdef const int32_t* symbols = placed.symbol_order.rows
    cdef size_t symbol_count = placed.symbol_order.count, early = 0, held, i
    cdef const OutRow* row
    cdef const SpanRow* span
    cdef Spans made
    cdef uint8_t rule
    for i in range(symbol_count):
        early += symbol[symbols[i]].part != PART_TAIL
    for i in range(placed.outs.count):
        row = &p.placed.outs[i]
        rule = KIND[row.kind].size
        held = symbol_count if not KIND[row.kind].mercury or row.marks & OF_LATE else early
        p.place[i].offset = 0
        p.place[i].name = row.name
        p.place[i].contents = FROM_INPUTS
        p.place[i].size = row.size
        if rule == SIZE_ENTRIES:
            p.place[i].size = <uint64_t>row.count * row.entsize
        elif rule == SIZE_SYMBOLS:
            p.place[i].size = (held + 1) * sizeof(Sym)
        elif rule == SIZE_INDICES:
            p.place[i].size = 4 * (held + 1)
        elif rule == SIZE_STRINGS:
            p.place[i].size = placed.strtab.count
    for made in placed.spans:
        for i in range(made.count):
            span = made.rows + i
            p.place[span.out].size = span.size
            p.place[span.out].contents = FROM_SPAN


cdef void find_leavings(Plan* p, PlacedTables placed):
    """The room that the second program leaves after the names of sections and of symbols.

    After .strtab renamed sections leave the difference to their first names, their relocation
    sections all of the first name.
    """
    cdef const OutRow* created = placed.merged.outs.rows
    cdef const char* strings = <const char*>placed.merged.strtab.rows
    cdef const OutRow* row
    cdef size_t i
    p.gap = MERCURY_GAP
    for i in range(placed.outs.count):
        row = &p.placed.outs[i]
        if KIND[row.kind].size == SIZE_INDICES and row.marks & OF_LATE:
            p.gap = 0
        if placed.section_index.rows[i] and is_renamed(row):
            p.reserve += shrinks(row) - 1
            if row.rela >= 0 and (placed.section_index.rows[row.rela]
                                  or is_a(row.kind, IS_LITERALS)):
                p.reserve += <uint32_t>strlen(strings + created[row.rela].symbol_name)


cdef bint section_names(Plan* p, Vec* names, PlacedTables placed):
    """.shstrtab, whose size is known now, and where in it the name of each section is."""
    cdef MergedTables merged = placed.merged
    cdef size_t i
    if not mercury_names(p, names, merged.outs.rows, <const char*>merged.shstrtab.rows,
                         merged.shstrtab.count, <const char*>merged.strtab.rows):
        return False
    if p.lean:
        if not used_names(p, names):
            return False
        p.gap = p.reserve = 0
    for i in range(p.count):
        if p.placed.outs[p.placed.section_order[i]].kind == K_SHSTRTAB:
            p.place[p.placed.section_order[i]].size = names.count
    return True


def lean_names(PlacedTables placed not None, bytes graph not None, bytes prototypes not None):
    """.strtab of what there is: names in the order of the symbols, then strings of prototypes.

    Fills `strtab`, `out_symbols` and `outs`. `graph` and `prototypes` are the contents of
    .nv.callgraph and .nv.prototype; returns both, with the new offsets as well.
    """
    placed.fill()
    cdef Outs outs = <Outs>Table.opened(<PyObject*>placed.outs)
    cdef OutSymbols named = <OutSymbols>Table.opened(<PyObject*>placed.out_symbols)
    cdef const char* created = <const char*>placed.strtab.rows
    cdef bytes calls = copy(graph), pairs = copy(prototypes)
    cdef StringTable table
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_strings(&scratch, &table)
        if not scratch.failed:
            scratch.failed = not (
                write_lean_names(&table, <OutRow*>outs.rows, <OutSymbolRow*>named.rows,
                                 placed.symbol_order.rows, placed.symbol_order.count, created)
                and renew_prototypes(&table, created, <uint32_t*>PyBytes_AS_STRING(calls),
                                     PyBytes_GET_SIZE(calls) // 8, False)
                and renew_prototypes(&table, created, <uint32_t*>PyBytes_AS_STRING(pairs),
                                     PyBytes_GET_SIZE(pairs) // 8, True))
        if scratch.failed:
            raise MemoryError
        placed.strtab = Blob(take_rows(&table.text))
    finally:
        scratch_free(&scratch)
    placed.outs = outs
    placed.out_symbols = named
    return calls, pairs


cdef bytes copy(bytes table):
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(table), PyBytes_GET_SIZE(table))


def find_kind(Outs outs not None, int kind):
    """The number of the first OutRow of that kind, or -1."""
    cdef size_t n = outs.count, i
    cdef const OutRow* row = outs.rows
    for i in range(n):
        if row[i].kind == kind:
            return i
    return -1


def constant_size(Outs outs not None, int bank):
    """Bytes of the file-scope constant bank, 0 without one."""
    cdef size_t n = outs.count, i
    cdef const OutRow* row = outs.rows
    for i in range(n):
        if KIND[row[i].kind].holds == E_CONSTANT and row[i].entity < 0 and row[i].bank == bank:
            return row[i].size
    return 0


def find_large_pools(Outs outs not None, uint64_t limit):
    """The OutRow numbers of the literal pools and jump tables with more than `limit` bytes."""
    cdef size_t n = outs.count, i
    cdef const OutRow* row = outs.rows
    cdef list found = []
    for i in range(n):
        if is_pool(row[i].kind, row[i].bank) and row[i].size > limit:
            found.append(i)
    return found
