"""Layout: values of symbols, order and indices of sections and symbols, places in the file."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset, strlen

from elf64 cimport *
from layoutnames cimport *
from layoutorder cimport *
from layoutsegments cimport *
from rows cimport *
from ties cimport *
from vec cimport *


def assign_values(bytes sections, bytes symbols, bytes entities, bytes symbol_entity, bytes outs,
                  bytes out_symbols, bytes out_of, bytes base, bint executable):
    """Offsets of data symbols in their sections; common symbols get room at the end of .nv.global.

    Returns `(values, homes, outs)`: uint64 value and int32 OutRow per entity (-1: none), and the
    OutRow table with the grown .nv.global. Shared variables are placed elsewhere.
    """
    cdef size_t n = PyBytes_GET_SIZE(entities) // sizeof(EntityRow), i
    cdef size_t out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    cdef size_t symbol_count = PyBytes_GET_SIZE(out_symbols) // sizeof(OutSymbolRow)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const SymbolRow* sym = <const SymbolRow*>PyBytes_AS_STRING(symbols)
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
    cdef const OutSymbolRow* born = <const OutSymbolRow*>PyBytes_AS_STRING(out_symbols)
    cdef const int32_t* out = <const int32_t*>PyBytes_AS_STRING(out_of)
    cdef const uint64_t* piece = <const uint64_t*>PyBytes_AS_STRING(base)
    cdef bytes values = PyBytes_FromStringAndSize(NULL, 8 * n)
    cdef bytes homes = PyBytes_FromStringAndSize(NULL, 4 * n)
    cdef bytes grown = PyBytes_FromStringAndSize(PyBytes_AS_STRING(outs), PyBytes_GET_SIZE(outs))
    cdef uint64_t* value = <uint64_t*>PyBytes_AS_STRING(values)
    cdef int32_t* home = <int32_t*>PyBytes_AS_STRING(homes)
    cdef OutRow* row = <OutRow*>PyBytes_AS_STRING(grown)
    cdef const int32_t* entity = <const int32_t*>PyBytes_AS_STRING(symbol_entity)
    cdef int32_t* constant0 = <int32_t*>calloc(n + 1, 4)
    cdef int32_t* pool = <int32_t*>calloc(n + 1, 4)
    cdef int32_t section, common = -1
    cdef uint64_t align, constants = ~<uint64_t>0
    if constant0 == NULL or pool == NULL:
        free(constant0)
        free(pool)
        raise MemoryError
    with nogil:
        for i in range(out_count):
            if row[i].kind == K_GLOBAL:
                common = <int32_t>i
            elif row[i].kind == K_CONSTANT0:
                constant0[row[i].entity] = <int32_t>i + 1
            elif row[i].kind == K_CONSTANT_FUNC and row[i].bank == 2:
                pool[row[i].entity] = <int32_t>i + 1
            elif row[i].kind == K_CONSTANT and row[i].bank == 3:
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
                if s[section].kind == K_CONSTANT0 and out[section] < 0 and s[section].target >= 0:
                    # Parameters of a kernel copy that lost are those of the copy that stays.
                    section = entity[s[s[section].target].target]
                    home[i] = constant0[section] - 1 if section >= 0 else -1
                elif s[section].kind == K_CONSTANT_FUNC and s[section].bank == 2 \
                        and out[section] < 0:
                    # So are the constants of one that was replaced.
                    section = entity[s[s[section].target].target]
                    home[i] = pool[section] - 1 if section >= 0 else -1
        place_system_shared(e, n, sym, home, executable, row, value)
        for i in range(symbol_count):
            section = born[symbol_count - 1 - i].entity
            if section < 0 or common < 0 or not e[section].flags & EF_COMMON:
                continue
            align = e[section].align if e[section].align else 1
            if align & (align - 1) or align > 0x10000:
                align = 1
            value[section] = round_up(row[common].size, align)
            home[section] = common
            row[common].size = value[section] + e[section].size
            if align > row[common].align:
                row[common].align = <uint32_t>align
    free(constant0)
    free(pool)
    return values, homes, grown


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


def order(bytes outs, bytes out_symbols, bytes calls, bytes entities, int family,
          int traits, bint has_file_records):
    """Number the sections and symbols of the output.

    `traits` are the TRAIT_ bits of the release.

    Returns `(section_order, section_index, symbol_order, symbol_index, section_symbol_index,
    instance_index)`: OutRow numbers in file order; uint32 header index per OutRow (0: omitted);
    OutSymbolRow numbers in symbol-table order; uint32 symbol index per entity and per OutRow (0:
    none); symbol index of the externsharedinstance per kernel entity.
    """
    cdef size_t n = PyBytes_GET_SIZE(outs) // sizeof(OutRow), i, at
    cdef size_t symbol_count = PyBytes_GET_SIZE(out_symbols) // sizeof(OutSymbolRow)
    cdef size_t entity_count = PyBytes_GET_SIZE(entities) // sizeof(EntityRow)
    cdef size_t call_count = PyBytes_GET_SIZE(calls) // sizeof(CallRow)
    cdef const OutRow* row = <const OutRow*>PyBytes_AS_STRING(outs)
    cdef const OutSymbolRow* symbol = <const OutSymbolRow*>PyBytes_AS_STRING(out_symbols)
    cdef const CallRow* call = <const CallRow*>PyBytes_AS_STRING(calls)
    cdef const EntityRow* e = <const EntityRow*>PyBytes_AS_STRING(entities)
    cdef bytes section_index = PyBytes_FromStringAndSize(NULL, 4 * n)
    cdef bytes symbol_index = PyBytes_FromStringAndSize(NULL, 4 * entity_count)
    cdef bytes section_symbol_index = PyBytes_FromStringAndSize(NULL, 4 * n)
    cdef bytes instance_index = PyBytes_FromStringAndSize(NULL, 4 * entity_count)
    cdef uint32_t* by_instance = <uint32_t*>PyBytes_AS_STRING(instance_index)
    cdef uint32_t* index = <uint32_t*>PyBytes_AS_STRING(section_index)
    cdef uint32_t* by_entity = <uint32_t*>PyBytes_AS_STRING(symbol_index)
    cdef uint32_t* by_section = <uint32_t*>PyBytes_AS_STRING(section_symbol_index)
    cdef Vec sections, symbols
    cdef bint prototypes = False, ok = True
    cdef uint32_t part
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
        ok = order_sections(row, n, family, prototypes, has_file_records,
                            is_lean(family, traits), &sections, index)
        for part in range(3):
            for i in range(symbol_count):
                if symbol[i].part != part or symbol[i].dropped:
                    continue
                at = symbols.count + 1
                if symbol[i].section >= 0:
                    if index[symbol[i].section] == 0 or row[symbol[i].section].notes & OF_NO_SYMBOL:
                        continue
                    by_section[symbol[i].section] = <uint32_t>at
                elif symbol[i].instance >= 0:
                    by_instance[symbol[i].instance] = <uint32_t>at
                else:
                    by_entity[symbol[i].entity] = <uint32_t>at
                ok = ok and push_number(&symbols, <int32_t>i)
    tables = (vec_take(&sections), section_index, vec_take(&symbols), symbol_index,
              section_symbol_index, instance_index)
    if not ok:
        raise MemoryError
    return tables


cdef enum:
    # Behind .shstrtab, family C: the names `.symtab_shndx` and `.nv.merc.symtab_shndx`, should only
    # the final file need these sections. If it does, the names stand there.
    MERCURY_GAP = 0x24


cdef inline bint shares_bytes(const uint8_t* arena, const SectionRow* sections,
                              const OutRow* row, const OutRow* plain, bint lean) noexcept nogil:
    """Mercury sections that repeat their plain twin's bytes point at them instead.

    Among them is a .debug_line of headers alone: without relocations it has no addresses. With
    `lean` .debug_info is, too, as in the objects of these releases.
    """
    cdef const SectionRow* source
    if row.kind == K_MERC_CONSTANT or row.kind == K_MERC_GLOBAL_INIT:
        return True
    if row.kind != K_MERC_DEBUG or row.source < 0:
        return False
    source = &sections[row.source]
    if not can_fold(arena, source):
        return True
    if lean and source.name_size == 19 and memcmp(
            arena + source.name, <const char*>b".nv.merc.debug_info", 19) == 0:
        return True
    return (plain.rela < 0 and source.name_size == 19
            and memcmp(arena + source.name, <const char*>b".nv.merc.debug_line", 19) == 0)


def place(bytes arena, bytes sections, bytes outs, bytes section_order, bytes section_index,
          list spans, bytes symbol_order, bytes out_symbols, bytes shstrtab,
          bytes born_names, bytes strtab, int family, int traits, bint executable):
    """Give every section its size and offset in the file.

    `spans` are SpanRow tables of the contents that the link made; `born_names` is the .strtab that
    `outs` was born with, `strtab` that of the output. Returns `(places, shstrtab,
    phdrs, table_offset, size)`: PlaceRow per OutRow, the final .shstrtab, packed program headers,
    the offset of the section header table, and the file size, both in bytes.
    """
    cdef size_t n = PyBytes_GET_SIZE(outs) // sizeof(OutRow), i
    cdef size_t count = PyBytes_GET_SIZE(section_order) // 4
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const OutRow* row = <const OutRow*>PyBytes_AS_STRING(outs)
    cdef const int32_t* order = <const int32_t*>PyBytes_AS_STRING(section_order)
    cdef const uint32_t* index = <const uint32_t*>PyBytes_AS_STRING(section_index)
    cdef bytes places = PyBytes_FromStringAndSize(NULL, n * sizeof(PlaceRow))
    cdef PlaceRow* place = <PlaceRow*>PyBytes_AS_STRING(places)
    cdef const SpanRow* span
    cdef Vec names, headers
    cdef uint64_t at = sizeof(Ehdr), offset
    cdef bint ok = True, lean = is_lean(family, traits)
    cdef uint32_t reserve = 0, gap = MERCURY_GAP if family == FAMILY_C else 0
    cdef const char* strings = PyBytes_AS_STRING(born_names)
    cdef int32_t o
    cdef size_t symbols = PyBytes_GET_SIZE(symbol_order) // 4
    cdef size_t early = 0, held
    cdef uint8_t rule
    vec_init(&names, 1)
    vec_init(&headers, sizeof(Phdr))
    for i in range(symbols):
        early += (<const OutSymbolRow*>PyBytes_AS_STRING(out_symbols))[
            (<const int32_t*>PyBytes_AS_STRING(symbol_order))[i]].part != PART_TAIL
    for i in range(n):
        place[i].size = row[i].size
        place[i].offset = 0
        place[i].name = row[i].name
        place[i].made = 0
        rule = KIND[row[i].kind].size
        held = symbols if not KIND[row[i].kind].mercury or row[i].notes & OF_LATE else early
        if rule == SIZE_ENTRIES:
            place[i].size = <uint64_t>row[i].count * row[i].entsize
        elif rule == SIZE_SYMBOLS:
            place[i].size = (held + 1) * sizeof(Sym)
        elif rule == SIZE_INDICES:
            place[i].size = 4 * (held + 1)
            if row[i].notes & OF_LATE:
                gap = 0
        elif rule == SIZE_STRINGS:
            place[i].size = PyBytes_GET_SIZE(strtab)
        # Family C: renamed sections leave the difference to their first names, relocation
        # sections all of the first name, as room behind .strtab.
        if family == FAMILY_C and row[i].kind == K_CONSTANT and row[i].bank == 3 and index[i]:
            reserve += 3 if row[i].rela < 0 else 25
        elif family == FAMILY_C and row[i].kind == K_CONSTANT_FUNC and index[i]:
            reserve += 8
            if row[i].rela >= 0:
                reserve += <uint32_t>strlen(strings + row[row[i].rela].symbol_name)
    for table in spans:
        for i in range(PyBytes_GET_SIZE(table) // sizeof(SpanRow)):
            span = <const SpanRow*>PyBytes_AS_STRING(table) + i
            place[span.out].size = span.size
            place[span.out].made = 1
    ok = mercury_names(&names, row, order, count, place, PyBytes_AS_STRING(shstrtab),
                       PyBytes_GET_SIZE(shstrtab), strings)
    if ok and lean:
        ok = used_names(&names, order, count, place, gap)
        reserve = gap = 0
    full = vec_take(&names)
    for i in range(count):
        o = order[i]
        if row[o].kind == K_SHSTRTAB:
            place[o].size = PyBytes_GET_SIZE(full)
        if row[o].twin >= 0 and shares_bytes(base, s, &row[o], &row[row[o].twin],
                                           lean):
            place[o].offset = place[row[o].twin].offset
            place[o].size = place[row[o].twin].size
            place[o].made = 2
            continue
        offset = round_up(at, row[o].align)
        place[o].offset = offset
        at = offset if is_nobits(&row[o]) else offset + place[o].size
        if row[o].kind == K_SHSTRTAB:
            at += gap
        elif family == FAMILY_C and row[o].kind == K_STRTAB:
            at += reserve
    at = round_up(at, 8)
    offset = at
    at += (count + 1) * sizeof(Shdr)
    if executable:
        ok = ok and program_headers(&headers, row, order, count, place, family, at)
        at += headers.count * sizeof(Phdr)
    result = places, full, vec_take(&headers), offset, at
    if not ok:
        raise MemoryError
    return result


def lean_names(bytes outs, bytes out_symbols, bytes symbol_order, bytes strtab, bytes graph,
               bytes prototypes):
    """.strtab of what there is: names in the order of the symbols, then strings of prototypes.

    `graph` and `prototypes` are the contents of .nv.callgraph and .nv.prototype. Returns `(outs,
    out_symbols, strtab, graph, prototypes)`, all with the new offsets.
    """
    cdef bytes rows = copy(outs), named = copy(out_symbols)
    cdef bytes calls = copy(graph), pairs = copy(prototypes)
    cdef StringTable table
    cdef bint ok = strings_init(&table)
    ok = ok and write_lean_names(
        &table, <OutRow*>PyBytes_AS_STRING(rows), <OutSymbolRow*>PyBytes_AS_STRING(named),
        <const int32_t*>PyBytes_AS_STRING(symbol_order), PyBytes_GET_SIZE(symbol_order) // 4,
        PyBytes_AS_STRING(strtab))
    ok = (ok and renew_prototypes(&table, PyBytes_AS_STRING(strtab),
                                  <uint32_t*>PyBytes_AS_STRING(calls),
                                  PyBytes_GET_SIZE(calls) // 8, False)
          and renew_prototypes(&table, PyBytes_AS_STRING(strtab),
                               <uint32_t*>PyBytes_AS_STRING(pairs),
                               PyBytes_GET_SIZE(pairs) // 8, True))
    strings = PyBytes_FromStringAndSize(<char*>table.data, table.size) if ok else b""
    strings_free(&table)
    if not ok:
        raise MemoryError
    return rows, named, strings, calls, pairs


cdef bytes copy(bytes table):
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(table), PyBytes_GET_SIZE(table))


def find_kind(bytes outs, int kind):
    """The number of the first OutRow of that kind, or -1."""
    cdef size_t n = PyBytes_GET_SIZE(outs) // sizeof(OutRow), i
    cdef const OutRow* row = <const OutRow*>PyBytes_AS_STRING(outs)
    for i in range(n):
        if row[i].kind == kind:
            return i
    return -1


def constant_size(bytes outs, int bank):
    """Bytes of the file-scope constant bank, 0 without one."""
    cdef size_t n = PyBytes_GET_SIZE(outs) // sizeof(OutRow), i
    cdef const OutRow* row = <const OutRow*>PyBytes_AS_STRING(outs)
    for i in range(n):
        if row[i].kind == K_CONSTANT and row[i].bank == bank:
            return row[i].size
    return 0


def find_large_pools(bytes outs, uint64_t limit):
    """The OutRow numbers of the literal pools and jump tables with more than `limit` bytes."""
    cdef size_t n = PyBytes_GET_SIZE(outs) // sizeof(OutRow), i
    cdef const OutRow* row = <const OutRow*>PyBytes_AS_STRING(outs)
    cdef list found = []
    for i in range(n):
        if row[i].kind == K_CONSTANT_FUNC and row[i].bank == 2 and row[i].size > limit:
            found.append(i)
    return found
