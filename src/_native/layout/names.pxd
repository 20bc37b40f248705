# String tables of the output: names of mercury sections, and tables without what nothing uses.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset, strlen

from base.nameindex cimport StringTable, scratch_strings, strings_intern
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_room
from base.texts cimport MERC_PREFIX
from base.threads cimport run_each
from base.vector cimport Vec, vec_extend
from layout.plan cimport Plan
from rownumbers cimport BLOCK_INDIRECT, BLOCK_TAKEN
from sectionkinds cimport IS_LITERALS, KIND
from tables.kinds cimport is_plain, is_renamed
from tables.rows cimport PART_TAIL, OutRow, OutSymbolRow


cdef inline const OutRow* naming_section(const OutRow* row, const OutRow* plain) noexcept nogil:
    """The section that gives another its name: what relocations patch."""
    return &row[plain.target] if plain.target >= 0 else plain


cdef enum:
    SOME_NAMES = 1024           # sections whose names a thread writes in a row
    NAME_AS_BYTES = 128         # moved in the time that it takes to find one


# The tables with which threads write the names of mercury sections. They first measure each name,
# and then put all in their places.
ctypedef struct MercuryNames:
    Plan* plan
    const OutRow* rows
    const char* head            # .shstrtab as merge wrote it
    const char* strings         # .strtab, as well
    uint8_t* names              # where .shstrtab is written
    uint32_t* size              # by place in the order of the file: of the name, NUL included, or 0


cdef inline const char* mercury_name(const MercuryNames* n, const OutRow* r) noexcept nogil:
    """The part of a mercury section's name after `.nv.merc` or `.nv.capmerc`."""
    if KIND[r.kind].exact:
        return KIND[r.kind].name + MERC_PREFIX
    if is_renamed(naming_section(n.rows, &n.rows[r.twin])):
        return n.strings + n.rows[r.twin].symbol_name   # the first name, which .strtab keeps
    return n.head + n.rows[r.twin].name


cdef inline void measure_names(void* context, size_t run) noexcept nogil:
    cdef const MercuryNames* n = <const MercuryNames*>context
    cdef size_t i, first = run * SOME_NAMES
    cdef const OutRow* r
    for i in range(first, min(first + SOME_NAMES, n.plan.count)):
        r = &n.rows[n.plan.placed.section_order[i]]
        n.size[i] = 0
        if KIND[r.kind].mercury:
            n.size[i] = <uint32_t>(strlen(KIND[r.kind].merc) + strlen(mercury_name(n, r)) + 1)


cdef inline void copy_names(void* context, size_t run) noexcept nogil:
    cdef const MercuryNames* n = <const MercuryNames*>context
    cdef size_t i, prefix, first = run * SOME_NAMES
    cdef const OutRow* r
    cdef uint8_t* place
    cdef int32_t out
    for i in range(first, min(first + SOME_NAMES, n.plan.count)):
        if not n.size[i]:
            continue
        out = n.plan.placed.section_order[i]
        r = &n.rows[out]
        place = n.names + n.plan.place[out].name
        prefix = strlen(KIND[r.kind].merc)
        memcpy(place, KIND[r.kind].merc, prefix)
        memcpy(place + prefix, mercury_name(n, r), n.size[i] - prefix)


cdef inline bint name_mercury_sections(Plan* plan, Vec* names, const OutRow* rows, const char* head,
                                       size_t size, const char* strings) noexcept nogil:
    """.shstrtab ends with the names of the mercury sections, each written once more.

    `strings` is .strtab as merge wrote it, `rows` have its offsets: `lean_names` writes both anew.
    """
    cdef Scratch scratch
    cdef MercuryNames n
    n.plan = plan
    n.rows = rows
    n.head = head
    n.strings = strings
    scratch_init(&scratch)
    n.size = <uint32_t*>scratch_room(&scratch, plan.count, sizeof(uint32_t))
    if not scratch.failed:
        scratch.failed = not append_mercury_names(&n, names, size)
    cdef bint done = not scratch.failed
    scratch_free(&scratch)
    return done


cdef inline bint append_mercury_names(MercuryNames* n, Vec* names, size_t size) noexcept nogil:
    """Append the names to the first `size` bytes of .shstrtab; False without memory."""
    cdef Plan* plan = n.plan
    cdef size_t runs = plan.count // SOME_NAMES + 1, all_size = size, i
    run_each(measure_names, n, runs, plan.count * NAME_AS_BYTES)
    for i in range(plan.count):
        if n.size[i]:
            plan.place[plan.placed.section_order[i]].name = <uint32_t>all_size
            all_size += n.size[i]
    n.names = <uint8_t*>vec_extend(names, all_size)
    if n.names == NULL:
        return False
    memcpy(n.names, n.head, size)
    run_each(copy_names, n, runs, plan.count * NAME_AS_BYTES)
    return True


cdef inline bint keep_used_names(Plan* plan, Vec* names) noexcept nogil:
    """Only the names of sections that there are, in their order, each once; zeros in the gap."""
    cdef StringTable table
    cdef Scratch scratch
    cdef Vec all_names = names[0]
    cdef uint8_t* tail
    cdef size_t i
    cdef int64_t offset = 0
    cdef const char* text
    scratch_init(&scratch)
    scratch_strings(&scratch, &table)
    for i in range(plan.count):
        text = <const char*>all_names.data + plan.place[plan.placed.section_order[i]].name
        if not scratch.failed:
            offset = strings_intern(&table, <const uint8_t*>text, <uint32_t>strlen(text))
            scratch.failed = offset < 0
        plan.place[plan.placed.section_order[i]].name = <uint32_t>offset
    if not scratch.failed:
        names[0] = table.text           # the caller's from now on, as the old ones are ours
        table.text = all_names
    tail = NULL if scratch.failed else <uint8_t*>vec_extend(names, plan.gap)
    if tail != NULL:
        memset(tail, 0, plan.gap)
    scratch_free(&scratch)
    return tail != NULL


cdef inline int64_t intern_again(StringTable* table, const char* strings,
                                 uint32_t offset) noexcept nogil:
    """The offset in the table of the string at an offset of `strings`; -1 without memory."""
    cdef const char* text = strings + offset
    return strings_intern(table, <const uint8_t*>text, <uint32_t>strlen(text))


cdef inline bint write_lean_names(StringTable* table, OutRow* outs, OutSymbolRow* symbols,
                                  const int32_t* order, size_t count,
                                  const char* strings) noexcept nogil:
    """Write the names of symbols in order, then of .nv.merc.symtab; False without memory."""
    cdef size_t i
    cdef int64_t offset
    cdef OutSymbolRow* symbol
    cdef OutRow* row
    for i in range(count):
        symbol = &symbols[order[i]]
        if symbol.section >= 0 and is_plain(outs[symbol.section].kind, IS_LITERALS):
            # The section has a final name, its symbol the first one.
            symbol.name = outs[symbol.section].symbol_name
        offset = intern_again(table, strings, symbol.name)
        if offset < 0:
            return False
        symbol.name = <uint32_t>offset
    # Then the names that .nv.merc.symtab alone has.
    for i in range(count):
        symbol = &symbols[order[i]]
        if symbol.section < 0 or symbol.part == PART_TAIL:
            continue
        row = &outs[symbol.section]
        if is_renamed(row):
            offset = intern_again(table, strings, row.symbol_name)
            if offset < 0:
                return False
            row.symbol_name = <uint32_t>offset
    return True


cdef inline bint renew_prototypes(StringTable* table, const char* strings, uint32_t* pair,
                                  size_t count, bint all_rows) noexcept nogil:
    """Strings that rows of the call graph name: those of blocks -2 and -3, or of `all_rows`."""
    cdef size_t i
    cdef int64_t offset
    cdef int32_t block = 0
    for i in range(count):
        if not all_rows and pair[2 * i] == 0:
            block = <int32_t>pair[2 * i + 1]
        elif all_rows or block == BLOCK_TAKEN or block == BLOCK_INDIRECT:
            offset = intern_again(table, strings, pair[2 * i + 1])
            if offset < 0:
                return False
            pair[2 * i + 1] = <uint32_t>offset
    return True
