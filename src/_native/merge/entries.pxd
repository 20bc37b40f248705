# Relocation sections of the output, and their entries.
#
# A section of the output can have up to three relocation sections: `.rela.S`, `.rel.S`, and the
# mercury twin of `.rela.S`, which has no number. Most are created by the first entry that needs
# them, which decides their numbers (`find_or_create_relocations`,
# `find_or_create_mercury_relocations`). By the rule of two forms, which `count_for_two_forms`
# applies, RELA entries also create an empty .rel section:
#
#     .rela.text.f of an input     .rela.text.f     .rel.text.f
#     addend 8                     created here
#     addend 4
#     addend 0, not the first                       created here, and stays without entries
#
# The entries of a relocation section form a list, the newest first: `head` of its OutRow is the
# EmittedRow added last, and `next` of each leads to the one before it. A relocation that the link
# resolves is a FixupRow, one of debug data that is computed again a RebuildRow.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from base.nameindex cimport pool_join, pool_join_text
from base.texts cimport MERC_PREFIX
from base.vector cimport vec_append, vec_push
from merge.decide cimport FATE_FUNCTION, RelocEntry, RelocList, is_removed_from_debug
from merge.newrows cimport (
    create_resolved_section, find_or_create_optimizer_relocations, name_out, name_out_text,
    new_mercury_relocations, new_relocations,
)
from merge.state cimport Merge, out_row, section_entry
from rownumbers cimport (
    EF_LIVE, E_FUNC, FIXUP_INSTANCE, FIXUP_MERC, LINK_KEEP_RELOCS, LINK_RELOCATABLE,
)
from sectionkinds cimport IS_LITERALS, IS_VARIABLES, PIC_BANK
from tables.kinds cimport is_a, is_renamed
from tables.rows cimport (
    OUTCOME_DEAD, OUTCOME_LIVE, OUTCOME_LOST, OUTCOME_OTHER, OUTCOME_SECTION, EmittedNumber,
    EmittedRow, FixupRow, OutNumber, OutRow, RebuildRow, SectionNumber, SectionRow,
)
from traits cimport TRAIT_ALIGNS_ARRAYS, TRAIT_LEAN_NAMES


cdef inline OutNumber find_or_create_relocations(Merge* merge, SectionNumber source, OutNumber out,
                                                 bint is_rela) noexcept nogil:
    """Return the relocation section of `out`, RELA or else REL; -1 without memory.

    It is created if it is new, for the relocation section `source` of an input. For a pool from
    sm_100 on, it is always RELA.
    """
    cdef const SectionRow* source_row = &merge.objects.sections[source]
    cdef OutNumber relocations = out_row(merge, out).rela if is_rela else out_row(merge, out).rel
    cdef bint is_first = out_row(merge, out).rela < 0 and out_row(merge, out).rel < 0
    if relocations >= 0:
        return relocations
    if merge.has_finalizer and is_a(out_row(merge, out).kind, IS_LITERALS):
        return find_or_create_optimizer_relocations(merge, out)
    relocations = new_relocations(merge, out, is_rela)
    if relocations < 0:
        return -1
    out_row(merge, relocations).source = source
    if merge.has_finalizer and is_renamed(out_row(merge, out)):
        if out_row(merge, out).bank == PIC_BANK:
            name_out_text(merge, relocations, b".rela.nv.constant.pic")
        else:
            name_out_text(merge, relocations, b".rela.nv.constant.user")
    else:
        name_relocations(merge, relocations, source_row, is_rela)
    if is_first and merge.objects.mode & LINK_KEEP_RELOCS:
        create_resolved_section(merge, out)
    return relocations


cdef inline void name_relocations(Merge* merge, OutNumber relocations, const SectionRow* source,
                                  bint is_rela) noexcept nogil:
    """Name a relocation section after the section it patches, whatever the input calls it.

    The input's own name needs no copy if it is the right one.
    """
    cdef const SectionRow* target = &merge.objects.sections[source.target]
    cdef const uint8_t* name = merge.objects.arena + source.name
    cdef const uint8_t* patched_name = merge.objects.arena + target.name
    cdef uint32_t prefix_size = 5 if is_rela else 4     # bytes of ".rela" or ".rel"
    cdef uint8_t* text
    if (source.name_size == prefix_size + target.name_size
            and memcmp(name, <const char*>b".rela", prefix_size) == 0
            and memcmp(name + prefix_size, patched_name, target.name_size) == 0):
        name_out(merge, relocations, name, source.name_size)
        return
    text = pool_join(&merge.work.texts, b".rela" if is_rela else b".rel", prefix_size, patched_name,
                     target.name_size)
    if text == NULL:
        merge.failed = True
        return
    name_out(merge, relocations, text, prefix_size + target.name_size)


cdef inline OutNumber find_or_create_mercury_relocations(Merge* merge, SectionNumber source,
                                                         OutNumber out) noexcept nogil:
    """Return the mercury relocation section for `out`, created if it is new; -1 without memory.

    It is the twin of the plain relocation section of `out`, which is also created if it is new.
    """
    cdef OutNumber plain = out_row(merge, out).rela
    cdef OutNumber mercury
    if plain < 0:
        plain = create_relocations_for_mercury(merge, source, out)
        if plain < 0:
            return -1
    mercury = out_row(merge, plain).merc
    return mercury if mercury >= 0 else new_mercury_relocations(merge, plain, source)


cdef inline OutNumber create_relocations_for_mercury(Merge* merge, SectionNumber source,
                                                     OutNumber out) noexcept nogil:
    """Create .rela of `out` for the input's mercury section `source`; -1 without memory."""
    cdef const SectionRow* source_row = &merge.objects.sections[source]
    cdef OutNumber relocations
    if is_a(out_row(merge, out).kind, IS_LITERALS):
        return find_or_create_optimizer_relocations(merge, out)
    relocations = new_relocations(merge, out, True)
    if relocations < 0:
        return -1
    out_row(merge, relocations).source = source
    name_out(merge, relocations, merge.objects.arena + source_row.name + MERC_PREFIX,
             source_row.name_size - MERC_PREFIX)
    if merge.objects.mode & LINK_KEEP_RELOCS and is_a(out_row(merge, out).kind, IS_VARIABLES):
        create_resolved_section(merge, out)
    return relocations


cdef inline bint count_for_two_forms(Merge* merge, RelocList* relocs, OutNumber counter,
                                     int64_t addend) noexcept nogil:
    """Count an entry for the rule of two forms, and return whether the rule asks for .rel.

    A RELA entry with addend 0 does, unless it is the first entry or .rel exists. `counter` is the
    OutRow whose `rela_count` counts all entries of `relocs`. If they patch a capsule, the mercury
    form of code, it is their relocation section. Else it is the plain section that they patch.
    """
    if not relocs.is_rela:
        return False
    if relocs.counter < 0:
        relocs.counter = counter
        relocs.rela_count = out_row(merge, counter).rela_count
    relocs.rela_count += 1
    return addend == 0 and relocs.rela_count >= 2 and out_row(merge, relocs.out).rel < 0


cdef inline void create_other_form(Merge* merge, OutNumber out) noexcept nogil:
    """Create the .rel section of `out` that the rule of two forms asks for.

    Releases from 13.5 on (TRAIT_LEAN_NAMES) do not have the rule.
    """
    cdef uint32_t size = section_entry(merge, out).size
    cdef uint8_t* text
    cdef OutNumber rel
    if merge.objects.traits & TRAIT_LEAN_NAMES:
        return
    text = pool_join_text(&merge.work.texts, b".rel", section_entry(merge, out).text, &size)
    rel = new_relocations(merge, out, False)
    if text == NULL or rel < 0:
        merge.failed = True
        return
    name_out(merge, rel, text, size)


cdef inline void add_emitted(Merge* merge, RelocList* relocs, RelocEntry entry) noexcept nogil:
    """Add an entry at the front of the list of its relocation section, `relocs.listed_in`."""
    cdef EmittedRow* emitted = <EmittedRow*>vec_push(&merge.columns.emitted)
    cdef uint64_t* align            # of the extern arrays of the kernel whose code has the entry
    if emitted == NULL:
        merge.failed = True
        return
    emitted.offset = entry.input.r_offset + relocs.base
    emitted.addend = entry.new_addend
    emitted.type = (entry.input.r_type if merge.objects.mode & LINK_RELOCATABLE
                    else entry.facts.plain)
    emitted.entity = entry.entity
    emitted.section = -1
    if entry.how & FIXUP_INSTANCE:
        align = &merge.columns.array_align[relocs.function]
        if align[0] == 0:
            align[0] = 1
            merge.failed |= not vec_append(&merge.work.array_kernels, &relocs.function, 1)
        if merge.objects.traits & TRAIT_ALIGNS_ARRAYS:
            align[0] = max(align[0],
                           merge.objects.symbols[merge.merged.entities[entry.entity].first].value)
        emitted.entity = -1
        # The number stands for the kernel's instance, the symbol of its extern arrays (EmittedRow).
        emitted.section = <OutNumber>(-2 - relocs.function)
    if entry.section >= 0:
        emitted.section = merge.columns.out_of[entry.section]
        if emitted.section >= 0 and out_row(merge, emitted.section).twin >= 0:
            # Mercury sections have no section symbols: that of the plain section stands for both.
            emitted.section = out_row(merge, emitted.section).twin
        emitted.addend += <int64_t>merge.columns.base[entry.section]
    emitted.next = relocs.head
    relocs.head = <EmittedNumber>(merge.columns.emitted.count - 1)
    relocs.emitted_count += 1


cdef inline void add_fixup(Merge* merge, const RelocList* relocs, RelocEntry entry,
                           OutNumber listed_in) noexcept nogil:
    """Add a relocation that the link resolves.

    `listed_in` is the relocation section that it would be in, for the record that
    --preserve-relocs makes; -1 if the relocation leaves no record.
    """
    cdef FixupRow* fixup = <FixupRow*>vec_push(&merge.columns.fixups)
    if fixup == NULL:
        merge.failed = True
        return
    fixup.offset = entry.input.r_offset + relocs.base
    fixup.addend = entry.new_addend
    fixup.type = entry.input.r_type
    fixup.out = relocs.patched_out
    fixup.entity = entry.entity
    fixup.section = entry.section
    fixup.function = relocs.function
    fixup.how = entry.how | (FIXUP_MERC if relocs.is_mercury else 0)
    fixup.listed_in = listed_in


cdef inline void add_rebuild(Merge* merge, const RelocList* relocs,
                             RelocEntry entry) noexcept nogil:
    """Add a relocation of a debug section that the link computes again, from sm_100 on."""
    cdef RebuildRow* rebuild = <RebuildRow*>vec_push(&merge.columns.rebuilds)
    if rebuild == NULL:
        merge.failed = True
        return
    rebuild.offset = entry.input.r_offset
    rebuild.addend = entry.addend
    rebuild.out = relocs.out
    rebuild.piece = merge.objects.sections[relocs.section].target
    rebuild.type = entry.input.r_type
    rebuild.entity = entry.entity
    rebuild.section = entry.section
    if merge.work.fates[entry.symbol] == FATE_FUNCTION:
        rebuild.outcome = OUTCOME_LIVE
    elif entry.entity < 0:
        rebuild.outcome = OUTCOME_SECTION
    elif merge.merged.entities[entry.entity].kind != E_FUNC:
        rebuild.outcome = OUTCOME_OTHER
    elif is_removed_from_debug(merge, entry.symbol, True):
        rebuild.outcome = OUTCOME_LOST
    elif not merge.merged.entities[entry.entity].flags & EF_LIVE:
        rebuild.outcome = OUTCOME_DEAD
    else:
        rebuild.outcome = OUTCOME_LIVE
