# Names: walks over the section list and over the lists of symbols.
#
# A walk stands after the removal of dead code, which leaves no names, and before that of sections
# which turned out empty, which do (docs/order.md). Each table keeps each string once.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport strlen

from base.nameindex cimport (
    StringTable, hash_name, prefetch, strings_enter, strings_expect, strings_intern,
)
from base.threads cimport claim, release_threads, run_parts
from base.vector cimport Vec
from merge.state cimport INSTANCE, ListEntry, Merge, entity_name, intern_empty_string, out_row
from tables.rows cimport PART_GLOBAL, OutSymbolRow


cdef enum:
    AHEAD = 8                   # names looked for while the tables are fetched
    NAME_COST = 1 << 10         # moved in the time that writing a name takes


cdef inline void write_names(Merge* merge) noexcept nogil:
    """Fill both string tables in parallel, and set the name offsets of sections and symbols."""
    cdef size_t helpers = claim(merge.work.section_list.count * NAME_COST, 2, 1)
    if helpers:
        run_parts(write_table, merge, 2)
    else:
        write_table(merge, 0)
        write_table(merge, 1)
    release_threads(helpers)


cdef inline void write_table(void* context, size_t table) noexcept nogil:
    if table:
        name_sections(<Merge*>context)
    else:
        name_symbols(<Merge*>context)


cdef inline void name_sections(Merge* merge) noexcept nogil:
    """Write the names of sections to .shstrtab, and set their offsets."""
    cdef size_t i
    cdef const ListEntry* row
    cdef int64_t offset
    if not expect_names(&merge.work.section_list, &merge.columns.shstr, 0):
        merge.failed = True
        return
    for i in range(merge.work.section_list.count):
        row = fetch_entry(&merge.work.section_list, &merge.columns.shstr, i)
        offset = enter_name(merge, &merge.columns.shstr, row)
        if row.out >= 0:
            out_row(merge, row.out).name = <uint32_t>offset


cdef inline bint expect_names(const Vec* list, StringTable* table, size_t more) noexcept nogil:
    """Reserve room for the names of a list and `more` cells; False without memory."""
    cdef const ListEntry* rows = <const ListEntry*>list.data
    cdef size_t i, size = 0
    for i in range(list.count):
        size += <size_t>rows[i].size + 1
    return strings_expect(table, size, list.count + more)


cdef inline void name_symbols(Merge* merge) noexcept nogil:
    """Write the names of symbols to .strtab, and set their offsets."""
    cdef size_t i
    cdef const ListEntry* row
    cdef OutSymbolRow* symbol
    cdef uint32_t[2 * AHEAD] tag
    cdef int64_t offset
    if not expect_names(&merge.work.local_list, &merge.columns.str,
                        merge.columns.out_symbols.count):
        merge.failed = True
        return
    for i in range(merge.work.local_list.count):
        row = fetch_entry(&merge.work.local_list, &merge.columns.str, i)
        offset = (enter_name(merge, &merge.columns.str, row) if row.size or row.symbol < 0
                  else intern_empty_string(merge))
        if row.out >= 0:
            out_row(merge, row.out).symbol_name = <uint32_t>offset
        if row.symbol >= 0:
            (<OutSymbolRow*>merge.columns.out_symbols.data)[row.symbol].name = <uint32_t>offset
    for i in range(min(<size_t>AHEAD, merge.columns.out_symbols.count)):
        find_global(merge, i, tag)
    for i in range(merge.columns.out_symbols.count):
        if i + AHEAD < merge.columns.out_symbols.count:
            find_global(merge, i + AHEAD, tag)
        symbol = <OutSymbolRow*>merge.columns.out_symbols.data + i
        if symbol.section >= 0:
            symbol.name = out_row(merge, symbol.section).symbol_name
        elif symbol.part == PART_GLOBAL and symbol.instance >= 0:
            offset = strings_intern(&merge.columns.str, <const uint8_t*>INSTANCE,
                                    <uint32_t>strlen(INSTANCE))
            if offset < 0:
                merge.failed = True
            symbol.name = <uint32_t>offset
        elif symbol.part == PART_GLOBAL:
            symbol.name = enter_global_name(merge, symbol.entity, tag[i % (2 * AHEAD)])


cdef inline const ListEntry* fetch_entry(const Vec* list, StringTable* table,
                                         size_t i) noexcept nogil:
    """Element `i`; a later one is hashed and its cell fetched while its name is written."""
    cdef ListEntry* rows = <ListEntry*>list.data
    cdef size_t ahead
    for ahead in range(0 if i == 0 else i + AHEAD, min(i + AHEAD + 1, list.count)):
        if rows[ahead].text != NULL:
            rows[ahead].tag = <uint32_t>hash_name(rows[ahead].text, rows[ahead].size)
            prefetch(&table.cells[rows[ahead].tag & table.mask])
    if i + 2 * AHEAD < list.count:
        prefetch(rows[i + 2 * AHEAD].text)
    return rows + i


cdef inline uint32_t enter_name(Merge* merge, StringTable* table,
                                const ListEntry* row) noexcept nogil:
    """The offset of an entry's name, added if it is new."""
    cdef int64_t offset
    if row.text == NULL:
        return 0
    offset = strings_enter(table, row.text, row.size, row.tag)
    if offset < 0:
        merge.failed = True
    return <uint32_t>offset


cdef inline void find_global(Merge* merge, size_t i, uint32_t* tag) noexcept nogil:
    """Hash the name of a global symbol and fetch its cell, for `enter_global_name`."""
    cdef const OutSymbolRow* symbol = <const OutSymbolRow*>merge.columns.out_symbols.data + i
    cdef uint32_t size
    cdef const uint8_t* text
    if symbol.section < 0 and symbol.part == PART_GLOBAL and symbol.instance < 0:
        text = entity_name(merge, symbol.entity, &size)
        tag[i % (2 * AHEAD)] = <uint32_t>hash_name(text, size)
        prefetch(&merge.columns.str.cells[tag[i % (2 * AHEAD)] & merge.columns.str.mask])


cdef inline uint32_t enter_global_name(Merge* merge, int32_t entity, uint32_t tag) noexcept nogil:
    """The offset of an entity's name, added if it is new."""
    cdef uint32_t size
    cdef const uint8_t* text = entity_name(merge, entity, &size)
    cdef int64_t offset = strings_enter(&merge.columns.str, text, size, tag)
    if offset < 0:
        merge.failed = True
    return <uint32_t>offset
