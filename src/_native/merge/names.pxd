# Names: walks over the section list and over the lists of symbols.
#
# A walk stands after the removal of dead code, which leaves no names, and before that of sections
# which turned out empty, which do (docs/order.md). Each table keeps each string once.

from libc.stdint cimport int64_t, uint8_t, uint32_t

from libc.stdint cimport int32_t
from merge.state cimport Listed, Merge, empty_string, entity_name, out_row
from base.nameindex cimport StringTable, prefetch, strings_enter, strings_expect, strings_intern
from tables.rows cimport PART_GLOBAL, OutSymbolRow
from base.vector cimport Vec
from base.threads cimport claim, give_back, in_parts


cdef enum:
    AHEAD = 8                   # names looked for while the tables are fetched
    NAME_AS_BYTES = 1 << 10     # moved in the time that writing a name takes


cdef inline void write_names(Merge* m) noexcept nogil:
    """Fill both string tables, at once, and tell sections and symbols where their names are."""
    cdef size_t helpers = claim(m.section_list.count * NAME_AS_BYTES, 2, 1)
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
    if not expect_names(&m.section_list, &m.shstr, 0):
        m.failed = True
        return
    for i in range(m.section_list.count):
        row = next_of(&m.section_list, &m.shstr, i)
        at = written(m, &m.shstr, row)
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
    cdef int64_t at
    if not expect_names(&m.local_list, &m.str, m.out_symbols.count):
        m.failed = True
        return
    for i in range(m.local_list.count):
        row = next_of(&m.local_list, &m.str, i)
        at = written(m, &m.str, row) if row.size or row.symbol < 0 else empty_string(m)
        if row.out >= 0:
            out_row(m, row.out).symbol_name = <uint32_t>at
        if row.symbol >= 0:
            (<OutSymbolRow*>m.out_symbols.data)[row.symbol].name = <uint32_t>at
    for i in range(m.out_symbols.count):
        symbol = <OutSymbolRow*>m.out_symbols.data + i
        if symbol.section >= 0:
            symbol.name = out_row(m, symbol.section).symbol_name
        elif symbol.part == PART_GLOBAL and symbol.instance >= 0:
            at = strings_intern(&m.str, <const uint8_t*>b"externsharedinstance", 20)
            if at < 0:
                m.failed = True
            symbol.name = <uint32_t>at
        elif symbol.part == PART_GLOBAL:
            symbol.name = global_name(m, symbol.entity)


cdef inline const Listed* next_of(const Vec* list, StringTable* table, size_t i) noexcept nogil:
    """Element `i`; the cell of a later one is fetched while its name is written."""
    cdef const Listed* rows = <const Listed*>list.data
    if i + AHEAD < list.count:
        prefetch(&table.cells[rows[i + AHEAD].tag & table.mask])
        prefetch(rows[i + AHEAD].text)
    return rows + i


cdef inline uint32_t written(Merge* m, StringTable* table, const Listed* row) noexcept nogil:
    cdef int64_t at
    if row.text == NULL:
        return 0
    at = strings_enter(table, row.text, row.size, row.tag)
    if at < 0:
        m.failed = True
    return <uint32_t>at


cdef inline uint32_t global_name(Merge* m, int32_t entity) noexcept nogil:
    cdef uint32_t size
    cdef const uint8_t* text = entity_name(m, entity, &size)
    cdef int64_t at = strings_intern(&m.str, text, size)
    if at < 0:
        m.failed = True
    return <uint32_t>at
