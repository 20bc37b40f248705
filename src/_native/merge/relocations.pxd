# The relocation sections of one input, entry by entry.
#
# `sort_relocations` goes through a file's relocation sections. From sm_100 on, code and debug data
# exist twice, and so do their relocations: `.nv.merc.rela.S` is read right after `.rela.S`,
# wherever it stands in the input, and those without a plain section come last. For each section:
#
# 1. `sort_relocation_section` finds the output section that it patches. Sections of dead code are
#    only numbered (`number_dead_relocations`).
# 2. `decide_entries` asks merge/decide.pxd about each entry, and `decide_entry` does what it says.
#    `list_entry` finds the list of the entry's form, which its first entry creates, and counts the
#    entry.
# 3. `add_emitted`, `add_fixup` and `add_rebuild` (merge/entries.pxd) add the row: an entry that the
#    output has, one that the link resolves, or one of a debug section that is written anew.
#
# `find_referenced` comes before all this, for every file: it marks what code refers to.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from base.elf64 cimport Rel, Rela
from base.nameindex cimport pool_join_text
from base.texts cimport MERC_PREFIX
from base.threads cimport set_mark
from elfnumbers cimport SHT_REL
from merge.decide cimport (
    CLEAR, DEAD, DROP, EMIT, NOT_SOUGHT, VANISHES, RelocEntry, RelocList, addend_of_winner,
    decide_action, find_mercury_section, is_cleaned, is_rebuilt,
)
from merge.entries cimport (
    add_emitted, add_fixup, add_rebuild, count_entry, find_or_create_mercury_relocations,
    find_or_create_relocations,
)
from merge.lostbytes cimport find_lost_bytes, is_removed_with_lost_bytes
from merge.sharedusers cimport NO_KERNEL, add_user, is_unrecorded
from merge.state cimport (
    DEAD_REL, DEAD_RELA, KEEP_SYMBOLS, Merge, code_of, create_pool_relocations, entity_name,
    find_plain_section, function_kept, function_read, is_folded, keep_name, list_dead, out_row,
)
from relocationtypes cimport R_CUDA_64
from rownumbers cimport (
    EF_ALIAS, EF_LIVE, E_FUNC, FIXUP_CLEAR, FIXUP_REL, LINK_KEEP_RELOCS, RESOLUTION_NONE,
    RESOLUTION_WON,
)
from sectionkinds cimport (
    IS_CAPSULE, IS_CODE, IS_DEBUG, IS_ENTRIES, IS_LITERALS, IS_VARIABLES, KIND, K_MERC_SYMTAB_SHNDX,
)
from tables.kinds cimport is_a, is_function, is_function_bank, is_merc, is_plain
from tables.rows cimport OF_EMPTY_STAYS, FileRow, OutRow, SectionRow


cdef inline void sort_relocations(Merge* merge, const FileRow* file) noexcept nogil:
    """Decide all entries of a file, those of a mercury twin after those of the plain section."""
    cdef uint32_t i, end = file.first_section + file.section_count
    cdef int32_t twin
    merge.first_mercury = file.first_section
    merge.merc_shndx = -1
    for i in range(file.first_section, end):
        if merge.objects.sections[i].kind == K_MERC_SYMTAB_SHNDX:
            merge.merc_shndx = <int32_t>i
    for i in range(file.first_section, end):
        if is_plain(merge.objects.sections[i].kind, IS_ENTRIES):
            sort_relocation_section(merge, file, <int32_t>i, False)
            twin = find_mercury_relocations(merge, file, <int32_t>i) if merge.has_finalizer else -1
            if twin >= 0:
                merge.work.keep_reasons[twin] = KEEP_SYMBOLS
                sort_relocation_section(merge, file, twin, True)
        if merge.failed:
            return
    for i in range(file.first_section, end):
        if is_merc(merge.objects.sections[i].kind, IS_ENTRIES) and not merge.work.keep_reasons[i]:
            sort_relocation_section(merge, file, <int32_t>i, True)
        if merge.failed:
            return


cdef inline int32_t find_mercury_relocations(Merge* merge, const FileRow* file,
                                             int32_t plain) noexcept nogil:
    """The input section `.nv.merc.rela.S` for `.rela.S`, or -1.

    Both kinds mostly come in one order: a search that begins with the first section not yet taken
    is short.
    """
    cdef const SectionRow* s = &merge.objects.sections[plain]
    cdef const SectionRow* t
    cdef uint32_t i, end = file.first_section + file.section_count
    while (merge.first_mercury < end
            and (merge.work.keep_reasons[merge.first_mercury]
                 or not is_merc(merge.objects.sections[merge.first_mercury].kind, IS_ENTRIES))):
        merge.first_mercury += 1
    for i in range(merge.first_mercury, end):
        t = &merge.objects.sections[i]
        if (is_merc(t.kind, IS_ENTRIES) and not merge.work.keep_reasons[i]
                and is_twin(merge, s.target, t.target)):
            return <int32_t>i
    return -1


cdef inline bint is_twin(Merge* merge, int32_t plain, int32_t mercury) noexcept nogil:
    """Whether input section `mercury` is the mercury form of input section `plain`."""
    cdef const SectionRow* s = &merge.objects.sections[plain]
    cdef const SectionRow* t = &merge.objects.sections[mercury]
    if not KIND[t.kind].mercury or KIND[s.kind].twin != t.kind:
        return False
    if is_a(s.kind, IS_CODE | IS_LITERALS):
        return merge.merged.section_function[plain] == merge.merged.section_function[mercury]
    if KIND[s.kind].first_bank:
        return s.bank == t.bank
    return (not is_a(s.kind, IS_DEBUG)
            or (t.name_size == s.name_size + MERC_PREFIX
                and memcmp(merge.objects.arena + t.name + MERC_PREFIX,
                           merge.objects.arena + s.name, s.name_size) == 0))


cdef inline void sort_relocation_section(Merge* merge, const FileRow* file, int32_t section,
                                         bint mercury) noexcept nogil:
    """Find the output section that one relocation section patches, and decide its entries."""
    cdef const SectionRow* s = &merge.objects.sections[section]
    cdef const SectionRow* target = &merge.objects.sections[s.target]
    cdef int32_t out, reloc, function = -1
    cdef bint replaced = False
    cdef RelocList relocs
    if is_folded(merge, s.target):
        return
    if is_function(target.kind):
        function = function_read(merge, s.target)
        if function < 0:
            return
        if not merge.merged.entities[function].flags & EF_LIVE:
            if mercury == merge.has_finalizer:
                number_dead_relocations(merge, s, function)
            return
        replaced = function_kept(merge, s.target) < 0
        out = code_of(merge, function)
    elif is_merc(target.kind, IS_VARIABLES):
        out = find_plain_section(merge, target)
    elif is_merc(target.kind, IS_DEBUG | IS_LITERALS):
        out = merge.columns.out_of[s.target]
        if out >= 0:
            out = out_row(merge, out).twin
    else:
        out = merge.columns.out_of[s.target]
        if is_function_bank(target.kind):
            function = merge.merged.section_function[s.target]
    if out < 0:
        if merge.work.own_pool[s.target] and merge.has_finalizer:
            create_pool_relocations(merge, function)
        if (merge.has_finalizer and merge.objects.mode & LINK_KEEP_RELOCS
                and is_plain(target.kind, IS_LITERALS)):
            keep_resolved_pool_name(merge, function)
        return
    if merge.has_finalizer and s.size == 0 and is_plain(target.kind, IS_CODE | IS_LITERALS):
        # Family C keeps a section that is empty already.
        reloc = find_or_create_relocations(merge, section, out, True)
        if reloc >= 0:
            out_row(merge, reloc).marks |= OF_EMPTY_STAYS
    relocs.file = file
    relocs.section = section
    relocs.target = target
    relocs.out = out
    relocs.function = function
    relocs.mercury = mercury
    relocs.of_replaced_code = replaced
    decide_entries(merge, &relocs)


cdef inline void number_dead_relocations(Merge* merge, const SectionRow* s,
                                         int32_t function) noexcept nogil:
    """Number the sections that entries of dead code make, by the rules for those of live code."""
    cdef uint64_t i
    if s.size == 0:
        return
    list_dead(merge, function, DEAD_REL if s.type == SHT_REL else DEAD_RELA)
    if s.type == SHT_REL:
        return
    for i in range(1, s.size // sizeof(Rela)):
        if (<const Rela*>(merge.objects.arena + s.offset) + i).r_addend == 0:
            list_dead(merge, function, DEAD_REL)
            return


cdef inline void keep_resolved_pool_name(Merge* merge, int32_t function) noexcept nogil:
    """--preserve-relocs names what would list a device function's pool, which is not a section."""
    cdef uint32_t size
    cdef const uint8_t* name
    cdef uint8_t* text
    if function < 0 or not merge.merged.entities[function].flags & EF_LIVE:
        return
    name = entity_name(merge, function, &size)
    text = pool_join_text(&merge.work.texts, b".nv.resolvedrela.nv.constant.optimizer.", name,
                          &size)
    keep_name(merge, text, size)


cdef inline void find_referenced(Merge* merge, const FileRow* file) noexcept nogil:
    """Mark the entities that the code of current function copies refers to, dead ones included.

    For live code also record the kernels that use them, if `users` are needed
    (merge/sharedusers.pxd).
    """
    cdef uint32_t i
    cdef uint64_t entsize, k
    cdef const SectionRow* s
    cdef const Rel* entry
    cdef int32_t e, function, user
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &merge.objects.sections[i]
        if (s.size == 0 or not is_plain(s.kind, IS_ENTRIES)
                or not is_a(merge.objects.sections[s.target].kind, IS_CODE)):
            continue
        merge.work.has_relocations[s.target] = True
        function = function_kept(merge, s.target)
        if function < 0:
            continue
        user = NO_KERNEL
        if merge.work.users != NULL and merge.merged.entities[function].flags & EF_LIVE:
            user = merge.work.reaching_kernel[function]
        entsize = sizeof(Rel) if s.type == SHT_REL else sizeof(Rela)
        for k in range(s.size // entsize):
            entry = <const Rel*>(merge.objects.arena + s.offset + k * entsize)
            e = merge.merged.symbol_entity[file.first_symbol + entry.r_sym]
            if e >= 0:
                set_mark(&merge.columns.referenced[e])    # files are gone through side by side
                if user != NO_KERNEL:
                    add_user(&merge.work.users[e], user)


cdef inline bint is_counted_for_two_forms(Merge* merge, const RelocList* relocs) noexcept nogil:
    """Whether entries of this section count for the rule of two forms (`count_entry`).

    On family C the entries of the mercury file count if it has any. Its `.debug_line` names
    `.debug_str`, which the plain one does not, and its tables of whole programs name functions
    whose offsets the plain ones contain already. Code has a count for each of its lists.
    """
    cdef bint both = is_a(relocs.target.kind, IS_DEBUG | IS_VARIABLES | IS_LITERALS)
    if relocs.mercury:
        return both
    return (not merge.has_finalizer or not both
            or find_mercury_relocations(merge, relocs.file, relocs.section) < 0)


cdef inline void decide_entries(Merge* merge, RelocList* relocs) noexcept nogil:
    """Decide each entry of one input relocation section."""
    cdef const SectionRow* s = &merge.objects.sections[relocs.section]
    cdef uint64_t entsize, i
    relocs.explicit = s.type != SHT_REL
    relocs.is_rebuilt = not relocs.mercury and is_rebuilt(merge, relocs.target)
    relocs.is_counted = is_counted_for_two_forms(merge, relocs)
    relocs.is_cleaned = is_cleaned(merge, relocs.out, relocs.explicit)
    relocs.reloc = -1
    relocs.twin = NOT_SOUGHT
    find_patched(merge, relocs)
    merge.work.lost_ranges.count = 0
    find_lost_bytes(merge, relocs.file, s.target, &merge.work.lost_ranges)
    entsize = sizeof(Rela) if relocs.explicit else sizeof(Rel)
    for i in range(s.size // entsize):
        if not decide_entry(merge, relocs, <const Rela*>(merge.objects.arena + s.offset + i
                                                         * entsize), i):
            break
    if (relocs.of_replaced_code or is_plain(relocs.target.kind, IS_VARIABLES)
            or is_a(relocs.target.kind, IS_DEBUG)):
        # Data and debug data count file by file, code through all files.
        out_row(merge, relocs.out).counted = 0
    if relocs.of_replaced_code and relocs.mercury and relocs.reloc >= 0:
        out_row(merge, relocs.reloc).counted = 0  # also in the list of mercury code


cdef inline void find_patched(Merge* merge, RelocList* relocs) noexcept nogil:
    """Find the section with the bytes to patch, and the offset of this file's bytes in it."""
    cdef const FileRow* file = relocs.file
    cdef uint32_t i
    relocs.patched_out = relocs.out
    relocs.base = merge.columns.base[merge.objects.sections[relocs.section].target]
    if not relocs.mercury:
        return
    if is_a(relocs.target.kind, IS_DEBUG | IS_LITERALS):
        relocs.patched_out = out_row(merge, relocs.out).merc
    elif not is_a(relocs.target.kind, IS_CAPSULE):
        # Constants and initialized data share their bytes with the plain section.
        relocs.base = 0
        for i in range(file.first_section, file.first_section + file.section_count):
            if merge.columns.out_of[i] == relocs.out:
                relocs.base = merge.columns.base[i]


cdef inline bint decide_entry(Merge* merge, RelocList* relocs, const Rela* r,
                              uint64_t number) noexcept nogil:
    """Decide an entry; False without memory."""
    cdef RelocEntry x
    cdef int32_t action, record_row
    x.r = r
    x.addend = r.r_addend if relocs.explicit else 0
    x.symbol = <int32_t>(relocs.file.first_symbol + r.r_sym)
    x.section = -1
    x.how = 0
    action = decide_action(merge, relocs, &x)
    x.entity = resolve_alias(merge, merge.merged.symbol_entity[x.symbol])
    if action == DROP or (action == CLEAR and relocs.is_rebuilt):
        return True
    if action == DEAD:
        if (not relocs.mercury
                and find_or_create_relocations(merge, relocs.section, relocs.out, relocs.explicit)
                < 0):
            return False
        if relocs.is_counted:
            count_entry(merge, relocs.out, relocs.out, relocs.explicit, x.addend)
        if relocs.is_rebuilt:
            add_rebuild(merge, relocs, &x)
        return True
    if is_of_lost_bytes(merge, relocs, r, x.symbol):
        return True
    if x.entity < 0:
        x.section = merge.objects.symbols[x.symbol].section
        if relocs.mercury:
            x.section = find_mercury_section(merge, relocs.file, r.r_sym)
    if action == CLEAR:
        if (not relocs.mercury
                and find_or_create_relocations(merge, relocs.section, relocs.out, relocs.explicit)
                < 0):
            return False
        if not relocs.of_replaced_code:
            x.how = FIXUP_CLEAR
            add_fixup(merge, relocs, &x, -1)
        return True
    if not list_entry(merge, relocs, x.addend, x.section):
        return False
    if relocs.of_replaced_code or action == VANISHES:
        return True
    if relocs.is_rebuilt:
        add_rebuild(merge, relocs, &x)
    elif action == EMIT:
        if is_of_other_copy(merge, relocs, x.symbol, x.addend):
            if relocs.twin == NOT_SOUGHT:
                relocs.twin = find_mercury_relocations(merge, relocs.file, relocs.section)
            x.addend = addend_of_winner(merge, relocs.twin, number, r, x.addend, x.symbol)
        add_emitted(merge, relocs, &x)
    else:
        if not relocs.explicit:
            x.how |= FIXUP_REL
            if has_recorded_field(merge, relocs, r):
                x.addend = read_recorded_field(merge, relocs, r)
        record_row = -1 if is_unrecorded(merge, x.entity, relocs.function) else relocs.reloc
        add_fixup(merge, relocs, &x, record_row)
    return True


cdef inline bint has_recorded_field(const Merge* merge, const RelocList* relocs,
                                    const Rela* r) noexcept nogil:
    """Whether the list of resolved relocations says what the field held.

    ptxas uses whole addresses in 32-bit variables, too, whose field then is not 0.
    """
    return (merge.objects.mode & LINK_KEEP_RELOCS and r.r_type == R_CUDA_64 and relocs.target.offset
            and is_a(relocs.target.kind, IS_VARIABLES))


cdef inline int64_t read_recorded_field(const Merge* merge, const RelocList* relocs,
                                        const Rela* r) noexcept nogil:
    """Read the field of a whole address, up to the end of the section."""
    cdef int64_t field = 0
    memcpy(&field, merge.objects.arena + relocs.target.offset + r.r_offset,
           min(<uint64_t>8, relocs.target.size - r.r_offset))
    return field


cdef inline int32_t resolve_alias(const Merge* merge, int32_t e) noexcept nogil:
    """The entity that a relocation names in the output: for an alias, its function."""
    cdef int32_t section
    if e < 0 or not merge.merged.entities[e].flags & EF_ALIAS:
        return e
    section = merge.objects.symbols[merge.merged.entities[e].winner].section
    return merge.merged.symbol_entity[merge.objects.sections[section].target]


cdef inline bint is_of_lost_bytes(Merge* merge, const RelocList* relocs, const Rela* r,
                                  int32_t symbol) noexcept nogil:
    """Whether an entry goes with bytes of variables that lost, or that the output does not have."""
    cdef const OutRow* out = out_row(merge, relocs.out)
    if (merge.work.lost_ranges.count
            and is_removed_with_lost_bytes(merge, &merge.work.lost_ranges, relocs.target.kind,
                                           r.r_offset, symbol)):
        return True
    # Pools may be cut: `pools.cut_pools`.
    return (is_merc(relocs.target.kind, IS_LITERALS)
            and r.r_offset >= max(out.size, merge.work.pool_end[out.entity]))


cdef inline bint list_entry(Merge* merge, RelocList* relocs, int64_t addend,
                            int32_t section) noexcept nogil:
    """Find the list of an entry's form and count the entry; False without memory."""
    if relocs.reloc < 0:        # the first entry: the list stays the same
        relocs.reloc = (
            find_or_create_mercury_relocations(merge, relocs.section, relocs.out)
            if relocs.mercury
            else find_or_create_relocations(merge, relocs.section, relocs.out, relocs.explicit))
        if relocs.reloc < 0:
            return False
    if is_a(relocs.target.kind, IS_CAPSULE):
        count_entry(merge, relocs.reloc, relocs.out, True, addend)
    elif relocs.is_counted:
        count_entry(merge, relocs.out, relocs.out, relocs.explicit,
                    addend + (<int64_t>merge.columns.base[section] if section >= 0 else 0))
    return True


cdef inline bint is_of_other_copy(Merge* merge, const RelocList* relocs, int32_t symbol,
                                  int64_t addend) noexcept nogil:
    """Whether debug data of the output refers into a copy of a function that is not linked."""
    cdef int32_t e = merge.merged.symbol_entity[symbol]
    return (merge.has_finalizer and is_plain(relocs.target.kind, IS_DEBUG) and addend > 0
            and e >= 0 and merge.merged.entities[e].kind == E_FUNC
            and merge.merged.symbol_resolution[symbol] not in (RESOLUTION_NONE, RESOLUTION_WON))
