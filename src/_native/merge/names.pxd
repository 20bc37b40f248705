# Writing names into .shstrtab and .strtab: one walk over the section list, and one over the list of
# local symbols and then the global ones.
#
# Both come after dead code was removed, so it has no names in the tables, except for reserved ones
# (`reserve_name`). Both come before sections without contents are removed, so these have names
# (docs/order.md). They write each string once, except for a second empty string in .strtab.
#
# Most of the time is spent waiting for cells of the hash tables. So each name is hashed, and its
# cell fetched into the cache, some names before it is written (`fetch_entry`). One thread writes
# both tables: a second would have to fetch the list and the rows from the cache of the first.

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport strlen

from base.nameindex cimport (
    StringTable, hash_name, strings_append, strings_expect, strings_intern, strings_intern_hashed,
)
from base.prefetch cimport AHEAD, prefetch
from base.vector cimport Vec
from merge.newrows cimport INSTANCE
from merge.state cimport ListEntry, Merge, entity_name, out_row
from tables.rows cimport PART_GLOBAL, EntityNumber, OutSymbolCounter, OutSymbolRow


cdef inline void name_sections(Merge* merge) noexcept nogil:
    """Write the names of sections to .shstrtab, and set their offsets."""
    cdef size_t i
    cdef const ListEntry* entry
    cdef uint32_t offset
    if not reserve_names(&merge.work.section_list, &merge.columns.shstr, 0):
        merge.failed = True
        return
    for i in range(merge.work.section_list.count):
        entry = fetch_entry(&merge.work.section_list, &merge.columns.shstr, i)
        offset = enter_name(merge, &merge.columns.shstr, entry)
        if entry.out >= 0:
            out_row(merge, entry.out).name = offset


cdef inline bint reserve_names(const Vec* list, StringTable* table, size_t more) noexcept nogil:
    """Make room in a table for the names of a list, and cells for `more`; False without memory.

    The bytes of these `more` names get no room yet.
    """
    cdef const ListEntry* entries = <const ListEntry*>list.data
    cdef size_t i, size = 0
    for i in range(list.count):
        size += <size_t>entries[i].size + 1
    return strings_expect(table, size, list.count + more)


cdef inline void name_symbols(Merge* merge) noexcept nogil:
    """Write the names of symbols to .strtab, and set their offsets."""
    cdef size_t i
    cdef const ListEntry* entry
    cdef OutSymbolRow* symbol
    # A ring: element i % (2 * AHEAD) is the hash of the name of the global OutSymbolRow i.
    cdef uint32_t[2 * AHEAD] tags
    cdef int64_t offset
    if not reserve_names(&merge.work.local_list, &merge.columns.str,
                         merge.columns.out_symbols.count):
        merge.failed = True
        return
    for i in range(merge.work.local_list.count):
        entry = fetch_entry(&merge.work.local_list, &merge.columns.str, i)
        offset = (enter_name(merge, &merge.columns.str, entry) if entry.size
                  or entry.symbol < 0 else intern_empty_string(merge))
        if entry.out >= 0:
            out_row(merge, entry.out).symbol_name = <uint32_t>offset
        if entry.symbol >= 0:
            (<OutSymbolRow*>merge.columns.out_symbols.data)[entry.symbol].name = <uint32_t>offset
    for i in range(min(<size_t>AHEAD, merge.columns.out_symbols.count)):
        prefetch_global_name(merge, <OutSymbolCounter>i, tags)
    for i in range(merge.columns.out_symbols.count):
        if i + AHEAD < merge.columns.out_symbols.count:
            prefetch_global_name(merge, i + AHEAD, tags)
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
            symbol.name = enter_global_name(merge, symbol.entity, tags[i % (2 * AHEAD)])


cdef inline ListEntry* fetch_entry(const Vec* list, StringTable* table,
                                   size_t number) noexcept nogil:
    """Return element `number` of a list, and hash the names up to AHEAD elements later.

    It also fetches the cells of these names in `table` into the cache. Each name is hashed once:
    the calls must be in order, from 0 on.
    """
    cdef ListEntry* entries = <ListEntry*>list.data
    cdef size_t ahead
    for ahead in range(0 if number == 0 else number + AHEAD, min(number + AHEAD + 1, list.count)):
        if entries[ahead].text != NULL:
            entries[ahead].tag = <uint32_t>hash_name(entries[ahead].text, entries[ahead].size)
            prefetch(&table.cells[entries[ahead].tag & table.mask])
    if number + 2 * AHEAD < list.count:
        prefetch(entries[number + 2 * AHEAD].text)
    return entries + number


cdef inline uint32_t intern_empty_string(Merge* merge) noexcept nogil:
    """Return the .strtab offset of the empty name of prototypes and nameless symbols.

    It is a second empty string, beside the one at offset 0, and is added at the first call.
    """
    if merge.empty_string_offset == 0:
        merge.empty_string_offset = <uint32_t>merge.columns.str.text.count
        if strings_append(&merge.columns.str, <const uint8_t*>b"", 0) < 0:
            merge.failed = True
    return merge.empty_string_offset


cdef inline uint32_t enter_name(Merge* merge, StringTable* table,
                                const ListEntry* entry) noexcept nogil:
    """Return the offset of an entry's name in `table`, added if it is new; 0 without a name."""
    cdef int64_t offset
    if entry.text == NULL:
        return 0
    offset = strings_intern_hashed(table, entry.text, entry.size, entry.tag)
    if offset < 0:
        merge.failed = True
    return <uint32_t>offset


cdef inline void prefetch_global_name(Merge* merge, OutSymbolCounter i,
                                      uint32_t* tags) noexcept nogil:
    """Hash the name of OutSymbolRow `i`, if it is that of a global entity, and fetch its cell.

    The hash goes to the ring `tags`, for `enter_global_name`. Other symbols are skipped.
    """
    cdef const OutSymbolRow* symbol = <const OutSymbolRow*>merge.columns.out_symbols.data + i
    cdef uint32_t size
    cdef const uint8_t* text
    if symbol.section < 0 and symbol.part == PART_GLOBAL and symbol.instance < 0:
        text = entity_name(merge, symbol.entity, &size)
        tags[i % (2 * AHEAD)] = <uint32_t>hash_name(text, size)
        prefetch(&merge.columns.str.cells[tags[i % (2 * AHEAD)] & merge.columns.str.mask])


cdef inline uint32_t enter_global_name(Merge* merge, EntityNumber entity,
                                       uint32_t tag) noexcept nogil:
    """Return the .strtab offset of an entity's name, added if new; `tag` is the name's hash."""
    cdef uint32_t size
    cdef const uint8_t* text = entity_name(merge, entity, &size)
    cdef int64_t offset = strings_intern_hashed(&merge.columns.str, text, size, tag)
    if offset < 0:
        merge.failed = True
    return <uint32_t>offset
