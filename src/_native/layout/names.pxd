# String tables of the output: names of mercury sections, and tables without what nothing uses.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset, strlen

from sectionkinds cimport IS_LITERALS, KIND
from tables.kinds cimport is_plain, is_renamed
from base.nameindex cimport StringTable, scratch_strings, strings_intern
from base.scratch cimport Scratch, scratch_free, scratch_init
from layout.plan cimport Plan
from tables.rows cimport BLOCK_INDIRECT, BLOCK_TAKEN, PART_TAIL, OutRow, OutSymbolRow
from base.vector cimport Vec, vec_append, vec_extend


cdef inline const OutRow* named_by(const OutRow* row, const OutRow* plain) noexcept nogil:
    """The section that gives another its name: what relocations patch."""
    return &row[plain.target] if plain.target >= 0 else plain


cdef inline bint mercury_names(Plan* p, Vec* names, const OutRow* row, const char* head,
                               size_t size, const char* strings) noexcept nogil:
    """.shstrtab ends with the names of the mercury sections, each written once more.

    `strings` is .strtab as merge wrote it, `row` has its offsets: `lean_names` writes both anew.
    """
    cdef const int32_t* order = p.placed.section_order
    cdef size_t i
    cdef const OutRow* r
    cdef const char* prefix
    cdef const char* name
    if not vec_append(names, head, size):
        return False
    for i in range(p.count):
        r = &row[order[i]]
        if not KIND[r.kind].mercury:
            continue
        p.place[order[i]].name = <uint32_t>names.count
        prefix = KIND[r.kind].merc
        if KIND[r.kind].exact:
            name = KIND[r.kind].name + 8        # after .nv.merc
        elif is_renamed(named_by(row, &row[r.twin])):
            # The first name, which .strtab keeps.
            name = strings + row[r.twin].symbol_name
        else:
            # The plain twin's name stands in the part that is already there.
            name = <const char*>names.data + row[r.twin].name
        if not push_text(names, prefix, strlen(prefix), name, strlen(name) + 1):
            return False
    return True


cdef inline bint push_text(Vec* names, const char* prefix, size_t prefix_size, const char* text,
                    size_t size) noexcept nogil:
    cdef size_t inside = 0
    cdef bint own = names.data <= <const uint8_t*>text < names.data + names.count
    cdef uint8_t* place
    if own:
        inside = <size_t>(<const uint8_t*>text - names.data)
    place = <uint8_t*>vec_extend(names, prefix_size + size)
    if place == NULL:
        return False
    memcpy(place, prefix, prefix_size)
    memcpy(place + prefix_size, names.data + inside if own else <uint8_t*>text, size)
    return True


cdef inline bint used_names(Plan* p, Vec* names) noexcept nogil:
    """Only the names of sections that there are, in their order, each once; zeros in the gap."""
    cdef StringTable table
    cdef Scratch scratch
    cdef Vec all_names = names[0]
    cdef uint8_t* tail
    cdef size_t i
    cdef int64_t at = 0
    cdef const char* text
    scratch_init(&scratch)
    scratch_strings(&scratch, &table)
    for i in range(p.count):
        text = <const char*>all_names.data + p.place[p.placed.section_order[i]].name
        if not scratch.failed:
            at = strings_intern(&table, <const uint8_t*>text, <uint32_t>strlen(text))
            scratch.failed = at < 0
        p.place[p.placed.section_order[i]].name = <uint32_t>at
    if not scratch.failed:
        names[0] = table.text           # the caller's from now on, as the old ones are ours
        table.text = all_names
    tail = NULL if scratch.failed else <uint8_t*>vec_extend(names, p.gap)
    if tail != NULL:
        memset(tail, 0, p.gap)
    scratch_free(&scratch)
    return tail != NULL


cdef inline int64_t renewed(StringTable* table, const char* strings, uint32_t at) noexcept nogil:
    """The offset in the table of the string at an offset of `strings`; -1 without memory."""
    cdef const char* text = strings + at
    return strings_intern(table, <const uint8_t*>text, <uint32_t>strlen(text))


cdef inline bint write_lean_names(StringTable* table, OutRow* outs, OutSymbolRow* symbols,
                                  const int32_t* order, size_t count,
                                  const char* strings) noexcept nogil:
    cdef size_t i
    cdef int64_t at
    cdef OutSymbolRow* symbol
    cdef OutRow* row
    for i in range(count):
        symbol = &symbols[order[i]]
        if symbol.section >= 0 and is_plain(outs[symbol.section].kind, IS_LITERALS):
            # The section has a final name, its symbol the first one.
            symbol.name = outs[symbol.section].symbol_name
        at = renewed(table, strings, symbol.name)
        if at < 0:
            return False
        symbol.name = <uint32_t>at
    # Then the names that .nv.merc.symtab alone has.
    for i in range(count):
        symbol = &symbols[order[i]]
        if symbol.section < 0 or symbol.part == PART_TAIL:
            continue
        row = &outs[symbol.section]
        if is_renamed(row):
            at = renewed(table, strings, row.symbol_name)
            if at < 0:
                return False
            row.symbol_name = <uint32_t>at
    return True


cdef inline bint renew_prototypes(StringTable* table, const char* strings, uint32_t* pair,
                                  size_t count, bint all_rows) noexcept nogil:
    """Strings that rows of the call graph name: those of blocks -2 and -3, or of `all_rows`."""
    cdef size_t i
    cdef int64_t at
    cdef int32_t block = 0
    for i in range(count):
        if not all_rows and pair[2 * i] == 0:
            block = <int32_t>pair[2 * i + 1]
        elif all_rows or block == BLOCK_TAKEN or block == BLOCK_INDIRECT:
            at = renewed(table, strings, pair[2 * i + 1])
            if at < 0:
                return False
            pair[2 * i + 1] = <uint32_t>at
    return True
