"""--preserve-relocs: the record of relocations that the link resolved.

`.nv.resolvedrela.S` lists what was resolved in S under the original types; its relocation sections
of both forms share one list, newest first, as if every entry were pushed to the front while the
inputs are read (docs/format-notes.md). The addend of the implicit form is what the field held. What
was only cleared leaves no record.

From sm_100 on, only shared memory is recorded, in plain and in mercury code.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from elfnumbers cimport SHF_MERCURY, SHT_CUDA_MERC_RESOLVED_RELA
from libc.stdint cimport uint32_t
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
from traits cimport TRAIT_MERCURY
from base.vector cimport Vec, vec_append, vec_push


def record_resolved(MergedTables merged not None):
    """List every FixupRow with its .nv.resolvedrela section, in `outs` and `emitted`.

    The entries are EmittedRow rows after those of `emitted`; mercury records get their sections
    here, as twins of the plain ones.
    """
    merged.fill()
    cdef size_t n = merged.outs.count, i
    cdef size_t fixup_count = merged.fixups.count
    cdef size_t emitted_count = merged.emitted.count
    cdef const EntityRow* e = merged.entities.rows
    cdef const FixupRow* fixup = merged.fixups.rows
    cdef const int32_t* out = merged.out_of.rows
    cdef const uint64_t* piece = merged.base.rows
    cdef size_t entity_count = merged.entities.count
    cdef size_t symbol_count = merged.out_symbols.count
    cdef const OutSymbolRow* symbol = merged.out_symbols.rows
    cdef int32_t* record                # by OutRow: its list
    cdef uint8_t* named                 # by entity: the output has its symbol
    cdef Scratch scratch
    cdef Vec rows, entries
    cdef int32_t at
    scratch_init(&scratch)
    try:
        named = <uint8_t*>scratch_zeros(&scratch, entity_count, 1)
        scratch_vector(&scratch, &rows, sizeof(OutRow))
        scratch_vector(&scratch, &entries, sizeof(EmittedRow))
        if not scratch.failed and not (
                vec_append(&rows, merged.outs.rows, n)
                and vec_append(&entries, merged.emitted.rows, emitted_count)):
            scratch.failed = True
        with nogil:
            record = find_lists(&scratch, <const OutRow*>rows.data, n)
            for i in range(0 if scratch.failed else symbol_count):
                if symbol[i].entity >= 0 and not symbol[i].dropped:
                    named[symbol[i].entity] = True
            for i in range(0 if scratch.failed else fixup_count):
                if fixup[i].reloc < 0 or fixup[i].how & FIXUP_CLEAR:
                    continue
                if not has_record(e, &fixup[i], named, out_row(&rows, fixup[i].out),
                                  merged.objects.traits):
                    continue
                at = list_of(&rows, record, &fixup[i])
                if at == NO_MEMORY or (at >= 0 and not push_entry(
                        &entries, out_row(&rows, at), &fixup[i], out, piece)):
                    scratch.failed = True
                    break
        if scratch.failed:
            raise MemoryError
        merged.outs = Outs(take_rows(&rows))
        merged.emitted = Emitted(take_rows(&entries))
    finally:
        scratch_free(&scratch)


cdef int32_t* find_lists(Scratch* scratch, const OutRow* row, size_t n) noexcept nogil:
    """By OutRow: the row that lists what was resolved in it, or -1.

    Sections of one name, code of local functions, share the first one's list.
    """
    cdef int32_t* record = scratch_nones(scratch, n)
    cdef size_t i, names = 0
    cdef int32_t* first
    if scratch.failed:
        return NULL
    for i in range(n):
        if row[i].kind == K_RESOLVED_RELA and row[i].symbol_name >= names:
            names = <size_t>row[i].symbol_name + 1
    first = <int32_t*>scratch_zeros(scratch, names, 4)      # by offset of a name: OutRow + 1
    if first == NULL:
        return NULL
    for i in range(n):
        if row[i].kind == K_RESOLVED_RELA:
            if first[row[i].symbol_name] == 0:
                first[row[i].symbol_name] = <int32_t>i + 1
            record[row[i].target] = first[row[i].symbol_name] - 1
    return record


cdef bint has_record(const EntityRow* e, const FixupRow* fixup, const uint8_t* named,
                     const OutRow* target, uint32_t traits) noexcept nogil:
    """Whether a resolved relocation is listed: it needs a symbol of the output to name."""
    if fixup.entity >= 0 and (not named[fixup.entity]
                            or e[fixup.entity].kind in (E_UNIFIED, E_CONST0_SIZE)):
        return False
    if not traits & TRAIT_MERCURY:
        return True
    return fixup.entity >= 0 and e[fixup.entity].kind == E_SHARED and is_a(target.kind, IS_CODE)


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


cdef inline OutRow* out_row(Vec* rows, size_t at) noexcept nogil:
    return <OutRow*>rows.data + at


cdef int32_t list_of(Vec* rows, const int32_t* record, const FixupRow* fixup) noexcept nogil:
    """The section that lists a resolved relocation; -1 without one."""
    cdef const OutRow* reloc = out_row(rows, fixup.reloc)
    cdef int32_t plain = record[out_row(rows, reloc.twin).target if reloc.twin >= 0
                                else reloc.target]
    cdef OutRow* row
    if plain < 0 or not fixup.how & FIXUP_MERC or out_row(rows, plain).merc >= 0:
        return out_row(rows, plain).merc if plain >= 0 and fixup.how & FIXUP_MERC else plain
    row = <OutRow*>vec_push(rows)
    if row == NULL:
        return NO_MEMORY
    start_out(row, K_MERC_RELA, SHT_CUDA_MERC_RESOLVED_RELA, SHF_MERCURY | 0x40, 8, sizeof(Rela))
    row.twin = plain
    out_row(rows, plain).merc = <int32_t>(rows.count - 1)
    return <int32_t>(rows.count - 1)


cdef bint push_entry(Vec* entries, OutRow* row, const FixupRow* fixup, const int32_t* out,
                     const uint64_t* piece) noexcept nogil:
    cdef EmittedRow* emitted = <EmittedRow*>vec_push(entries)
    if emitted == NULL:
        return False
    emitted.offset = fixup.offset
    emitted.addend = fixup.addend
    emitted.type = fixup.type
    emitted.entity = fixup.entity
    emitted.section = -1
    if fixup.section >= 0:
        emitted.section = out[fixup.section]
        emitted.addend += <int64_t>piece[fixup.section]
    emitted.next = row.head
    row.head = <int32_t>(entries.count - 1)
    row.count += 1
    return True
