# String tables of the output. The names of mercury sections are added to .shstrtab. In lean files
# (`has_lean_names` in layout/order.pxd), .shstrtab and .strtab are written without unused names.

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
from tables.rows cimport PART_TAIL, OutNumber, OutRow, OutSymbolNumber, OutSymbolRow


cdef inline const OutRow* naming_section(const OutRow* outs, const OutRow* plain) noexcept nogil:
    """Return the section that a plain section is named after.

    For a relocation section that is the one it patches, for any other the section itself.
    """
    return &outs[plain.target] if plain.target >= 0 else plain


cdef enum:
    RUN_NAMES = 1024            # sections of a run, whose names one thread writes
    NAME_COST = 128             # bytes that a copy moves in the time that finding a name takes
    PAIR = 8                    # bytes of a row of .nv.callgraph and of .nv.prototype


# The tables with which threads write the names of mercury sections, in runs of RUN_NAMES sections.
# The threads first measure each name, and then write all to their places.
ctypedef struct MercuryNames:
    Plan* plan
    const OutRow* outs          # as merge left them: names are offsets in these two string tables
    const char* shstrtab        # .shstrtab as merge wrote it
    const char* strtab          # .strtab as merge wrote it
    uint8_t* new_shstrtab       # the .shstrtab of the output, which is written
    # By place in the file's order: bytes of a mercury section's name with its NUL; else 0.
    uint32_t* size


cdef inline const char* mercury_name(const MercuryNames* names, const OutRow* out) noexcept nogil:
    """Return the part of a mercury section's name after `.nv.merc` or `.nv.capmerc`.

    It is the first name of the plain section, unless sections of this kind have one fixed name.
    """
    if KIND[out.kind].exact:
        return KIND[out.kind].name + MERC_PREFIX
    if is_renamed(naming_section(names.outs, &names.outs[out.twin])):
        return names.strtab + names.outs[out.twin].symbol_name  # the name before the final one
    return names.shstrtab + names.outs[out.twin].name


cdef inline void measure_names(void* context, size_t run) noexcept nogil:
    """Fill `size` of the MercuryNames `context` for the sections of run number `run`."""
    cdef const MercuryNames* names = <const MercuryNames*>context
    cdef size_t i, first = run * RUN_NAMES
    cdef const OutRow* out
    for i in range(first, min(first + RUN_NAMES, names.plan.count)):
        out = &names.outs[names.plan.placed.section_order[i]]
        names.size[i] = 0
        if KIND[out.kind].mercury:
            names.size[i] = <uint32_t>(strlen(KIND[out.kind].merc)
                                       + strlen(mercury_name(names, out)) + 1)


cdef inline void copy_names(void* context, size_t run) noexcept nogil:
    """Write the names of mercury sections of run number `run` to their places in .shstrtab."""
    cdef const MercuryNames* names = <const MercuryNames*>context
    cdef size_t i, prefix_size, first = run * RUN_NAMES
    cdef const OutRow* row
    cdef uint8_t* place
    cdef OutNumber out
    for i in range(first, min(first + RUN_NAMES, names.plan.count)):
        if not names.size[i]:
            continue
        out = names.plan.placed.section_order[i]
        row = &names.outs[out]
        place = names.new_shstrtab + names.plan.place[out].name
        prefix_size = strlen(KIND[row.kind].merc)
        memcpy(place, KIND[row.kind].merc, prefix_size)
        memcpy(place + prefix_size, mercury_name(names, row), names.size[i] - prefix_size)


cdef inline bint name_mercury_sections(Plan* plan, Vec* new_shstrtab, const OutRow* outs,
                                       const char* shstrtab, size_t shstrtab_size,
                                       const char* strtab) noexcept nogil:
    """Write .shstrtab of the output: merge's, then a name for each mercury section.

    `outs`, `shstrtab` and `strtab` are merge's; `rebuild_strtab` may have written the output's own
    `outs` and .strtab anew. False without memory.
    """
    cdef Scratch scratch
    cdef MercuryNames names
    names.plan = plan
    names.outs = outs
    names.shstrtab = shstrtab
    names.strtab = strtab
    scratch_init(&scratch)
    names.size = <uint32_t*>scratch_room(&scratch, plan.count, sizeof(uint32_t))
    if not scratch.failed:
        scratch.failed = not append_mercury_names(&names, new_shstrtab, shstrtab_size)
    cdef bint done = not scratch.failed
    scratch_free(&scratch)
    return done


cdef inline bint append_mercury_names(MercuryNames* names, Vec* new_shstrtab,
                                      size_t shstrtab_size) noexcept nogil:
    """Write merge's .shstrtab, then the names of mercury sections; set `name` of their places.

    False without memory.
    """
    cdef Plan* plan = names.plan
    cdef size_t runs = plan.count // RUN_NAMES + 1, new_size = shstrtab_size, i
    run_each(measure_names, names, runs, plan.count * NAME_COST)
    for i in range(plan.count):
        if names.size[i]:
            plan.place[plan.placed.section_order[i]].name = <uint32_t>new_size
            new_size += names.size[i]
    names.new_shstrtab = <uint8_t*>vec_extend(new_shstrtab, new_size)
    if names.new_shstrtab == NULL:
        return False
    memcpy(names.new_shstrtab, names.shstrtab, shstrtab_size)
    run_each(copy_names, names, runs, plan.count * NAME_COST)
    return True


cdef inline bint keep_used_names(Plan* plan, Vec* names) noexcept nogil:
    """Write .shstrtab anew with only the names of the output's sections, each once, in their order.

    Zeros follow for the plan's `shstrtab_gap`. False without memory.
    """
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
        # The caller gets the new bytes, and `scratch` frees the old ones.
        names[0] = table.text
        table.text = all_names
    tail = NULL if scratch.failed else <uint8_t*>vec_extend(names, plan.shstrtab_gap)
    if tail != NULL:
        memset(tail, 0, plan.shstrtab_gap)
    scratch_free(&scratch)
    return tail != NULL


cdef inline int64_t intern_again(StringTable* table, const char* old_strtab,
                                 uint32_t offset) noexcept nogil:
    """Intern the string at an offset of the old .strtab; return its new offset, -1 without memory.
    """
    cdef const char* text = old_strtab + offset
    return strings_intern(table, <const uint8_t*>text, <uint32_t>strlen(text))


cdef inline bint write_lean_names(StringTable* table, OutRow* outs, OutSymbolRow* symbols,
                                  const OutSymbolNumber* order, size_t count,
                                  const char* old_strtab) noexcept nogil:
    """Write the names of .symtab, in order, then those that .nv.merc.symtab alone has.

    `order` has `count` OutSymbolRows. Symbols get the new offsets, and so do renamed sections, for
    their first names in .nv.merc.symtab. False without memory.
    """
    cdef size_t i
    cdef int64_t offset
    cdef OutSymbolRow* symbol
    cdef OutRow* row
    for i in range(count):
        symbol = &symbols[order[i]]
        if symbol.section >= 0 and is_plain(outs[symbol.section].kind, IS_LITERALS):
            # The section header has the final name, but the section symbol keeps the first name.
            symbol.name = outs[symbol.section].symbol_name
        offset = intern_again(table, old_strtab, symbol.name)
        if offset < 0:
            return False
        symbol.name = <uint32_t>offset
    for i in range(count):
        symbol = &symbols[order[i]]
        if symbol.section < 0 or symbol.part == PART_TAIL:
            continue
        row = &outs[symbol.section]
        if is_renamed(row):
            offset = intern_again(table, old_strtab, row.symbol_name)
            if offset < 0:
                return False
            row.symbol_name = <uint32_t>offset
    return True


cdef inline bint renew_prototypes(StringTable* table, const char* old_strtab, uint32_t* pairs,
                                  size_t count, bint all_rows) noexcept nogil:
    """Intern the strings that `count` rows name, and write their new offsets to the rows.

    The rows are those of .nv.prototype (`all_rows`) or .nv.callgraph, as pairs. In .nv.prototype
    all are (symbol, offset of a string). In .nv.callgraph only the rows of blocks -2 and -3 are; a
    block begins with (0, its number), and rows of others name two symbols. False without memory.
    """
    cdef size_t i
    cdef int64_t offset
    cdef int32_t block = 0
    for i in range(count):
        if not all_rows and pairs[2 * i] == 0:
            block = <int32_t>pairs[2 * i + 1]
        elif all_rows or block == BLOCK_TAKEN or block == BLOCK_INDIRECT:
            offset = intern_again(table, old_strtab, pairs[2 * i + 1])
            if offset < 0:
                return False
            pairs[2 * i + 1] = <uint32_t>offset
    return True
