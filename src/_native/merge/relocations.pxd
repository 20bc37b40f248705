# The relocation sections of one input, entry by entry.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from elfnumbers cimport SHT_REL
from sectionkinds cimport (
    IS_CAPSULE, IS_CODE, IS_DEBUG, IS_ENTRIES, IS_LITERALS, IS_VARIABLES, KIND, K_MERC_SYMTAB_SHNDX,
)
from base.elf64 cimport Rel, Rela
from tables.kinds cimport is_a, is_function, is_function_bank, is_merc, is_plain
from merge.decide cimport (
    CLEAR, DEAD, DROP, EMIT, GONE, NOT_SOUGHT, Entry, RelocList, addend_of_winner, decide,
    is_cleaned, mercury_home, rebuilt,
)
from merge.entries cimport (
    add_emitted, add_fixup, add_rebuild, count_entry, mercury_relocation_row, relocation_row,
)
from merge.lostbytes cimport find_lost_bytes, goes_with_lost_bytes
from merge.state cimport (
    BURIED_REL, BURIED_RELA, WANTED_SYMBOLS, Merge, code_of, entity_name, function_kept,
    function_read, is_folded, keep_name, list_dead, out_row, plain_of_mercury, pool_relocations,
)
from merge.sharedusers cimport NO_KERNEL, is_unrecorded, joins
from base.nameindex cimport pool_join
from base.threads cimport set_mark
from relocationtypes cimport R_CUDA_64
from tables.rows cimport (
    EF_ALIAS, EF_LIVE, E_FUNC, FIXUP_CLEAR, FIXUP_REL, M_KEEP_RELOCS, OF_EMPTY_STAYS,
    RESOLUTION_NONE, RESOLUTION_WON, FileRow, OutRow, SectionRow,
)


cdef inline void sort_relocations(Merge* m, const FileRow* file) noexcept nogil:
    """Each relocation section, a mercury twin right after its plain section."""
    cdef uint32_t i, end = file.first_section + file.section_count
    cdef int32_t twin
    m.first_mercury = file.first_section
    m.merc_shndx = -1
    for i in range(file.first_section, end):
        if m.objects.sections[i].kind == K_MERC_SYMTAB_SHNDX:
            m.merc_shndx = <int32_t>i
    for i in range(file.first_section, end):
        if is_plain(m.objects.sections[i].kind, IS_ENTRIES):
            sort_relocation_section(m, file, <int32_t>i, False)
            twin = mercury_relocations(m, file, <int32_t>i) if m.second else -1
            if twin >= 0:
                m.work.wanted[twin] = WANTED_SYMBOLS
                sort_relocation_section(m, file, twin, True)
        if m.failed:
            return
    for i in range(file.first_section, end):
        if is_merc(m.objects.sections[i].kind, IS_ENTRIES) and not m.work.wanted[i]:
            sort_relocation_section(m, file, <int32_t>i, True)
        if m.failed:
            return


cdef inline int32_t mercury_relocations(Merge* m, const FileRow* file,
                                        int32_t plain) noexcept nogil:
    """The input section `.nv.merc.rela.S` for `.rela.S`, or -1.

    Both kinds mostly come in one order: a search that begins with the first section not yet taken
    is short.
    """
    cdef const SectionRow* s = &m.objects.sections[plain]
    cdef const SectionRow* t
    cdef uint32_t i, end = file.first_section + file.section_count
    while m.first_mercury < end and (m.work.wanted[m.first_mercury] or not is_merc(
            m.objects.sections[m.first_mercury].kind, IS_ENTRIES)):
        m.first_mercury += 1
    for i in range(m.first_mercury, end):
        t = &m.objects.sections[i]
        if is_merc(t.kind, IS_ENTRIES) and not m.work.wanted[i] and is_twin(m, s.target, t.target):
            return <int32_t>i
    return -1


cdef inline bint is_twin(Merge* m, int32_t plain, int32_t mercury) noexcept nogil:
    """Whether input section `mercury` is the mercury form of input section `plain`."""
    cdef const SectionRow* s = &m.objects.sections[plain]
    cdef const SectionRow* t = &m.objects.sections[mercury]
    if not KIND[t.kind].mercury or KIND[s.kind].twin != t.kind:
        return False
    if is_a(s.kind, IS_CODE | IS_LITERALS):
        return m.merged.section_function[plain] == m.merged.section_function[mercury]
    if KIND[s.kind].first_bank:
        return s.bank == t.bank
    return not is_a(s.kind, IS_DEBUG) or (
        t.name_size == s.name_size + 8
        and memcmp(m.objects.arena + t.name + 8, m.objects.arena + s.name, s.name_size) == 0)


cdef inline void sort_relocation_section(Merge* m, const FileRow* file, int32_t at,
                             bint mercury) noexcept nogil:
    cdef const SectionRow* s = &m.objects.sections[at]
    cdef const SectionRow* target = &m.objects.sections[s.target]
    cdef int32_t out, reloc, function = -1
    cdef bint replaced = False
    cdef RelocList relocs
    if is_folded(m, s.target):
        return
    if is_function(target.kind):
        function = function_read(m, s.target)
        if function < 0:
            return
        if not m.merged.entities[function].flags & EF_LIVE:
            if mercury == m.second:
                dead_relocations(m, s, function)
            return
        replaced = function_kept(m, s.target) < 0
        out = code_of(m, function)
    elif is_merc(target.kind, IS_VARIABLES):
        out = plain_of_mercury(m, target)
    elif is_merc(target.kind, IS_DEBUG | IS_LITERALS):
        out = m.columns.out_of[s.target]
        if out >= 0:
            out = out_row(m, out).twin
    else:
        out = m.columns.out_of[s.target]
        if is_function_bank(target.kind):
            function = m.merged.section_function[s.target]
    if out < 0:
        if m.work.own_pool[s.target] and m.second:
            pool_relocations(m, function)
        if m.second and m.objects.mode & M_KEEP_RELOCS and is_plain(target.kind, IS_LITERALS):
            resolved_pool_name(m, function)
        return
    if m.second and s.size == 0 and is_plain(target.kind, IS_CODE | IS_LITERALS):
        # Family C keeps a section that is empty already.
        reloc = relocation_row(m, at, out, True)
        if reloc >= 0:
            out_row(m, reloc).marks |= OF_EMPTY_STAYS
    relocs.file = file
    relocs.at = at
    relocs.target = target
    relocs.out = out
    relocs.function = function
    relocs.mercury = mercury
    relocs.replaced = replaced
    decide_entries(m, &relocs)


cdef inline void dead_relocations(Merge* m, const SectionRow* s, int32_t function) noexcept nogil:
    """Number the sections that entries of dead code make, by the rules for those of live code."""
    cdef uint64_t i
    if s.size == 0:
        return
    list_dead(m, function, BURIED_REL if s.type == SHT_REL else BURIED_RELA)
    if s.type == SHT_REL:
        return
    for i in range(1, s.size // sizeof(Rela)):
        if (<const Rela*>(m.objects.arena + s.offset) + i).r_addend == 0:
            list_dead(m, function, BURIED_REL)
            return


cdef inline void resolved_pool_name(Merge* m, int32_t function) noexcept nogil:
    """--preserve-relocs names what would list a device function's pool, which is not a section."""
    cdef uint32_t size
    cdef const uint8_t* name
    if function < 0 or not m.merged.entities[function].flags & EF_LIVE:
        return
    name = entity_name(m, function, &size)
    keep_name(m, pool_join(&m.work.texts, b".nv.resolvedrela.nv.constant.optimizer.", 39, name,
                           size), 39 + size)


cdef inline void find_referenced(Merge* m, const FileRow* file) noexcept nogil:
    """Mark what the code of function copies that count refers to, dead ones included.

    For live code also mark the kernels that use it so, where somebody asks (merge/sharedusers.pxd).
    """
    cdef uint32_t i
    cdef uint64_t entsize, k
    cdef const SectionRow* s
    cdef const Rel* entry
    cdef int32_t e, function, user
    for i in range(file.first_section, file.first_section + file.section_count):
        s = &m.objects.sections[i]
        if (s.size == 0 or not is_plain(s.kind, IS_ENTRIES)
                or not is_a(m.objects.sections[s.target].kind, IS_CODE)):
            continue
        m.work.patched[s.target] = True
        function = function_kept(m, s.target)
        if function < 0:
            continue
        user = NO_KERNEL
        if m.work.users != NULL and m.merged.entities[function].flags & EF_LIVE:
            user = m.work.reached[function]
        entsize = sizeof(Rel) if s.type == SHT_REL else sizeof(Rela)
        for k in range(s.size // entsize):
            entry = <const Rel*>(m.objects.arena + s.offset + k * entsize)
            e = m.merged.symbol_entity[file.first_symbol + entry.r_sym]
            if e >= 0:
                set_mark(&m.columns.referenced[e])     # files are gone through side by side
                if user != NO_KERNEL:
                    joins(&m.work.users[e], user)


cdef inline bint counts_forms(Merge* m, const RelocList* relocs) noexcept nogil:
    """Whether entries of this section count for the rule of two forms.

    On family C those of the mercury file do where it has any: that of `.debug_line` names
    `.debug_str`, which the plain one does not, and those of a whole program's tables name functions
    whose offsets the plain ones have already. Code has a count for each of its lists.
    """
    cdef bint both = is_a(relocs.target.kind, IS_DEBUG | IS_VARIABLES | IS_LITERALS)
    if relocs.mercury:
        return both
    return not m.second or not both or mercury_relocations(m, relocs.file, relocs.at) < 0


cdef inline void decide_entries(Merge* m, RelocList* relocs) noexcept nogil:
    """Decide each entry of one input relocation section."""
    cdef const SectionRow* s = &m.objects.sections[relocs.at]
    cdef uint64_t entsize, i
    relocs.explicit = s.type != SHT_REL
    relocs.rebuilt = not relocs.mercury and rebuilt(m, relocs.target)
    relocs.counts = counts_forms(m, relocs)
    relocs.cleaned = is_cleaned(m, relocs.out, relocs.explicit)
    relocs.reloc = -1
    relocs.twin = NOT_SOUGHT
    find_patched(m, relocs)
    m.work.lost.count = 0
    find_lost_bytes(m, relocs.file, s.target, &m.work.lost)
    entsize = sizeof(Rela) if relocs.explicit else sizeof(Rel)
    for i in range(s.size // entsize):
        if not decide_entry(m, relocs, <const Rela*>(m.objects.arena + s.offset + i * entsize), i):
            break
    if (relocs.replaced or is_plain(relocs.target.kind, IS_VARIABLES)
            or is_a(relocs.target.kind, IS_DEBUG)):
        # Data and debug data count file by file, code through all files.
        out_row(m, relocs.out).counted = 0
    if relocs.replaced and relocs.mercury and relocs.reloc >= 0:
        out_row(m, relocs.reloc).counted = 0      # as above, in the list that mercury code has


cdef inline void find_patched(Merge* m, RelocList* relocs) noexcept nogil:
    """Which section has the bytes, and where those of this file begin there."""
    cdef const FileRow* file = relocs.file
    cdef uint32_t i
    relocs.patched = relocs.out
    relocs.base = m.columns.base[m.objects.sections[relocs.at].target]
    if not relocs.mercury:
        return
    if is_a(relocs.target.kind, IS_DEBUG | IS_LITERALS):
        relocs.patched = out_row(m, relocs.out).merc
    elif not is_a(relocs.target.kind, IS_CAPSULE):
        # Constants and initialized data share their bytes with the plain section.
        relocs.base = 0
        for i in range(file.first_section, file.first_section + file.section_count):
            if m.columns.out_of[i] == relocs.out:
                relocs.base = m.columns.base[i]


cdef inline bint decide_entry(Merge* m, RelocList* relocs, const Rela* r,
                              uint64_t number) noexcept nogil:
    """Decide an entry; False without memory."""
    cdef Entry x
    cdef int32_t action, recorded
    x.r = r
    x.addend = r.r_addend if relocs.explicit else 0
    x.symbol = <int32_t>(relocs.file.first_symbol + r.r_sym)
    x.section = -1
    x.how = 0
    action = decide(m, relocs, &x)
    x.entity = unaliased(m, m.merged.symbol_entity[x.symbol])
    if action == DROP or (action == CLEAR and relocs.rebuilt):
        return True
    if action == DEAD:
        if not relocs.mercury and relocation_row(m, relocs.at, relocs.out, relocs.explicit) < 0:
            return False
        if relocs.counts:
            count_entry(m, relocs.out, relocs.out, relocs.explicit, x.addend)
        if relocs.rebuilt:
            add_rebuild(m, relocs, &x)
        return True
    if is_of_lost_bytes(m, relocs, r, x.symbol):
        return True
    if x.entity < 0:
        x.section = m.objects.symbols[x.symbol].section
        if relocs.mercury:
            x.section = mercury_home(m, relocs.file, r.r_sym)
    if action == CLEAR:
        if not relocs.mercury and relocation_row(m, relocs.at, relocs.out, relocs.explicit) < 0:
            return False
        if not relocs.replaced:
            x.how = FIXUP_CLEAR
            add_fixup(m, relocs, &x, -1)
        return True
    if not list_entry(m, relocs, x.addend, x.section):
        return False
    if relocs.replaced or action == GONE:
        return True
    if relocs.rebuilt:
        add_rebuild(m, relocs, &x)
    elif action == EMIT:
        if is_of_other_copy(m, relocs, x.symbol, x.addend):
            if relocs.twin == NOT_SOUGHT:
                relocs.twin = mercury_relocations(m, relocs.file, relocs.at)
            x.addend = addend_of_winner(m, relocs.twin, number, r, x.addend, x.symbol)
        add_emitted(m, relocs, &x)
    else:
        if not relocs.explicit:
            x.how |= FIXUP_REL
            if has_recorded_field(m, relocs, r):
                x.addend = recorded_field(m, relocs, r)
        recorded = -1 if is_unrecorded(m, x.entity, relocs.function) else relocs.reloc
        add_fixup(m, relocs, &x, recorded)
    return True


cdef inline bint has_recorded_field(const Merge* m, const RelocList* relocs,
                                    const Rela* r) noexcept nogil:
    """Whether the list of resolved relocations says what the field held.

    ptxas asks for whole addresses in 32-bit variables, too, where that is not 0.
    """
    return (m.objects.mode & M_KEEP_RELOCS and r.r_type == R_CUDA_64 and relocs.target.offset
            and is_a(relocs.target.kind, IS_VARIABLES))


cdef inline int64_t recorded_field(const Merge* m, const RelocList* relocs,
                                   const Rela* r) noexcept nogil:
    """The field of a whole address, as far as the section goes."""
    cdef int64_t field = 0
    memcpy(&field, m.objects.arena + relocs.target.offset + r.r_offset,
           min(<uint64_t>8, relocs.target.size - r.r_offset))
    return field


cdef inline int32_t unaliased(const Merge* m, int32_t e) noexcept nogil:
    """The function that a relocation names in the output for that which it names in the input."""
    cdef int32_t section
    if e < 0 or not m.merged.entities[e].flags & EF_ALIAS:
        return e
    section = m.objects.symbols[m.merged.entities[e].winner].section
    return m.merged.symbol_entity[m.objects.sections[section].target]


cdef inline bint is_of_lost_bytes(Merge* m, const RelocList* relocs, const Rela* r,
                                  int32_t symbol) noexcept nogil:
    """Whether an entry goes with bytes of variables that lost, or that the output does not have."""
    cdef const OutRow* out = out_row(m, relocs.out)
    if m.work.lost.count and goes_with_lost_bytes(m, &m.work.lost, relocs.target.kind, r.r_offset,
                                                  symbol):
        return True
    # Pools may be cut: `pools.cut_pools`.
    return (is_merc(relocs.target.kind, IS_LITERALS)
            and r.r_offset >= max(out.size, m.work.pool_end[out.entity]))


cdef inline bint list_entry(Merge* m, RelocList* relocs, int64_t addend,
                            int32_t section) noexcept nogil:
    """Enter an entry into the list of its form; False without memory."""
    if relocs.mercury:
        relocs.reloc = mercury_relocation_row(m, relocs.at, relocs.out)
    else:
        relocs.reloc = relocation_row(m, relocs.at, relocs.out, relocs.explicit)
    if relocs.reloc < 0:
        return False
    if is_a(relocs.target.kind, IS_CAPSULE):
        count_entry(m, relocs.reloc, relocs.out, True, addend)
    elif relocs.counts:
        count_entry(m, relocs.out, relocs.out, relocs.explicit,
                    addend + (<int64_t>m.columns.base[section] if section >= 0 else 0))
    return True


cdef inline bint is_of_other_copy(Merge* m, const RelocList* relocs, int32_t symbol,
                                  int64_t addend) noexcept nogil:
    """Whether debug data that stays names a place in a copy of a function that is not linked."""
    cdef int32_t e = m.merged.symbol_entity[symbol]
    return (m.second and is_plain(relocs.target.kind, IS_DEBUG) and addend > 0
            and e >= 0 and m.merged.entities[e].kind == E_FUNC
            and m.merged.symbol_resolution[symbol] not in (RESOLUTION_NONE, RESOLUTION_WON))
