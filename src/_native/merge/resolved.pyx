"""--preserve-relocs: the record of relocations that the link resolved.

`.nv.resolvedrela.S` lists what was resolved in S under the original types; its relocation sections
of both forms share one list, newest first, as if every entry were pushed to the front while the
inputs are read (docs/format-notes.md). The addend of the implicit form is what the field held. What
was only cleared leaves no record.

From sm_100 on, only shared memory is recorded, in plain and in mercury code.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from elfnumbers cimport SHF_MERCURY, SHT_CUDA_MERC_RESOLVED_RELA
from sectionkinds cimport IS_CODE, IS_COMMON_SHARED, K_MERC_RELA, K_RESOLVED_RELA
from base.elf64 cimport Rela
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from pylink._native.tables cimport Emitted, MergedTables, Outs, PlacedTables, take_rows
from tables.kinds cimport is_a
from tables.rows cimport (
    EF_UNSIZED, E_CONST0_SIZE, E_SHARED, E_UNIFIED, FIXUP_CLEAR, FIXUP_MERC, EmittedRow, EntityRow,
    FixupRow, OutRow, OutSymbolRow, start_out,
)
from tables.views cimport MergedView
from traits cimport TRAIT_MERCURY
from base.vector cimport Vec, vec_append, vec_push


ctypedef struct Record:
    MergedView merged
    uint32_t traits
    int32_t* lists              # by OutRow: the row that lists what was resolved in it, or -1
    uint8_t* named              # by entity: the output has its symbol
    Vec outs
    Vec emitted


def record_resolved(MergedTables merged not None):
    """List every FixupRow with its .nv.resolvedrela section, in `outs` and `emitted`.

    The entries are EmittedRow rows after those of `emitted`; mercury records get their sections
    here, as twins of the plain ones.
    """
    merged.fill()
    cdef Record r
    cdef Scratch scratch
    merged.view(&r.merged)
    r.traits = merged.objects.traits
    scratch_init(&scratch)
    try:
        r.named = <uint8_t*>scratch_zeros(&scratch, r.merged.entity_count, 1)
        r.lists = scratch_nones(&scratch, r.merged.out_count)
        scratch_vector(&scratch, &r.outs, sizeof(OutRow))
        scratch_vector(&scratch, &r.emitted, sizeof(EmittedRow))
        if not scratch.failed:
            with nogil:
                scratch.failed = not (
                    vec_append(&r.outs, r.merged.outs, r.merged.out_count)
                    and vec_append(&r.emitted, r.merged.emitted, r.merged.emitted_count)
                    and find_lists(&r, &scratch) and record_all(&r))
        if scratch.failed:
            raise MemoryError
        merged.outs = Outs(take_rows(&r.outs))
        merged.emitted = Emitted(take_rows(&r.emitted))
    finally:
        scratch_free(&scratch)


cdef bint find_lists(Record* r, Scratch* scratch) noexcept nogil:
    """Fill `lists`; False without memory.

    Sections of one name, code of local functions, share the first one's list.
    """
    cdef const OutRow* row = r.merged.outs
    cdef size_t i, names = 0
    cdef int32_t* first
    for i in range(r.merged.out_count):
        if row[i].kind == K_RESOLVED_RELA and row[i].symbol_name >= names:
            names = <size_t>row[i].symbol_name + 1
    first = <int32_t*>scratch_zeros(scratch, names, 4)      # by offset of a name: OutRow + 1
    if first == NULL:
        return False
    for i in range(r.merged.out_count):
        if row[i].kind == K_RESOLVED_RELA:
            if first[row[i].symbol_name] == 0:
                first[row[i].symbol_name] = <int32_t>i + 1
            r.lists[row[i].target] = first[row[i].symbol_name] - 1
    return True


cdef bint record_all(Record* r) noexcept nogil:
    """Enter what was resolved; False without memory."""
    cdef const OutSymbolRow* symbol
    cdef const FixupRow* fixup
    cdef size_t i
    cdef int32_t at
    for i in range(r.merged.out_symbol_count):
        symbol = &r.merged.out_symbols[i]
        if symbol.entity >= 0 and not symbol.dropped:
            r.named[symbol.entity] = True
    for i in range(r.merged.fixup_count):
        fixup = &r.merged.fixups[i]
        if fixup.reloc < 0 or fixup.how & FIXUP_CLEAR or not has_record(r, fixup):
            continue
        at = list_of(r, fixup)
        if at == NO_MEMORY or (at >= 0 and not push_entry(r, at, fixup)):
            return False
    return True


cdef bint has_record(Record* r, const FixupRow* fixup) noexcept nogil:
    """Whether a resolved relocation is listed: it needs a symbol of the output to name."""
    cdef const EntityRow* e = &r.merged.entities[fixup.entity]
    if fixup.entity >= 0 and (not r.named[fixup.entity] or e.kind in (E_UNIFIED, E_CONST0_SIZE)):
        return False
    if not r.traits & TRAIT_MERCURY:
        return True
    return (fixup.entity >= 0 and e.kind == E_SHARED
            and is_a(out_row(r, fixup.out).kind, IS_CODE))


def names_deleted(PlacedTables placed not None, uint64_t reserved):
    """Whether debug data refers to an extern array that has lost its symbol.

    That matters where .nv_debug.shared has variables, more than the `reserved` bytes.
    """
    cdef MergedTables merged = placed.merged
    cdef size_t out_count = placed.outs.count
    cdef size_t n = merged.fixups.count, i
    cdef const EntityRow* e = merged.entities.rows
    cdef const OutRow* row = placed.outs.rows
    cdef const FixupRow* fixup = merged.fixups.rows
    cdef bint common = False
    for i in range(out_count):
        common = common or (is_a(row[i].kind, IS_COMMON_SHARED) and row[i].size > reserved)
    for i in range(n if common else 0):
        if (fixup[i].entity >= 0 and e[fixup[i].entity].flags & EF_UNSIZED
                and not is_a(row[fixup[i].out].kind, IS_CODE)):
            return True
    return False


cdef enum:
    NO_MEMORY = -2


cdef inline OutRow* out_row(Record* r, size_t at) noexcept nogil:
    return <OutRow*>r.outs.data + at


cdef int32_t list_of(Record* r, const FixupRow* fixup) noexcept nogil:
    """The section that lists a resolved relocation; -1 without one."""
    cdef const OutRow* reloc = out_row(r, fixup.reloc)
    cdef int32_t plain = r.lists[out_row(r, reloc.twin).target if reloc.twin >= 0
                                 else reloc.target]
    cdef OutRow* row
    if plain < 0 or not fixup.how & FIXUP_MERC:
        return plain
    if out_row(r, plain).merc < 0:
        row = <OutRow*>vec_push(&r.outs)
        if row == NULL:
            return NO_MEMORY
        start_out(row, K_MERC_RELA, SHT_CUDA_MERC_RESOLVED_RELA, SHF_MERCURY | 0x40, 8,
                  sizeof(Rela))
        row.twin = plain
        out_row(r, plain).merc = <int32_t>(r.outs.count - 1)
    return out_row(r, plain).merc


cdef bint push_entry(Record* r, int32_t at, const FixupRow* fixup) noexcept nogil:
    cdef OutRow* row = out_row(r, at)
    cdef EmittedRow* emitted = <EmittedRow*>vec_push(&r.emitted)
    if emitted == NULL:
        return False
    emitted.offset = fixup.offset
    emitted.addend = fixup.addend
    emitted.type = fixup.type
    emitted.entity = fixup.entity
    emitted.section = -1
    if fixup.section >= 0:
        emitted.section = r.merged.out_of[fixup.section]
        emitted.addend += <int64_t>r.merged.base[fixup.section]
    emitted.next = row.head
    row.head = <int32_t>(r.emitted.count - 1)
    row.count += 1
    return True
