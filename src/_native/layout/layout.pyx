"""Layout: values of symbols, order and indices of sections and symbols, places in the file.

Functions are called in this order, each after the tables that it reads are filled:

1. `assign_values` gives data symbols their offsets in their sections (layout/values.pxd).
2. `order` numbers sections and symbols (layout/order.pxd).
3. `rebuild_strtab` writes .strtab anew for releases that omit unused names (layout/names.pxd).
4. `place` gives sections their sizes, names and offsets (layout/plan.pxd, layout/segments.pxd).
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset, strlen

from base.elf64 cimport Phdr, Shdr, Sym
from base.memory cimport check_memory
from base.nameindex cimport StringTable, scratch_strings
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec, vec_to_bytes
from layout.names cimport (
    PAIR, keep_used_names, name_mercury_sections, renew_prototypes, write_lean_names,
)
from layout.order cimport Ordering, has_lean_names, order_sections, order_symbols
from layout.plan cimport Plan, assign_offsets
from layout.segments cimport add_program_headers
from layout.values cimport Assignment, assign_all
from pylink._native.results cimport MergedTables, ObjectTables, PlacedTables
from pylink._native.tables cimport (
    Blob, FilePlaces, Indices, Numbers, OutSymbols, Outs, Spans, Table, Values, detach_rows,
    new_rows,
)
from rownumbers cimport BLOCK_PROTOTYPE, EF_LIVE, EF_TAKEN, E_CONSTANT, FROM_INPUTS, FROM_SPAN
from sectionkinds cimport (
    IS_LITERALS, KIND, K_SHSTRTAB, SIZE_ENTRIES, SIZE_INDICES, SIZE_STRINGS, SIZE_SYMBOLS,
)
from tables.kinds cimport bytes_shrunk, is_a, is_pool, is_renamed
from tables.rows cimport (
    OF_LATE, PART_TAIL, EntityRow, OutNumber, OutRow, OutSymbolNumber, OutSymbolRow, PlaceRow,
    SpanRow,
)
from tables.views cimport MergedView
from traits cimport TRAIT_MERCURY


def assign_values(PlacedTables placed not None):
    """Assign offsets of data symbols in their sections: fills `values`, `homes` and `outs`."""
    placed.fill()
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t entity_count = merged.entities.count
    cdef Values values = Values(new_rows(sizeof(uint64_t) * entity_count))
    cdef Numbers homes = Numbers(new_rows(sizeof(OutNumber) * entity_count))
    cdef Outs outs = <Outs>merged.outs.copy()
    cdef Assignment assignment
    cdef Scratch scratch
    if merged.section_function.count != objects.sections.count:
        raise ValueError("section_function has not one row for each section")
    if merged.symbol_entity.count != objects.symbols.count:
        raise ValueError("symbol_entity has not one row for each symbol")
    objects.view(&assignment.objects)
    merged.view(&assignment.merged)
    assignment.outs = <OutRow*>outs.rows
    assignment.out_count = outs.count
    assignment.value = <uint64_t*>values.rows
    assignment.home = <OutNumber*>homes.rows
    scratch_init(&scratch)
    try:
        assignment.parameters = <OutNumber*>scratch_zeros(&scratch, entity_count, 4)
        assignment.pool = <OutNumber*>scratch_zeros(&scratch, entity_count, 4)
        if not scratch.failed:
            with nogil:
                scratch.failed = not assign_all(&assignment, &scratch)
        check_memory(not scratch.failed)
    finally:
        scratch_free(&scratch)
    placed.values = values
    placed.homes = homes
    placed.outs = outs


# `has_file_records` says whether .nv.info has records; without any, the output omits it.
def order(PlacedTables placed not None, *, bint has_file_records):
    """Number the sections and symbols of the output."""
    placed.fill()
    cdef Ordering ordering
    cdef Scratch scratch
    placed.merged.objects.view(&ordering.objects)
    placed.merged.view(&ordering.merged)
    placed.view(&ordering.placed)
    cdef Indices section_index = start_indices(ordering.placed.out_count, &ordering.section_index)
    cdef Indices symbol_index = start_indices(ordering.merged.entity_count, &ordering.symbol_index)
    cdef Indices section_symbol_index = start_indices(ordering.placed.out_count,
                                                      &ordering.section_symbol_index)
    cdef Indices instance_index = start_indices(ordering.merged.entity_count,
                                                &ordering.instance_index)
    ordering.is_lean = has_lean_names(ordering.objects.traits)
    ordering.has_file_records = has_file_records
    ordering.has_prototypes = has_prototypes(&ordering.merged)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &ordering.sections, sizeof(OutNumber))
        scratch_vector(&scratch, &ordering.symbols, sizeof(OutSymbolNumber))
        with nogil:
            order_sections(&ordering, &scratch)
            if not scratch.failed:
                order_symbols(&ordering, &scratch)
        check_memory(not scratch.failed)
        placed.section_order = Numbers(detach_rows(&ordering.sections))
        placed.symbol_order = Numbers(detach_rows(&ordering.symbols))
    finally:
        scratch_free(&scratch)
    placed.section_index = section_index
    placed.symbol_index = symbol_index
    placed.section_symbol_index = section_symbol_index
    placed.instance_index = instance_index


cdef Indices start_indices(size_t count, uint32_t** rows):
    """Return a column of `count` zeros; `rows` gets a pointer to the first."""
    cdef Indices column = Indices(new_rows(4 * count))
    rows[0] = <uint32_t*>column.rows
    memset(rows[0], 0, 4 * count)
    return column


cdef bint has_prototypes(const MergedView* merged) noexcept nogil:
    """Return whether .nv.prototype will have rows."""
    cdef const EntityRow* caller
    cdef size_t i
    for i in range(merged.call_count):
        caller = &merged.entities[merged.calls[i].caller]
        if (merged.calls[i].block == BLOCK_PROTOTYPE and caller.flags & EF_LIVE
                and not caller.flags & EF_TAKEN):
            return True
    return False


cdef enum:
    # Bytes that are free after .shstrtab from sm_100 on (in lean files: zeros at its end). They are
    # room for the names `.symtab_shndx` and `.nv.merc.symtab_shndx` (14 and 22 bytes with their
    # NULs). If only the final file needs these sections, their names take the room: no gap is left.
    MERCURY_GAP = 0x24


def place(PlacedTables placed not None):
    """Give every section its size and offset in the file."""
    placed.fill()
    cdef ObjectTables objects = placed.merged.objects
    cdef FilePlaces places = FilePlaces(new_rows(placed.outs.count * sizeof(PlaceRow)))
    cdef Plan plan
    cdef Vec headers, names
    cdef uint64_t end
    cdef Scratch scratch
    memset(&plan, 0, sizeof(Plan))
    objects.view(&plan.objects)
    placed.view(&plan.placed)
    plan.count = placed.section_order.count
    plan.place = <PlaceRow*>places.rows
    plan.has_finalizer = objects.traits & TRAIT_MERCURY != 0
    plan.is_lean = has_lean_names(objects.traits)
    assign_sizes(&plan, placed)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &headers, sizeof(Phdr))
        scratch_vector(&scratch, &names, 1)
        scratch.failed |= not write_section_names(&plan, &names, placed)
        end = assign_offsets(&plan)
        placed.table_offset = end
        end += (plan.count + 1) * sizeof(Shdr)
        if objects.executable:
            scratch.failed |= not add_program_headers(&plan, end, &headers)
            end += headers.count * sizeof(Phdr)
        check_memory(not scratch.failed)
        placed.places = places
        placed.shstrtab = Blob(detach_rows(&names))
        placed.phdrs = vec_to_bytes(&headers)
        placed.size = end
    finally:
        scratch_free(&scratch)


cdef void assign_sizes(Plan* plan, PlacedTables placed):
    """Fill the sections' places, except for offsets; the size follows from the section's kind.

    A section whose contents the link made (`spans`) has their size. `write_section_names` adds the
    size of .shstrtab and the names of mercury sections. Also sets the gaps that the second program
    leaves after the string tables.
    """
    cdef const OutSymbolRow* symbol_rows = placed.merged.out_symbols.rows
    cdef const OutSymbolNumber* symbol_order = <const OutSymbolNumber*>placed.symbol_order.rows
    cdef size_t symbol_count = placed.symbol_order.count, entry_count, i
    cdef size_t early_count = symbol_count      # symbols of the mercury file
    cdef const OutRow* row
    cdef const SpanRow* span
    cdef Spans spans
    cdef uint8_t rule
    # Symbols that the mercury file does not have stand at the end of the order.
    while early_count and symbol_rows[symbol_order[early_count - 1]].part == PART_TAIL:
        early_count -= 1
    if plan.has_finalizer:
        plan.shstrtab_gap = MERCURY_GAP
    for i in range(placed.outs.count):
        row = &plan.placed.outs[i]
        rule = KIND[row.kind].size
        entry_count = (symbol_count if not KIND[row.kind].mercury or row.marks & OF_LATE
                       else early_count)
        plan.place[i].offset = 0
        plan.place[i].name = row.name
        plan.place[i].contents = FROM_INPUTS
        plan.place[i].size = row.size
        if rule == SIZE_ENTRIES:
            plan.place[i].size = <uint64_t>row.count * row.entsize
        elif rule == SIZE_SYMBOLS:
            plan.place[i].size = (entry_count + 1) * sizeof(Sym)
        elif rule == SIZE_INDICES:
            plan.place[i].size = sizeof(uint32_t) * (entry_count + 1)
        elif rule == SIZE_STRINGS:
            plan.place[i].size = placed.strtab.count
        if not plan.has_finalizer:
            continue
        if rule == SIZE_INDICES and row.marks & OF_LATE:
            plan.shstrtab_gap = 0
        if is_renamed(row) and plan.placed.section_index[i]:
            plan.strtab_gap += find_gap(plan, placed, row)
    for spans in placed.spans:
        for i in range(spans.count):
            span = spans.rows + i
            plan.place[span.out].size = span.size
            plan.place[span.out].contents = FROM_SPAN


cdef uint32_t find_gap(Plan* plan, PlacedTables placed, const OutRow* row):
    """Return the bytes that a renamed section leaves free after .strtab.

    Its final name is shorter than its first name (docs/order.md). The section leaves the difference
    less 1, for the NUL. Its .rela section leaves the length of that section's first name, if the
    output has it, or if the renamed section has literals.
    """
    cdef const OutRow* merged_outs = placed.merged.outs.rows    # with offsets in merge's .strtab
    cdef const char* strings = <const char*>placed.merged.strtab.rows
    cdef uint32_t gap = bytes_shrunk(row) - 1
    if row.rela >= 0 and (plan.placed.section_index[row.rela] or is_a(row.kind, IS_LITERALS)):
        gap += <uint32_t>strlen(strings + merged_outs[row.rela].symbol_name)
    return gap


cdef bint write_section_names(Plan* plan, Vec* names, PlacedTables placed):
    """Write .shstrtab to `names`, and set its size and the offsets of mercury sections' names.

    In lean files it sets the offsets of all sections' names. False without memory.
    """
    cdef MergedTables merged = placed.merged
    cdef size_t i
    if not name_mercury_sections(plan, names, merged.outs.rows, <const char*>merged.shstrtab.rows,
                                 merged.shstrtab.count, <const char*>merged.strtab.rows):
        return False
    if plan.is_lean:
        if not keep_used_names(plan, names):
            return False
        plan.shstrtab_gap = plan.strtab_gap = 0
    for i in range(placed.outs.count):
        if plan.placed.outs[i].kind == K_SHSTRTAB:      # it was created first
            plan.place[i].size = names.count
            break
    return True


# `graph` and `prototypes` are the contents of .nv.callgraph and .nv.prototype. Returns both with
# the new offsets of strings.
def rebuild_strtab(PlacedTables placed not None, bytes graph not None, bytes prototypes not None):
    """Rebuild .strtab without unused names: symbol names in order, then prototype strings."""
    placed.fill()
    cdef Outs outs = <Outs>Table.writable(<PyObject*>placed.outs)
    cdef OutSymbols named_symbols = <OutSymbols>Table.writable(<PyObject*>placed.out_symbols)
    cdef const char* old_strtab = <const char*>placed.strtab.rows
    cdef bytes new_graph = copy_bytes(graph), new_prototypes = copy_bytes(prototypes)
    cdef StringTable table
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_strings(&scratch, &table)
        if not scratch.failed:
            scratch.failed = not (
                write_lean_names(&table, <OutRow*>outs.rows, <OutSymbolRow*>named_symbols.rows,
                                 <const OutSymbolNumber*>placed.symbol_order.rows,
                                 placed.symbol_order.count, old_strtab)
                and renew_prototypes(&table, old_strtab,
                                     <uint32_t*>PyBytes_AS_STRING(new_graph),
                                     PyBytes_GET_SIZE(new_graph) // PAIR, False)
                and renew_prototypes(&table, old_strtab,
                                     <uint32_t*>PyBytes_AS_STRING(new_prototypes),
                                     PyBytes_GET_SIZE(new_prototypes) // PAIR, True))
        check_memory(not scratch.failed)
        placed.strtab = Blob(detach_rows(&table.text))
    finally:
        scratch_free(&scratch)
    placed.outs = outs
    placed.out_symbols = named_symbols
    return new_graph, new_prototypes


cdef bytes copy_bytes(bytes table):
    """Return a copy of `table`; the caller may write to its bytes."""
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(table), PyBytes_GET_SIZE(table))


def find_sections(Outs outs not None, list kinds not None):
    """Return for each kind, which is below 256, the number of its first OutRow, or -1."""
    # By kind: its first OutRow; -1 until found, -2 if not asked for.
    cdef int32_t[256] first
    cdef const OutRow* row = outs.rows
    cdef size_t i, missing = 0
    cdef uint8_t kind
    for i in range(256):
        first[i] = -2
    for kind in kinds:
        missing += first[kind] == -2
        first[kind] = -1
    for i in range(outs.count):
        if first[row[i].kind] == -1:
            first[row[i].kind] = <int32_t>i
            missing -= 1
            if not missing:
                break
    return [first[<uint8_t>kind] for kind in kinds]


def file_bank_size(Outs outs not None, int bank):
    """Return the bytes of a file-scope constant bank, 0 if the output has none of that number."""
    cdef size_t i
    cdef const OutRow* row = outs.rows
    for i in range(outs.count):
        if (KIND[row[i].kind].entity_kind == E_CONSTANT and row[i].entity < 0
                and row[i].bank == bank):
            return row[i].size
    return 0


def find_large_pools(Outs outs not None, uint64_t limit):
    """List the OutRows of pools (literals and jump tables of a function) above `limit` bytes."""
    cdef size_t i
    cdef const OutRow* row = outs.rows
    cdef list large = []
    for i in range(outs.count):
        if is_pool(row[i].kind, row[i].bank) and row[i].size > limit:
            large.append(i)
    return large
