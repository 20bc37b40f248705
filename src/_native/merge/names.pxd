# Names: walks over the section list and over the lists of symbols.
#
# A walk stands after the removal of dead code, which leaves no names, and before that of sections
# which turned out empty, which do (docs/order.md). Each table keeps each string once.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from merge.state cimport Listed, Merge, empty_string, entity_name, out_row
from base.nameindex cimport (
    StringTable, hash_name, prefetch, strings_enter, strings_expect, strings_intern,
)
from tables.rows cimport PART_GLOBAL, OutSymbolRow
from base.vector cimport Vec
from base.threads cimport claim, give_back, in_parts


cdef enum:
    AHEAD = 8                   # names looked for while the tables are fetched
    NAME_AS_BYTES = 1 << 10     # moved in the time that writing a name takes


cdef inline void write_names(Merge* m) noexcept nogil:
    """Fill both string tables, at once, and tell sections and symbols where their names are."""
    cdef size_t helpers = claim(m.work.section_list.count * NAME_AS_BYTES, 2, 1)
    if helpers:
        in_parts(write_table, m, 2)
    else:
        write_table(m, 0)
        write_table(m, 1)
    give_back(helpers)


cdef inline void write_table(void* context, size_t table) noexcept nogil:
    if table:
        name_sections(<Merge*>context)
    else:
        name_symbols(<Merge*>context)


cdef inline void name_sections(Merge* m) noexcept nogil:
    cdef size_t i
    cdef const Listed* row
    cdef int64_t at
    if not expect_names(&m.work.section_list, &m.columns.shstr, 0):
        m.failed = True
        return
    for i in range(m.work.section_list.count):
        row = next_of(&m.work.section_list, &m.columns.shstr, i)
        at = written(m, &m.columns.shstr, row)
        if row.out >= 0:
            out_row(m, row.out).name = <uint32_t>at


cdef inline bint expect_names(const Vec* list, StringTable* table, size_t more) noexcept nogil:
    """Room for the names of a list, and cells for `more`."""
    cdef const Listed* rows = <const Listed*>list.data
    cdef size_t i, size = 0
    for i in range(list.count):
        size += <size_t>rows[i].size + 1
    return strings_expect(table, size, list.count + more)


cdef inline void name_symbols(Merge* m) noexcept nogil:
    cdef size_t i
    cdef const Listed* row
    cdef OutSymbolRow* symbol
    cdef uint32_t[2 * AHEAD] tag
    cdef int64_t at
    if not expect_names(&m.work.local_list, &m.columns.str, m.columns.out_symbols.count):
        m.failed = True
        return
    for i in range(m.work.local_list.count):
        row = next_of(&m.work.local_list, &m.columns.str, i)
        at = written(m, &m.columns.str, row) if row.size or row.symbol < 0 else empty_string(m)
        if row.out >= 0:
            out_row(m, row.out).symbol_name = <uint32_t>at
        if row.symbol >= 0:
            (<OutSymbolRow*>m.columns.out_symbols.data)[row.symbol].name = <uint32_t>at
    for i in range(min(<size_t>AHEAD, m.columns.out_symbols.count)):
        find_global(m, i, tag)
    for i in range(m.columns.out_symbols.count):
        if i + AHEAD < m.columns.out_symbols.count:
            find_global(m, i + AHEAD, tag)
        symbol = <OutSymbolRow*>m.columns.out_symbols.data + i
        if symbol.section >= 0:
            symbol.name = out_row(m, symbol.section).symbol_name
        elif symbol.part == PART_GLOBAL and symbol.instance >= 0:
            at = strings_intern(&m.columns.str, <const uint8_t*>b"externsharedinstance", 20)
            if at < 0:
                m.failed = True
            symbol.name = <uint32_t>at
        elif symbol.part == PART_GLOBAL:
            symbol.name = global_name(m, symbol.entity, tag[i % (2 * AHEAD)])


cdef inline const Listed* next_of(const Vec* list, StringTable* table, size_t i) noexcept nogil:
    """Element `i`; a later one is hashed and its cell fetched while its name is written."""
    cdef Listed* rows = <Listed*>list.data
    cdef size_t ahead
    for ahead in range(0 if i == 0 else i + AHEAD, min(i + AHEAD + 1, list.count)):
        if rows[ahead].text != NULL:
            rows[ahead].tag = <uint32_t>hash_name(rows[ahead].text, rows[ahead].size)
            prefetch(&table.cells[rows[ahead].tag & table.mask])
    if i + 2 * AHEAD < list.count:
        prefetch(rows[i + 2 * AHEAD].text)
    return rows + i


cdef inline uint32_t written(Merge* m, StringTable* table, const Listed* row) noexcept nogil:
    cdef int64_t at
    if row.text == NULL:
        return 0
    at = strings_enter(table, row.text, row.size, row.tag)
    if at < 0:
        m.failed = True
    return <uint32_t>at


cdef inline void find_global(Merge* m, size_t i, uint32_t* tag) noexcept nogil:
    """Hash the name of a global symbol and fetch its cell, for `global_name`."""
    cdef const OutSymbolRow* symbol = <const OutSymbolRow*>m.columns.out_symbols.data + i
    cdef uint32_t size
    cdef const uint8_t* text
    if symbol.section < 0 and symbol.part == PART_GLOBAL and symbol.instance < 0:
        text = entity_name(m, symbol.entity, &size)
        tag[i % (2 * AHEAD)] = <uint32_t>hash_name(text, size)
        prefetch(&m.columns.str.cells[tag[i % (2 * AHEAD)] & m.columns.str.mask])


cdef inline uint32_t global_name(Merge* m, int32_t entity, uint32_t tag) noexcept nogil:
    cdef uint32_t size
    cdef const uint8_t* text = entity_name(m, entity, &size)
    cdef int64_t at = strings_enter(&m.columns.str, text, size, tag)
    if at < 0:
        m.failed = True
    return <uint32_t>at
