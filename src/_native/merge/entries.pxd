# Relocation sections of the output and the entries they get.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from sectionkinds cimport IS_LITERALS, IS_VARIABLES, PIC_BANK
from tables.kinds cimport is_a, is_renamed
from merge.decide cimport Entry, RelocList, out_of_debug
from merge.state cimport (
    Merge, listed, name_out, new_mercury_relocations, new_relocations, optimizer_relocations,
    out_row, resolved_row,
)
from base.nameindex cimport pool_join
from relocationtypes cimport facts_of
from tables.rows cimport (
    EF_LIVE, E_FUNC, FIXUP_INSTANCE, FIXUP_MERC, M_KEEP_RELOCS, M_RELOCATABLE, OUTCOME_DEAD,
    OUTCOME_LIVE, OUTCOME_LOST, OUTCOME_OTHER, OUTCOME_SECTION, EmittedRow, FixupRow, OutRow,
    RebuildRow, SectionRow,
)
from traits cimport TRAIT_ALIGNS_ARRAYS, TRAIT_LEAN_NAMES
from base.vector cimport vec_append, vec_push


cdef inline int32_t relocation_row(Merge* m, int32_t at, int32_t out, bint explicit) noexcept nogil:
    """The output's relocation section of that form for `out`, created at its first entry."""
    cdef const SectionRow* s = &m.objects.sections[at]
    cdef int32_t row = out_row(m, out).rela if explicit else out_row(m, out).rel
    cdef bint first = out_row(m, out).rela < 0 and out_row(m, out).rel < 0
    if row >= 0:
        return row
    if m.second and is_a(out_row(m, out).kind, IS_LITERALS):
        return optimizer_relocations(m, out)
    row = new_relocations(m, out, explicit)
    if row < 0:
        return -1
    out_row(m, row).source = at
    if m.second and is_renamed(out_row(m, out)):
        if out_row(m, out).bank == PIC_BANK:
            name_out(m, row, <const uint8_t*>b".rela.nv.constant.pic", 21)
        else:
            name_out(m, row, <const uint8_t*>b".rela.nv.constant.user", 22)
    else:
        name_relocations(m, row, s, explicit)
    if first and m.objects.mode & M_KEEP_RELOCS:
        resolved_row(m, out)
    return row


cdef inline void name_relocations(Merge* m, int32_t row, const SectionRow* s,
                                  bint explicit) noexcept nogil:
    """Name a relocation section after what it patches, whatever the input calls it."""
    cdef const SectionRow* target = &m.objects.sections[s.target]
    cdef const uint8_t* name = m.objects.arena + s.name
    cdef const uint8_t* patched = m.objects.arena + target.name
    cdef uint32_t size = 5 if explicit else 4
    cdef uint8_t* text
    if (s.name_size == size + target.name_size
            and memcmp(name, <const char*>b".rela", size) == 0
            and memcmp(name + size, patched, target.name_size) == 0):
        name_out(m, row, name, s.name_size)
        return
    text = pool_join(&m.work.texts, b".rela" if explicit else b".rel", size, patched,
                     target.name_size)
    if text == NULL:
        m.failed = True
        return
    name_out(m, row, text, size + target.name_size)


cdef inline int32_t mercury_relocation_row(Merge* m, int32_t at, int32_t out) noexcept nogil:
    cdef int32_t plain = out_row(m, out).rela
    cdef int32_t row
    if plain < 0:
        plain = relocation_row_for_mercury(m, at, out)
        if plain < 0:
            return -1
    row = out_row(m, plain).merc
    return row if row >= 0 else new_mercury_relocations(m, plain, at)


cdef inline int32_t relocation_row_for_mercury(Merge* m, int32_t at, int32_t out) noexcept nogil:
    """A mercury relocation section without a plain one: the plain one is created all the same."""
    cdef const SectionRow* s = &m.objects.sections[at]
    cdef int32_t row
    if is_a(out_row(m, out).kind, IS_LITERALS):
        return optimizer_relocations(m, out)
    row = new_relocations(m, out, True)
    if row < 0:
        return -1
    out_row(m, row).source = at
    name_out(m, row, m.objects.arena + s.name + 8, s.name_size - 8)
    if m.objects.mode & M_KEEP_RELOCS and is_a(out_row(m, out).kind, IS_VARIABLES):
        resolved_row(m, out)
    return row


cdef inline void count_entry(Merge* m, int32_t counter, int32_t out, bint explicit,
                             int64_t addend) noexcept nogil:
    """The rule of two forms: a later explicit entry with addend 0 brings the other form's section.

    Newer releases have no such rule.

    `counter` is the OutRow whose `counted` is used: code has two, one for each of its lists.
    """
    cdef OutRow* row = out_row(m, counter)
    cdef uint8_t* text
    cdef uint32_t size
    cdef int32_t rel
    row.counted += explicit
    if not explicit or addend != 0 or row.counted < 2 or out_row(m, out).rel >= 0:
        return
    if m.objects.traits & TRAIT_LEAN_NAMES:
        return
    size = listed(m, out).size
    text = pool_join(&m.work.texts, b".rel", 4, listed(m, out).text, size)
    rel = new_relocations(m, out, False)
    if text == NULL or rel < 0:
        m.failed = True
        return
    name_out(m, rel, text, 4 + size)


cdef inline void add_emitted(Merge* m, const RelocList* relocs, const Entry* x) noexcept nogil:
    cdef EmittedRow* emitted = <EmittedRow*>vec_push(&m.columns.emitted)
    cdef OutRow* row = out_row(m, relocs.reloc)
    cdef uint64_t* align
    if emitted == NULL:
        m.failed = True
        return
    emitted.offset = x.r.r_offset + relocs.base
    emitted.addend = x.addend
    emitted.type = x.r.r_type if m.objects.mode & M_RELOCATABLE else facts_of(x.r.r_type).plain
    emitted.entity = x.entity
    emitted.section = -1
    if x.how & FIXUP_INSTANCE:
        align = &m.columns.array_align[relocs.function]
        if align[0] == 0:
            align[0] = 1
            m.failed |= not vec_append(&m.work.array_kernels, &relocs.function, 1)
        if m.objects.traits & TRAIT_ALIGNS_ARRAYS:
            align[0] = max(align[0], m.objects.symbols[m.merged.entities[x.entity].first].value)
        emitted.entity = -1
        emitted.section = -2 - relocs.function
    if x.section >= 0:
        emitted.section = m.columns.out_of[x.section]
        if emitted.section >= 0 and out_row(m, emitted.section).twin >= 0:
            emitted.section = out_row(m, emitted.section).twin    # mercury has no section symbols
        emitted.addend += <int64_t>m.columns.base[x.section]
    emitted.next = row.head
    row.head = <int32_t>(m.columns.emitted.count - 1)
    row.count += 1


cdef inline void add_fixup(Merge* m, const RelocList* relocs, const Entry* x,
                         int32_t reloc) noexcept nogil:
    cdef FixupRow* fixup = <FixupRow*>vec_push(&m.columns.fixups)
    if fixup == NULL:
        m.failed = True
        return
    fixup.offset = x.r.r_offset + relocs.base
    fixup.addend = x.addend
    fixup.type = x.r.r_type
    fixup.out = relocs.patched
    fixup.entity = x.entity
    fixup.section = x.section
    fixup.function = relocs.function
    fixup.how = x.how | (FIXUP_MERC if relocs.mercury else 0)
    fixup.reloc = reloc


cdef inline void add_rebuild(Merge* m, const RelocList* relocs, const Entry* x) noexcept nogil:
    cdef RebuildRow* row = <RebuildRow*>vec_push(&m.columns.rebuilds)
    if row == NULL:
        m.failed = True
        return
    row.offset = x.r.r_offset
    row.addend = x.addend
    row.out = relocs.out
    row.piece = m.objects.sections[relocs.at].target
    row.type = x.r.r_type
    row.entity = x.entity
    row.section = x.section
    if x.entity < 0:
        row.outcome = OUTCOME_SECTION
    elif m.merged.entities[x.entity].kind != E_FUNC:
        row.outcome = OUTCOME_OTHER
    elif out_of_debug(m, x.symbol, True):
        row.outcome = OUTCOME_LOST
    elif not m.merged.entities[x.entity].flags & EF_LIVE:
        row.outcome = OUTCOME_DEAD
    else:
        row.outcome = OUTCOME_LIVE
