# The relocation sections of one input, entry by entry.
#
# `decide_relocations` goes through a file's relocation sections. From sm_100 on, code and debug
# data exist twice, and so do their relocations: `.nv.merc.rela.S` is read right after `.rela.S`,
# wherever it stands in the input, and those without a plain section come last. For each section:
#
# 1. `decide_relocation_section` finds the output section that it patches. Those of dead code only
#    use up numbers (`reserve_dead_relocations`).
# 2. `decide_entries` goes through its entries. For each, `decide_entry` gets an Action from
#    merge/decide.pxd and carries it out. `list_entry` finds the relocation section of the output
#    for the entry, created by the first one, and counts the entry for the rule of two forms.
# 3. `add_emitted`, `add_fixup` and `add_rebuild` (merge/entries.pxd) add the row: an entry that the
#    output has, one that the link resolves, or one of a debug section that is computed again.
#
# `prepare_relocations` and `mark_referenced_entities` come before all this, for every file: the
# first marks relocation sections and finds the fates of symbols, the second marks what code refers
# to.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from base.elf64 cimport Rel, Rela
from base.nameindex cimport pool_join_text
from base.prefetch cimport prefetch
from base.texts cimport MERC_PREFIX
from base.threads cimport set_mark
from elfnumbers cimport SHT_REL
from merge.decide cimport (
    CLEAR, DROP, DROP_DEAD, DROP_LATE, EMIT, FATE_OPEN, Action, Fate, RelocEntry, RelocList,
    action_of_fate, correct_addend, decide_action, fate_of, find_mercury_section,
    is_cleared_of_replaced, is_rebuilt,
)
from merge.entries cimport (
    add_emitted, add_fixup, add_rebuild, count_for_two_forms, create_other_form,
    find_or_create_mercury_relocations, find_or_create_relocations,
)
from merge.lostbytes cimport find_lost_bytes, is_removed_with_lost_bytes
from merge.newrows cimport (
    OPTIMIZER_RESOLVED, create_pool_relocations, number_dead_section, reserve_name,
)
from merge.sharedusers cimport NO_KERNEL, add_user, is_unrecorded
from merge.state cimport (
    DEAD_REL, DEAD_RELA, MARK_DECIDED, MARK_ENTRIES, MARK_MERC_ENTRIES, MARK_MERC_SHNDX,
    Merge, code_of, entity_name, find_plain_section, function_if_current,
    function_if_linked, is_folded, out_row,
)
from relocationtypes cimport R_CUDA_64, facts_of
from rownumbers cimport (
    EF_ALIAS, EF_LIVE, E_FUNC, FIXUP_CLEAR, FIXUP_REL, LINK_KEEP_RELOCS, RESOLUTION_NONE,
    RESOLUTION_WON,
)
from sectionkinds cimport (
    IS_CAPSULE, IS_CODE, IS_DEBUG, IS_ENTRIES, IS_LITERALS, IS_VARIABLES, KIND, K_MERC_SYMTAB_SHNDX,
)
from tables.kinds cimport is_a, is_function, is_function_bank, is_merc, is_plain
from tables.rows cimport (
    OF_EMPTY_STAYS, EntityNumber, FileRow, OutNumber, OutRow, SectionNumber, SectionRef, SectionRow,
    SymbolNumber, function_symbol,
)
from traits cimport TRAIT_LEAN_NAMES


cdef inline void decide_relocations(Merge* merge, const FileRow* file) noexcept nogil:
    """Decide all relocation entries of a file, a mercury section's after its plain section's."""
    cdef SectionRef i, end = file.first_section + file.section_count
    cdef SectionNumber twin
    merge.first_mercury = file.first_section
    merge.merc_shndx = -1
    for i in range(file.first_section, end):
        if merge.work.section_marks[i] & MARK_MERC_SHNDX:
            merge.merc_shndx = <SectionNumber>i
    for i in range(file.first_section, end):
        if not merge.work.section_marks[i] & MARK_ENTRIES:
            continue
        twin = (find_mercury_relocations(merge, file, <SectionNumber>i) if merge.has_finalizer
                else -1)
        # The next plain section's entries mostly follow in the file: fetch them into the cache.
        prefetch(merge.objects.arena + merge.objects.sections[i].offset
                 + merge.objects.sections[i].size)
        if twin >= 0:
            prefetch(merge.objects.arena + merge.objects.sections[twin].offset)
        decide_relocation_section(merge, file, <SectionNumber>i, twin, False)
        if twin >= 0:
            merge.work.section_marks[twin] |= MARK_DECIDED
            decide_relocation_section(merge, file, twin, -1, True)
        if merge.failed:
            return
    for i in range(file.first_section, end):
        if merge.work.section_marks[i] & (MARK_MERC_ENTRIES | MARK_DECIDED) == MARK_MERC_ENTRIES:
            decide_relocation_section(merge, file, <SectionNumber>i, -1, True)
        if merge.failed:
            return


cdef inline SectionNumber find_mercury_relocations(Merge* merge, const FileRow* file,
                                                   SectionNumber plain) noexcept nogil:
    """Return the input section `.nv.merc.rela.S` for `plain`, a `.rela.S` of the file, or -1.

    Mercury sections mostly stand in the order of the plain ones, so the search is short: it begins
    at the first one whose entries have not been decided (`first_mercury`).
    """
    cdef const SectionRow* plain_row = &merge.objects.sections[plain]
    cdef SectionRef i, end = file.first_section + file.section_count
    while (merge.first_mercury < end
            and merge.work.section_marks[merge.first_mercury] & (MARK_MERC_ENTRIES | MARK_DECIDED)
            != MARK_MERC_ENTRIES):
        merge.first_mercury += 1
    for i in range(merge.first_mercury, end):
        if (merge.work.section_marks[i] & (MARK_MERC_ENTRIES | MARK_DECIDED) == MARK_MERC_ENTRIES
                and is_twin(merge, plain_row.target, merge.objects.sections[i].target)):
            return <SectionNumber>i
    return -1


cdef inline bint is_twin(Merge* merge, SectionNumber plain, SectionNumber mercury) noexcept nogil:
    """Return whether input section `mercury` is the mercury form of input section `plain`."""
    cdef const SectionRow* plain_row = &merge.objects.sections[plain]
    cdef const SectionRow* mercury_row = &merge.objects.sections[mercury]
    if not KIND[mercury_row.kind].mercury or KIND[plain_row.kind].twin != mercury_row.kind:
        return False
    if is_a(plain_row.kind, IS_CODE | IS_LITERALS):
        return merge.merged.section_function[plain] == merge.merged.section_function[mercury]
    if KIND[plain_row.kind].first_bank:
        return plain_row.bank == mercury_row.bank
    return (not is_a(plain_row.kind, IS_DEBUG)
            or (mercury_row.name_size == plain_row.name_size + MERC_PREFIX
                and memcmp(merge.objects.arena + mercury_row.name + MERC_PREFIX,
                           merge.objects.arena + plain_row.name, plain_row.name_size) == 0))


cdef inline void decide_relocation_section(Merge* merge, const FileRow* file, SectionNumber section,
                                           SectionNumber twin, bint is_mercury) noexcept nogil:
    """Find the output section that an input's relocation section patches, and decide its entries.

    `is_mercury` says whether these entries patch the mercury form. `twin` is the input's mercury
    form of `section`, if that is plain and has one; else -1.
    """
    cdef const SectionRow* section_row = &merge.objects.sections[section]
    cdef const SectionRow* target = &merge.objects.sections[section_row.target]
    cdef OutNumber out, relocations
    cdef EntityNumber function = -1
    cdef bint is_replaced = False
    cdef RelocList relocs
    if is_folded(merge, section_row.target):
        return
    if is_function(target.kind):
        function = function_if_current(merge, section_row.target)
        if function < 0:
            return
        if not merge.merged.entities[function].flags & EF_LIVE:
            if is_mercury == merge.has_finalizer:
                reserve_dead_relocations(merge, section_row, function)
            return
        is_replaced = function_if_linked(merge, section_row.target) < 0
        out = code_of(merge, function)
    elif is_merc(target.kind, IS_VARIABLES):
        out = find_plain_section(merge, target)
    elif is_merc(target.kind, IS_DEBUG | IS_LITERALS):
        out = merge.columns.out_of[section_row.target]
        if out >= 0:
            out = out_row(merge, out).twin
    else:
        out = merge.columns.out_of[section_row.target]
        if is_function_bank(target.kind):
            function = merge.merged.section_function[section_row.target]
    if out < 0:
        if merge.work.own_pool[section_row.target] and merge.has_finalizer:
            create_pool_relocations(merge, function)
        if (merge.has_finalizer and merge.objects.mode & LINK_KEEP_RELOCS
                and is_plain(target.kind, IS_LITERALS)):
            reserve_resolved_pool_name(merge, function)
        return
    if (merge.has_finalizer and section_row.size == 0
            and is_plain(target.kind, IS_CODE | IS_LITERALS)):
        # From sm_100 on, a relocation section of code or of a pool is kept if it is empty already
        # in the input.
        relocations = find_or_create_relocations(merge, section, out, True)
        if relocations >= 0:
            out_row(merge, relocations).marks |= OF_EMPTY_STAYS
    relocs.file = file
    relocs.section = section
    relocs.target = target
    relocs.out = out
    relocs.function = function
    relocs.is_mercury = is_mercury
    relocs.is_of_replaced_code = is_replaced
    relocs.twin = twin
    decide_entries(merge, &relocs)


cdef inline void reserve_dead_relocations(Merge* merge, const SectionRow* section,
                                          EntityNumber function) noexcept nogil:
    """Reserve the number of `.rela.text.F` or `.rel.text.F` for relocations of dead code, if any.

    An addend of 0 after the first RELA entry also asks for .rel, as for live code, except in
    releases from 13.5 on (TRAIT_LEAN_NAMES).
    """
    cdef uint64_t i
    if section.size == 0:
        return
    number_dead_section(merge, function, DEAD_REL if section.type == SHT_REL else DEAD_RELA)
    if section.type == SHT_REL or merge.objects.traits & TRAIT_LEAN_NAMES:
        return
    for i in range(1, section.size // sizeof(Rela)):
        if (<const Rela*>(merge.objects.arena + section.offset) + i).r_addend == 0:
            number_dead_section(merge, function, DEAD_REL)
            return


cdef inline void reserve_resolved_pool_name(Merge* merge, EntityNumber function) noexcept nogil:
    """Reserve the name `.nv.resolvedrela.nv.constant.optimizer.F` for a live function.

    The section would list the relocations that the link resolved in the function's pool. nvlink
    writes its name with --preserve-relocs for an input's pool that gets no output section.
    """
    cdef uint32_t size
    cdef const uint8_t* name
    cdef uint8_t* text
    if function < 0 or not merge.merged.entities[function].flags & EF_LIVE:
        return
    name = entity_name(merge, function, &size)
    text = pool_join_text(&merge.work.texts, OPTIMIZER_RESOLVED, name, &size)
    reserve_name(merge, text, size)


cdef inline void mark_referenced_entities(Merge* merge, const FileRow* file) noexcept nogil:
    """Mark the entities that the code of linked function copies refers to, even if it is dead.

    Also sets `has_relocations` of code that has some. If `users` are needed
    (merge/sharedusers.pxd), the kernels that reach live code become users of what it refers to.
    """
    cdef SectionRef i
    cdef uint64_t entsize, number
    cdef const SectionRow* section
    cdef const Rel* entry
    cdef EntityNumber entity, function, user
    for i in range(file.first_section, file.first_section + file.section_count):
        section = &merge.objects.sections[i]
        if (section.size == 0 or not is_plain(section.kind, IS_ENTRIES)
                or not is_a(merge.objects.sections[section.target].kind, IS_CODE)):
            continue
        merge.work.has_relocations[section.target] = True
        function = function_if_linked(merge, section.target)
        if function < 0:
            continue
        user = NO_KERNEL
        if merge.work.users != NULL and merge.merged.entities[function].flags & EF_LIVE:
            user = merge.work.reaching_kernel[function]
        entsize = sizeof(Rel) if section.type == SHT_REL else sizeof(Rela)
        for number in range(section.size // entsize):
            entry = <const Rel*>(merge.objects.arena + section.offset + number * entsize)
            entity = merge.merged.symbol_entity[file.first_symbol + entry.r_sym]
            if entity >= 0:
                # The write is atomic: other threads go through other files at the same time.
                set_mark(&merge.columns.referenced[entity])
                if user != NO_KERNEL:
                    add_user(&merge.work.users[entity], user)


cdef inline void prepare_relocations(Merge* merge, const FileRow* file) noexcept nogil:
    """Mark a file's relocation sections, and find what its symbols alone decide: their Fates.

    Also marks .nv.merc.symtab_shndx.
    """
    cdef uint32_t i
    cdef uint16_t kind
    for i in range(file.first_section, file.first_section + file.section_count):
        kind = merge.objects.sections[i].kind
        if kind == K_MERC_SYMTAB_SHNDX:
            merge.work.section_marks[i] |= MARK_MERC_SHNDX
        elif is_a(kind, IS_ENTRIES):
            merge.work.section_marks[i] |= MARK_MERC_ENTRIES if KIND[kind].mercury else MARK_ENTRIES
    for i in range(file.first_symbol, file.first_symbol + file.symbol_count):
        merge.work.fates[i] = fate_of(merge, i)


cdef inline bint is_counted_for_two_forms(Merge* merge, const RelocList* relocs) noexcept nogil:
    """Return whether the entries of this section count for the rule of two forms.

    That rule creates .rel, too, for a RELA entry with addend 0 that is not the first. Entries of
    code count in both forms, each by itself. Those of a capsule, the mercury form of code, are
    counted by `list_entry` although this function returns False. From sm_100 on, other entries
    count only in the mercury form if the input has it. The two forms can differ: the mercury
    `.debug_line` also names `.debug_str`, and mercury tables in whole programs name functions,
    where the plain tables have offsets.
    """
    cdef bint counts_once = is_a(relocs.target.kind, IS_DEBUG | IS_VARIABLES | IS_LITERALS)
    if relocs.is_mercury:
        return counts_once
    return not merge.has_finalizer or not counts_once or relocs.twin < 0


cdef inline void decide_entries(Merge* merge, RelocList* relocs) noexcept nogil:
    """Decide each entry of one input relocation section."""
    cdef const SectionRow* section_row = &merge.objects.sections[relocs.section]
    cdef const uint8_t* entry
    cdef uint64_t entsize, i
    relocs.is_rela = section_row.type != SHT_REL
    relocs.is_rebuilt = not relocs.is_mercury and is_rebuilt(merge, relocs.target)
    relocs.is_capsule = is_a(relocs.target.kind, IS_CAPSULE)
    relocs.is_counted = is_counted_for_two_forms(merge, relocs)
    relocs.is_cleared_of_replaced = is_cleared_of_replaced(merge, relocs.out, relocs.is_rela)
    relocs.listed_in = relocs.counter = -1
    relocs.emitted_count = 0
    find_patched_bytes(merge, relocs)
    merge.work.lost_ranges.count = 0
    find_lost_bytes(merge, relocs.file, section_row.target, &merge.work.lost_ranges)
    relocs.may_lose_bytes = (merge.work.lost_ranges.count != 0
                             or is_merc(relocs.target.kind, IS_LITERALS))
    entry = merge.objects.arena + section_row.offset
    entsize = sizeof(Rela) if relocs.is_rela else sizeof(Rel)
    for i in range(section_row.size // entsize):
        if not decide_entry(merge, relocs, <const Rela*>entry, i):
            break
        entry += entsize
    if relocs.listed_in >= 0:
        out_row(merge, relocs.listed_in).head = relocs.head
        out_row(merge, relocs.listed_in).count += relocs.emitted_count
    if relocs.counter >= 0:
        out_row(merge, relocs.counter).rela_count = relocs.rela_count
    if (relocs.is_of_replaced_code or is_plain(relocs.target.kind, IS_VARIABLES)
            or is_a(relocs.target.kind, IS_DEBUG)):
        # The rule of two forms counts entries of data and debug data from 0 in each file. It begins
        # again for code only after a copy that is replaced.
        out_row(merge, relocs.out).rela_count = 0
    if relocs.is_of_replaced_code and relocs.is_mercury and relocs.listed_in >= 0:
        out_row(merge, relocs.listed_in).rela_count = 0     # entries of mercury code count there


cdef inline void find_patched_bytes(Merge* merge, RelocList* relocs) noexcept nogil:
    """Set the OutRow with the bytes to patch, and the offset of the file's bytes in it."""
    cdef const FileRow* file = relocs.file
    cdef SectionRef i
    relocs.patched_out = relocs.out
    relocs.base = merge.columns.base[merge.objects.sections[relocs.section].target]
    if not relocs.is_mercury:
        return
    if is_a(relocs.target.kind, IS_DEBUG | IS_LITERALS):
        relocs.patched_out = out_row(merge, relocs.out).merc
    elif not is_a(relocs.target.kind, IS_CAPSULE):
        # Constants and initialized data share their bytes with the plain section.
        relocs.base = 0
        for i in range(file.first_section, file.first_section + file.section_count):
            if merge.columns.out_of[i] == relocs.out:
                relocs.base = merge.columns.base[i]


cdef inline bint decide_entry(Merge* merge, RelocList* relocs, const Rela* input,
                              uint64_t number) noexcept nogil:
    """Decide the entry `input`, which has index `number`, and add its row; False without memory.

    This runs for each entry of a link. So nothing outside of this function sees the address of
    `entry`, and compilers can keep its fields in registers.
    """
    cdef RelocEntry entry, open_entry
    cdef Fate fate
    cdef Action action
    cdef OutNumber listed_in
    entry.input = input
    entry.facts = facts_of(input.r_type)
    entry.addend = entry.new_addend = input.r_addend if relocs.is_rela else 0
    entry.symbol = <SymbolNumber>(relocs.file.first_symbol + input.r_sym)
    entry.entity = merge.merged.symbol_entity[entry.symbol]
    entry.section = -1
    entry.how = 0
    fate = <Fate>merge.work.fates[entry.symbol]
    if fate == FATE_OPEN:
        open_entry = entry
        action = decide_open_entry(merge, relocs, &open_entry, number)
        if action == DROP:
            return not merge.failed
        entry = open_entry
    else:
        action = action_of_fate(fate, entry.facts)
        if relocs.may_lose_bytes and is_of_lost_bytes(merge, relocs, input, entry.symbol):
            return True
    if not list_entry(merge, relocs, entry.addend, entry.section):
        return False
    if relocs.is_of_replaced_code or action == DROP_LATE:
        return True
    if relocs.is_rebuilt:
        add_rebuild(merge, relocs, entry)
    elif action == EMIT:
        add_emitted(merge, relocs, entry)
    else:
        if not relocs.is_rela:
            entry.how |= FIXUP_REL
            if has_recorded_field(merge, relocs, input):
                entry.new_addend = read_recorded_field(merge, relocs, input)
        listed_in = -1 if is_unrecorded(merge, entry.entity, relocs.function) else relocs.listed_in
        add_fixup(merge, relocs, entry, listed_in)
    return True


cdef inline Action decide_open_entry(Merge* merge, RelocList* relocs, RelocEntry* entry,
                                     uint64_t number) noexcept nogil:
    """Decide an entry whose symbol does not decide it alone, and complete its fields.

    Returns what is still to be done: EMIT, RESOLVE, DROP_LATE, or DROP for nothing.
    """
    cdef Action action = decide_action(merge, relocs, entry)
    entry.entity = resolve_alias(merge, entry.entity)
    if action == DROP or (action == CLEAR and relocs.is_rebuilt):
        return DROP
    if action == DROP_DEAD:
        if create_plain_relocations(merge, relocs):
            if relocs.is_counted and count_for_two_forms(merge, relocs, relocs.out, entry.addend):
                create_other_form(merge, relocs.out)
            if relocs.is_rebuilt:
                add_rebuild(merge, relocs, entry[0])
        return DROP
    if relocs.may_lose_bytes and is_of_lost_bytes(merge, relocs, entry.input, entry.symbol):
        return DROP
    if entry.entity < 0:
        entry.section = merge.objects.symbols[entry.symbol].section
        if relocs.is_mercury:
            entry.section = find_mercury_section(merge, relocs.file, entry.input.r_sym)
    if action == CLEAR:
        if create_plain_relocations(merge, relocs) and not relocs.is_of_replaced_code:
            entry.how = FIXUP_CLEAR
            add_fixup(merge, relocs, entry[0], -1)
        return DROP
    if action == EMIT and is_into_unlinked_copy(merge, relocs, entry.symbol, entry.addend):
        entry.new_addend = correct_addend(merge, relocs.twin, number, entry.input, entry.addend,
                                          entry.symbol)
    return action


cdef inline bint create_plain_relocations(Merge* merge, const RelocList* relocs) noexcept nogil:
    """Create the relocation section for plain entries, unless it exists; False without memory.

    Does nothing for mercury entries.
    """
    return (relocs.is_mercury
            or find_or_create_relocations(merge, relocs.section, relocs.out, relocs.is_rela) >= 0)


cdef inline bint has_recorded_field(const Merge* merge, const RelocList* relocs,
                                    const Rela* input) noexcept nogil:
    """Return whether the record of a resolved REL entry has the field's old value as its addend.

    There are such records only with --preserve-relocs. ptxas uses R_CUDA_64 in 32-bit variables,
    too. The field of 8 bytes is then not 0: its second half is what comes after the variable.
    """
    return (merge.objects.mode & LINK_KEEP_RELOCS and input.r_type == R_CUDA_64
            and relocs.target.offset and is_a(relocs.target.kind, IS_VARIABLES))


cdef inline int64_t read_recorded_field(const Merge* merge, const RelocList* relocs,
                                        const Rela* input) noexcept nogil:
    """Return the field of 8 bytes that an entry patches, cut off at the end of the section."""
    cdef int64_t field = 0
    memcpy(&field, merge.objects.arena + relocs.target.offset + input.r_offset,
           min(<uint64_t>8, relocs.target.size - input.r_offset))
    return field


cdef inline EntityNumber resolve_alias(const Merge* merge, EntityNumber entity) noexcept nogil:
    """Return the entity that a relocation names in the output: for an alias, its function."""
    cdef SectionNumber section
    if entity < 0 or not merge.merged.entities[entity].flags & EF_ALIAS:
        return entity
    section = merge.objects.symbols[merge.merged.entities[entity].winner].section
    return merge.merged.symbol_entity[function_symbol(&merge.objects.sections[section])]


cdef inline bint is_of_lost_bytes(Merge* merge, const RelocList* relocs, const Rela* input,
                                  SymbolNumber symbol) noexcept nogil:
    """Return whether an entry is removed since its field lies in lost bytes, or was cut off a pool.

    Lost bytes are those of a variable that lost against another file's (merge/lostbytes.pxd).
    """
    cdef const OutRow* out = out_row(merge, relocs.out)
    if (merge.work.lost_ranges.count
            and is_removed_with_lost_bytes(merge, &merge.work.lost_ranges, relocs.target.kind,
                                           input.r_offset, symbol)):
        return True
    # `pools.cut_pools` ends a pool at its last constant; pools appended to it make it longer.
    return (is_merc(relocs.target.kind, IS_LITERALS)
            and input.r_offset >= max(out.size, merge.work.pool_end[out.entity]))


cdef inline bint list_entry(Merge* merge, RelocList* relocs, int64_t addend,
                            SectionNumber section) noexcept nogil:
    """Find or create the relocation section for an entry, and count it; False without memory.

    `addend` is the entry's, and `section` the input section that its symbol stands for, or -1.
    """
    if relocs.listed_in < 0:        # all entries of one input section go to one output section
        relocs.listed_in = (find_or_create_mercury_relocations(merge, relocs.section, relocs.out)
                            if relocs.is_mercury
                            else find_or_create_relocations(merge, relocs.section, relocs.out,
                                                            relocs.is_rela))
        if relocs.listed_in < 0:
            return False
        relocs.head = out_row(merge, relocs.listed_in).head
    if not relocs.is_capsule and not relocs.is_counted:
        return True
    if section >= 0 and not relocs.is_capsule:
        addend += <int64_t>merge.columns.base[section]
    if count_for_two_forms(merge, relocs, relocs.listed_in if relocs.is_capsule else relocs.out,
                           addend):
        create_other_form(merge, relocs.out)
    return True


cdef inline bint is_into_unlinked_copy(Merge* merge, const RelocList* relocs, SymbolNumber symbol,
                                       int64_t addend) noexcept nogil:
    """Return whether a plain debug entry points past the start of an unlinked function copy.

    Always False up to sm_90.
    """
    cdef EntityNumber entity = merge.merged.symbol_entity[symbol]
    return (merge.has_finalizer and is_plain(relocs.target.kind, IS_DEBUG) and addend > 0
            and entity >= 0 and merge.merged.entities[entity].kind == E_FUNC
            and merge.merged.symbol_resolution[symbol] not in (RESOLUTION_NONE, RESOLUTION_WON))
