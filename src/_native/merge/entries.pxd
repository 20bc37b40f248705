# Relocation sections of the output and the entries they get.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from base.nameindex cimport pool_join, pool_join_text
from base.texts cimport MERC_PREFIX
from base.vector cimport vec_append, vec_push
from merge.decide cimport RelocEntry, RelocList, is_removed_from_debug
from merge.state cimport (
    Merge, create_resolved_section, find_or_create_optimizer_relocations, name_out, name_out_text,
    new_mercury_relocations, new_relocations, out_row, section_entry,
)
from relocationtypes cimport facts_of
from rownumbers cimport (
    EF_LIVE, E_FUNC, FIXUP_INSTANCE, FIXUP_MERC, LINK_KEEP_RELOCS, LINK_RELOCATABLE,
)
from sectionkinds cimport IS_LITERALS, IS_VARIABLES, PIC_BANK
from tables.kinds cimport is_a, is_renamed
from tables.rows cimport (
    OUTCOME_DEAD, OUTCOME_LIVE, OUTCOME_LOST, OUTCOME_OTHER, OUTCOME_SECTION, EmittedRow, FixupRow,
    OutRow, RebuildRow, SectionRow,
)
from traits cimport TRAIT_ALIGNS_ARRAYS, TRAIT_LEAN_NAMES


cdef inline int32_t find_or_create_relocations(Merge* merge, int32_t source, int32_t out,
                                               bint explicit) noexcept nogil:
    """The relocation section of that form for `out`, made at its first entry; -1 without memory."""
    cdef const SectionRow* s = &merge.objects.sections[source]
    cdef int32_t row = out_row(merge, out).rela if explicit else out_row(merge, out).rel
    cdef bint first = out_row(merge, out).rela < 0 and out_row(merge, out).rel < 0
    if row >= 0:
        return row
    if merge.has_finalizer and is_a(out_row(merge, out).kind, IS_LITERALS):
        return find_or_create_optimizer_relocations(merge, out)
    row = new_relocations(merge, out, explicit)
    if row < 0:
        return -1
    out_row(merge, row).source = source
    if merge.has_finalizer and is_renamed(out_row(merge, out)):
        if out_row(merge, out).bank == PIC_BANK:
            name_out_text(merge, row, b".rela.nv.constant.pic")
        else:
            name_out_text(merge, row, b".rela.nv.constant.user")
    else:
        name_relocations(merge, row, s, explicit)
    if first and merge.objects.mode & LINK_KEEP_RELOCS:
        create_resolved_section(merge, out)
    return row


cdef inline void name_relocations(Merge* merge, int32_t row, const SectionRow* s,
                                  bint explicit) noexcept nogil:
    """Name a relocation section after what it patches, whatever the input calls it."""
    cdef const SectionRow* target = &merge.objects.sections[s.target]
    cdef const uint8_t* name = merge.objects.arena + s.name
    cdef const uint8_t* patched_section = merge.objects.arena + target.name
    cdef uint32_t size = 5 if explicit else 4
    cdef uint8_t* text
    if (s.name_size == size + target.name_size
            and memcmp(name, <const char*>b".rela", size) == 0
            and memcmp(name + size, patched_section, target.name_size) == 0):
        name_out(merge, row, name, s.name_size)
        return
    text = pool_join(&merge.work.texts, b".rela" if explicit else b".rel", size, patched_section,
                     target.name_size)
    if text == NULL:
        merge.failed = True
        return
    name_out(merge, row, text, size + target.name_size)


cdef inline int32_t find_or_create_mercury_relocations(Merge* merge, int32_t source,
                                                       int32_t out) noexcept nogil:
    """The mercury relocation section for `out`; -1 without memory."""
    cdef int32_t plain = out_row(merge, out).rela
    cdef int32_t row
    if plain < 0:
        plain = create_relocations_for_mercury(merge, source, out)
        if plain < 0:
            return -1
    row = out_row(merge, plain).merc
    return row if row >= 0 else new_mercury_relocations(merge, plain, source)


cdef inline int32_t create_relocations_for_mercury(Merge* merge, int32_t source,
                                                   int32_t out) noexcept nogil:
    """Create the plain section that belongs to a mercury relocation section; -1 without memory."""
    cdef const SectionRow* s = &merge.objects.sections[source]
    cdef int32_t row
    if is_a(out_row(merge, out).kind, IS_LITERALS):
        return find_or_create_optimizer_relocations(merge, out)
    row = new_relocations(merge, out, True)
    if row < 0:
        return -1
    out_row(merge, row).source = source
    name_out(merge, row, merge.objects.arena + s.name + MERC_PREFIX,
             s.name_size - MERC_PREFIX)
    if merge.objects.mode & LINK_KEEP_RELOCS and is_a(out_row(merge, out).kind, IS_VARIABLES):
        create_resolved_section(merge, out)
    return row


cdef inline void count_entry(Merge* merge, int32_t counter, int32_t out, bint explicit,
                             int64_t addend) noexcept nogil:
    """Count a RELA entry. A later one with addend 0 creates the .rel section of `out`.

    This is the rule of two forms. Newer releases have no such rule.

    `counter` is the OutRow whose `counted` is used: code has two counters, one for each of its
    lists.
    """
    cdef OutRow* row = out_row(merge, counter)
    row.counted += explicit
    if explicit and addend == 0 and row.counted >= 2 and out_row(merge, out).rel < 0:
        create_other_form(merge, out)


cdef inline void create_other_form(Merge* merge, int32_t out) noexcept nogil:
    """Create the section of entries without addends that the rule of two forms asks for."""
    cdef uint32_t size = section_entry(merge, out).size
    cdef uint8_t* text
    cdef int32_t rel
    if merge.objects.traits & TRAIT_LEAN_NAMES:
        return
    text = pool_join_text(&merge.work.texts, b".rel", section_entry(merge, out).text, &size)
    rel = new_relocations(merge, out, False)
    if text == NULL or rel < 0:
        merge.failed = True
        return
    name_out(merge, rel, text, size)


cdef inline void add_emitted(Merge* merge, const RelocList* relocs,
                             const RelocEntry* x) noexcept nogil:
    """Add an entry to the list of a relocation section of the output."""
    cdef EmittedRow* emitted = <EmittedRow*>vec_push(&merge.columns.emitted)
    cdef OutRow* row = out_row(merge, relocs.reloc)
    cdef uint64_t* align
    if emitted == NULL:
        merge.failed = True
        return
    emitted.offset = x.r.r_offset + relocs.base
    emitted.addend = x.addend
    emitted.type = facts_of(x.r.r_type).plain
    if merge.objects.mode & LINK_RELOCATABLE:
        emitted.type = x.r.r_type
    emitted.entity = x.entity
    emitted.section = -1
    if x.how & FIXUP_INSTANCE:
        align = &merge.columns.array_align[relocs.function]
        if align[0] == 0:
            align[0] = 1
            merge.failed |= not vec_append(&merge.work.array_kernels, &relocs.function, 1)
        if merge.objects.traits & TRAIT_ALIGNS_ARRAYS:
            align[0] = max(align[0],
                           merge.objects.symbols[merge.merged.entities[x.entity].first].value)
        emitted.entity = -1
        emitted.section = -2 - relocs.function
    if x.section >= 0:
        emitted.section = merge.columns.out_of[x.section]
        if emitted.section >= 0 and out_row(merge, emitted.section).twin >= 0:
            emitted.section = out_row(merge, emitted.section).twin  # mercury has no section symbols
        emitted.addend += <int64_t>merge.columns.base[x.section]
    emitted.next = row.head
    row.head = <int32_t>(merge.columns.emitted.count - 1)
    row.count += 1


cdef inline void add_fixup(Merge* merge, const RelocList* relocs, const RelocEntry* x,
                           int32_t reloc) noexcept nogil:
    """Add a relocation that the link resolves; `reloc` is the section that records it, or -1."""
    cdef FixupRow* fixup = <FixupRow*>vec_push(&merge.columns.fixups)
    if fixup == NULL:
        merge.failed = True
        return
    fixup.offset = x.r.r_offset + relocs.base
    fixup.addend = x.addend
    fixup.type = x.r.r_type
    fixup.out = relocs.patched_out
    fixup.entity = x.entity
    fixup.section = x.section
    fixup.function = relocs.function
    fixup.how = x.how | (FIXUP_MERC if relocs.mercury else 0)
    fixup.reloc = reloc


cdef inline void add_rebuild(Merge* merge, const RelocList* relocs,
                             const RelocEntry* x) noexcept nogil:
    """Add a relocation of a debug section that is written anew."""
    cdef RebuildRow* row = <RebuildRow*>vec_push(&merge.columns.rebuilds)
    if row == NULL:
        merge.failed = True
        return
    row.offset = x.r.r_offset
    row.addend = x.addend
    row.out = relocs.out
    row.piece = merge.objects.sections[relocs.section].target
    row.type = x.r.r_type
    row.entity = x.entity
    row.section = x.section
    if x.entity < 0:
        row.outcome = OUTCOME_SECTION
    elif merge.merged.entities[x.entity].kind != E_FUNC:
        row.outcome = OUTCOME_OTHER
    elif is_removed_from_debug(merge, x.symbol, True):
        row.outcome = OUTCOME_LOST
    elif not merge.merged.entities[x.entity].flags & EF_LIVE:
        row.outcome = OUTCOME_DEAD
    else:
        row.outcome = OUTCOME_LIVE
