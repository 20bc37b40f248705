"""Layout: values of symbols, order and indices of sections and symbols, places in the file."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset, strlen

from base.nameindex cimport StringTable, strings_free, strings_init
from sectionkinds cimport (
    IS_DEBUG, IS_KERNEL_SHARED, IS_LITERALS, IS_PARAMETERS, IS_VARIABLES, KIND, K_GLOBAL,
    K_MERC_SYSTEM_SHARED, K_SHSTRTAB, K_STRTAB, SIZE_ENTRIES, SIZE_INDICES, SIZE_STRINGS,
    SIZE_SYMBOLS,
)
from base.elf64 cimport SHN_COMMON, Ehdr, Phdr, Shdr, Sym, round_up
from tables.kinds cimport is_a, is_nobits, is_pool, is_renamed, is_user_bank, shrinks
from layout.names cimport mercury_names, renew_prototypes, used_names, write_lean_names
from layout.order cimport is_lean, order_sections, push_number
from layout.segments cimport program_headers
from pylink._native.tables cimport (
    Blob, FilePlaces, Indices, MergedTables, Numbers, ObjectTables, OutSymbols, Outs,
    PlacedTables, Spans, Table, Values, new_rows, take_rows,
)
from tables.rows cimport (
    BLOCK_PROTOTYPE, EF_COMMON, EF_LIVE, EF_TAKEN, E_CONST0_SIZE, E_CONSTANT, E_SYSTEM_SHARED,
    OF_LATE, OF_NO_SYMBOL, OF_OWN_BYTES, PART_LOCAL, PART_TAIL, SAYS_WHOLE, SYSTEM_RESERVE,
    CallRow, EntityRow, FileRow, OutRow, OutSymbolRow, PlaceRow, SectionRow, SpanRow, SymbolRow,
    is_missing,
)
from mercury.ties cimport can_fold
from traits cimport TRAIT_MERCURY
from base.vector cimport Vec, vec_free, vec_init, vec_take


def assign_values(PlacedTables placed not None):
    """Offsets of data symbols in their sections; common symbols get room at the end of .nv.global.

    Fills `values`, `homes`, and `outs` with the grown .nv.global. Shared variables are placed
    elsewhere.
    """
    placed.fill()
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t n = merged.entities.count, i
    cdef size_t out_count = merged.outs.count
    cdef size_t symbol_count = merged.out_symbols.count
    cdef const SectionRow* s = objects.sections.rows
    cdef const SymbolRow* sym = objects.symbols.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef const OutSymbolRow* symbols = merged.out_symbols.rows
    cdef const int32_t* out = merged.out_of.rows
    cdef const uint64_t* piece = merged.base.rows
    cdef Values values = Values(new_rows(8 * n))
    cdef Numbers homes = Numbers(new_rows(4 * n))
    cdef Outs grown = <Outs>merged.outs.copy()
    cdef uint64_t* value = <uint64_t*>values.rows
    cdef int32_t* home = <int32_t*>homes.rows
    cdef OutRow* row = <OutRow*>grown.rows
    cdef const int32_t* function = merged.section_function.rows
    cdef const int32_t* entity = merged.symbol_entity.rows
    cdef bint ok
    cdef int32_t* constant0 = <int32_t*>calloc(n + 1, 4)
    cdef int32_t* pool = <int32_t*>calloc(n + 1, 4)
    cdef int32_t section, common = -1
    cdef uint64_t constants = ~<uint64_t>0
    if merged.section_function.count != objects.sections.count:
        raise ValueError("one function per section")
    if merged.symbol_entity.count != objects.symbols.count:
        raise ValueError("one entity per symbol")
    if constant0 == NULL or pool == NULL:
        free(constant0)
        free(pool)
        raise MemoryError
    with nogil:
        for i in range(out_count):
            if row[i].kind == K_GLOBAL:
                common = <int32_t>i
            elif is_a(row[i].kind, IS_PARAMETERS):
                constant0[row[i].entity] = <int32_t>i + 1
            elif is_pool(row[i].kind, row[i].bank):
                pool[row[i].entity] = <int32_t>i + 1
            elif is_user_bank(row[i].kind, row[i].bank):
                constants = row[i].size
        for i in range(n):
            section = sym[e[i].winner].section
            home[i] = -1
            value[i] = sym[e[i].winner].value
            if e[i].kind == E_CONST0_SIZE:
                value[i] = constants    # all ones when there is no such bank
            if is_missing(&e[i], &sym[e[i].winner]):
                value[i] = ~<uint64_t>0
            if section >= 0:
                home[i] = out[section]
                value[i] += piece[section]
                if e[i].kind == E_SYSTEM_SHARED:
                    value[i] = sym[e[i].winner].value   # until it has a place, its alignment
                # Parameters and constants of a copy that went are those of the one that stays.
                if home[i] < 0 and function[section] >= 0:
                    if is_a(s[section].kind, IS_PARAMETERS):
                        home[i] = constant0[function[section]] - 1
                    elif is_pool(s[section].kind, s[section].bank):
                        home[i] = pool[function[section]] - 1
        place_system_shared(e, n, sym, home, objects.executable, row, value)
        ok = common < 0 or place_common(sym, entity, objects.symbols.count, e, n, symbols,
                                        symbol_count, &row[common], common, value, home)
    free(constant0)
    free(pool)
    if not ok:
        raise MemoryError
    placed.values = values
    placed.homes = homes
    placed.outs = grown


cdef bint place_common(const SymbolRow* sym, const int32_t* entity, size_t symbol_count,
                       const EntityRow* e, size_t n, const OutSymbolRow* symbols, size_t count,
                       OutRow* out, int32_t number, uint64_t* value, int32_t* home) noexcept nogil:
    """Room behind the variables of `out`, .nv.global, for the common symbols.

    The one that an input first gives room last comes first, whoever declared it before. A
    definition there that has an alignment was common before: it moves (`replace_common`). Whether
    there was memory.
    """
    cdef uint8_t* common = NULL         # by entity
    cdef int32_t* found = NULL
    cdef uint64_t align
    cdef size_t i, many = 0, last = 0
    cdef int32_t at
    for i in range(count):
        at = symbols[i].entity
        if at >= 0 and (e[at].flags & EF_COMMON or (home[at] == number and e[at].align)):
            if common == NULL:
                common = <uint8_t*>calloc(n, 1)
                if common == NULL:
                    return False
            common[at] = 1
            many += 1
    if not many:
        return True
    found = <int32_t*>calloc(many, sizeof(int32_t))
    if found == NULL:
        free(common)
        return False
    for i in range(symbol_count):
        if sym[i].shndx == SHN_COMMON and entity[i] >= 0 and common[entity[i]]:
            common[entity[i]] = 0
            found[last] = entity[i]
            last += 1
    for i in range(last):
        at = found[last - 1 - i]
        align = e[at].align if e[at].align else 1
        if align & (align - 1) or align > 0x10000:
            align = 1
        value[at] = round_up(out.size, align)
        home[at] = number
        out.size = value[at] + e[at].size
        out.align = max(out.align, <uint32_t>align)
    free(found)
    free(common)
    return True


cdef void place_system_shared(const EntityRow* e, size_t n, const SymbolRow* symbols,
                              const int32_t* home, bint executable, OutRow* outs,
                              uint64_t* value) noexcept nogil:
    """Places of the variables in .nv.shared.reserved.0: by falling alignment, then last born first.

    Relocatable outputs have room for them and give them no place: `value` stays their alignment,
    at most MAX_ALIGN. One pass over the entities for each power of two, where there are any.
    """
    cdef uint64_t reserve = SYSTEM_RESERVE if executable else 0, end = reserve, align = 0x10000
    cdef size_t i, node
    cdef int32_t out = -1
    for i in range(n):
        if e[i].kind == E_SYSTEM_SHARED and home[i] >= 0:
            out = home[i]
    while out >= 0 and align:
        for i in range(n):
            node = n - 1 - i
            if (e[node].kind == E_SYSTEM_SHARED
                    and max(symbols[e[node].winner].value, <uint64_t>1) == align):
                outs[out].align = max(outs[out].align, <uint32_t>align)
                end = round_up(end, align)
                if executable:
                    value[node] = end
                end += e[node].size
        align >>= 1
    if out >= 0:
        outs[out].size = end
        if outs[out].merc >= 0:
            outs[outs[out].merc].size = end - reserve
            outs[outs[out].merc].align = outs[out].align


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
    cdef bint prototypes = False, ok = True
    cdef bint lean = is_lean(merged.objects.traits)
    cdef const int32_t* homes = placed.homes.rows if lean and merged.objects.executable else NULL
    cdef int turn
    vec_init(&sections, 4)
    vec_init(&symbols, 4)
    with nogil:
        memset(index, 0, 4 * n)
        memset(by_entity, 0, 4 * entity_count)
        memset(by_section, 0, 4 * n)
        memset(by_instance, 0, 4 * entity_count)
        for i in range(call_count):
            if (call[i].block == BLOCK_PROTOTYPE and e[call[i].caller].flags & EF_LIVE
                    and not e[call[i].caller].flags & EF_TAKEN):
                prototypes = True
        ok = order_sections(row, n, merged.objects.family, merged.objects.traits, prototypes,
                            has_file_records, &sections, index)
        for turn in range(4):
            for i in range(symbol_count):
                if symbol[i].dropped or turn_of(&symbol[i], row, homes) != turn:
                    continue
                at = symbols.count + 1
                if symbol[i].section >= 0:
                    if index[symbol[i].section] == 0 or row[symbol[i].section].marks & OF_NO_SYMBOL:
                        continue
                    by_section[symbol[i].section] = <uint32_t>at
                elif symbol[i].instance >= 0:
                    by_instance[symbol[i].instance] = <uint32_t>at
                else:
                    by_entity[symbol[i].entity] = <uint32_t>at
                ok = ok and push_number(&symbols, <int32_t>i)
    placed.section_order = Numbers(take_rows(&sections))
    placed.symbol_order = Numbers(take_rows(&symbols))
    placed.section_index = section_index
    placed.symbol_index = symbol_index
    placed.section_symbol_index = section_symbol_index
    placed.instance_index = instance_index
    if not ok:
        raise MemoryError


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
    # Behind .shstrtab, family C: the names `.symtab_shndx` and `.nv.merc.symtab_shndx`, should only
    # the final file need these sections. If it does, the names stand there.
    MERCURY_GAP = 0x24


cdef inline bint shares_bytes(const uint8_t* arena, const FileRow* files,
                              const SectionRow* sections, const OutRow* row,
                              const OutRow* plain, bint same_size, bint lean) noexcept nogil:
    """Mercury sections that repeat their plain twin's bytes point at them instead.

    Variables do but in whole programs, others without relocations where the inputs' do: lines that
    are headers alone, types of registers of device functions. With `lean` .debug_info shares, too,
    as in the objects of these releases, and in whole programs. What was written anew with another
    size has its own place.
    """
    cdef const SectionRow* source
    if is_a(row.kind, IS_VARIABLES):
        return row.marks & OF_OWN_BYTES == 0
    if not is_a(row.kind, IS_DEBUG) or row.source < 0:
        return False
    source = &sections[row.source]
    if not can_fold(arena, source):
        return True
    if lean and source.name_size == 19 and memcmp(
            arena + source.name, <const char*>b".nv.merc.debug_info", 19) == 0:
        return True
    return (row.marks & OF_OWN_BYTES == 0 and same_size
            and (plain.rela < 0 or files[source.file].says & SAYS_WHOLE))


# What `place` works with.
ctypedef struct Plan:
    const OutRow* outs
    const int32_t* order
    size_t count                # sections of the file
    PlaceRow* place             # by OutRow
    bint second                 # a second program makes the final file
    bint lean
    uint32_t gap                # what that one leaves behind .shstrtab
    uint32_t reserve            # and behind .strtab


def place(PlacedTables placed not None):
    """Give every section its size and offset in the file.

    Fills `places`, the final `shstrtab`, `phdrs`, `table_offset` and `size`.
    """
    placed.fill()
    cdef ObjectTables objects = placed.merged.objects
    cdef FilePlaces places = FilePlaces(new_rows(placed.outs.count * sizeof(PlaceRow)))
    cdef Plan p
    cdef Vec headers
    cdef uint64_t end
    cdef bint ok = True
    memset(&p, 0, sizeof(Plan))
    p.outs = placed.outs.rows
    p.order = placed.section_order.rows
    p.count = placed.section_order.count
    p.place = <PlaceRow*>places.rows
    p.second = objects.traits & TRAIT_MERCURY != 0
    p.lean = is_lean(objects.traits)
    vec_init(&headers, sizeof(Phdr))
    take_sizes(&p, placed)
    if p.second:
        find_leavings(&p, placed)
    names = section_names(&p, placed)
    end = take_offsets(&p, <const uint8_t*>PyBytes_AS_STRING(objects.arena), objects.files.rows,
                       objects.sections.rows)
    placed.table_offset = end
    end += (p.count + 1) * sizeof(Shdr)
    if objects.executable:
        ok = program_headers(&headers, p.outs, p.order, p.count, p.place, p.second, end)
        end += headers.count * sizeof(Phdr)
    phdrs = vec_take(&headers)
    if not ok:
        raise MemoryError
    placed.places = places
    placed.shstrtab = names
    placed.phdrs = phdrs
    placed.size = end


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
        row = &p.outs[i]
        rule = KIND[row.kind].size
        held = symbol_count if not KIND[row.kind].mercury or row.marks & OF_LATE else early
        p.place[i].offset = 0
        p.place[i].name = row.name
        p.place[i].made = 0
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
            p.place[span.out].made = 1


cdef void find_leavings(Plan* p, PlacedTables placed):
    """The room that the second program leaves behind the names of sections and of symbols.

    Behind .strtab renamed sections leave the difference to their first names, their relocation
    sections all of the first name.
    """
    cdef const OutRow* born = placed.merged.outs.rows
    cdef const char* strings = <const char*>placed.merged.strtab.rows
    cdef const OutRow* row
    cdef size_t i
    p.gap = MERCURY_GAP
    for i in range(placed.outs.count):
        row = &p.outs[i]
        if KIND[row.kind].size == SIZE_INDICES and row.marks & OF_LATE:
            p.gap = 0
        if placed.section_index.rows[i] and is_renamed(row):
            p.reserve += shrinks(row) - 1
            if row.rela >= 0 and (placed.section_index.rows[row.rela]
                                  or is_a(row.kind, IS_LITERALS)):
                p.reserve += <uint32_t>strlen(strings + born[row.rela].symbol_name)


cdef Blob section_names(Plan* p, PlacedTables placed):
    """.shstrtab, whose size is known now, and where in it the name of each section is."""
    cdef MergedTables merged = placed.merged
    cdef Vec names
    cdef size_t i
    cdef bint ok
    vec_init(&names, 1)
    ok = mercury_names(&names, merged.outs.rows, p.order, p.count, p.place,
                       <const char*>merged.shstrtab.rows, merged.shstrtab.count,
                       <const char*>merged.strtab.rows)
    if ok and p.lean:
        ok = used_names(&names, p.order, p.count, p.place, p.gap)
        p.gap = p.reserve = 0
    if not ok:
        vec_free(&names)
        raise MemoryError
    for i in range(p.count):
        if p.outs[p.order[i]].kind == K_SHSTRTAB:
            p.place[p.order[i]].size = names.count
    return Blob(take_rows(&names))


cdef uint64_t take_offsets(Plan* p, const uint8_t* arena, const FileRow* files,
                           const SectionRow* s) noexcept nogil:
    """Offsets in the order of the file; where the table of sections begins behind them.

    nvlink does not align that behind Mercury sections; only from 13.5 on are there any whose end is
    no multiple of 8.
    """
    cdef uint64_t at = sizeof(Ehdr)
    cdef const OutRow* row
    cdef PlaceRow* place
    cdef size_t i
    for i in range(p.count):
        row = &p.outs[p.order[i]]
        place = &p.place[p.order[i]]
        if row.twin >= 0 and shares_bytes(arena, files, s, row, &p.outs[row.twin],
                                          p.place[row.twin].size == place.size, p.lean):
            place.offset = p.place[row.twin].offset
            place.size = p.place[row.twin].size
            place.made = 2
            continue
        at = place.offset = round_up(at, row.align)
        # One has no room where a release does not copy what the mercury file has in its place.
        if not (is_nobits(row) or (p.lean and row.kind == K_MERC_SYSTEM_SHARED)):
            at += place.size
        if row.kind == K_SHSTRTAB:
            at += p.gap
        elif row.kind == K_STRTAB:
            at += p.reserve
    return at if p.lean else round_up(at, 8)


def lean_names(PlacedTables placed not None, bytes graph not None, bytes prototypes not None):
    """.strtab of what there is: names in the order of the symbols, then strings of prototypes.

    Fills `strtab`, `out_symbols` and `outs`. `graph` and `prototypes` are the contents of
    .nv.callgraph and .nv.prototype; returns both, with the new offsets as well.
    """
    placed.fill()
    cdef Outs outs = <Outs>Table.opened(<PyObject*>placed.outs)
    cdef OutSymbols named = <OutSymbols>Table.opened(<PyObject*>placed.out_symbols)
    cdef const char* born = <const char*>placed.strtab.rows
    cdef bytes calls = copy(graph), pairs = copy(prototypes)
    cdef StringTable table
    cdef bint ok = strings_init(&table)
    ok = ok and write_lean_names(
        &table, <OutRow*>outs.rows, <OutSymbolRow*>named.rows,
        placed.symbol_order.rows, placed.symbol_order.count, born)
    ok = (ok and renew_prototypes(&table, born, <uint32_t*>PyBytes_AS_STRING(calls),
                                  PyBytes_GET_SIZE(calls) // 8, False)
          and renew_prototypes(&table, born, <uint32_t*>PyBytes_AS_STRING(pairs),
                               PyBytes_GET_SIZE(pairs) // 8, True))
    strings = Blob(take_rows(&table.text))
    strings_free(&table)
    if not ok:
        raise MemoryError
    placed.outs = outs
    placed.out_symbols = named
    placed.strtab = strings
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
