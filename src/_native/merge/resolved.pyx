"""--preserve-relocs: the record of relocations that the link resolved.

`.nv.resolvedrela.S` lists what was resolved in S under the original types; its relocation sections
of both forms share one list, newest first, as if every entry were pushed to the front while the
inputs are read (docs/format-notes.md). The addend of the implicit form is what the field held. What
was only cleared leaves no record.

From sm_100 on, only shared memory is recorded, in plain and in mercury code.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from base.elf64 cimport Rela
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from base.vector cimport Vec, vec_append, vec_push
from elfnumbers cimport SHF_MERCURY, SHT_CUDA_MERC_RESOLVED_RELA
from pylink._native.tables cimport Emitted, MergedTables, Outs, PlacedTables, detach_rows
from rownumbers cimport EF_UNSIZED, E_CONST0_SIZE, E_SHARED, E_UNIFIED, FIXUP_CLEAR, FIXUP_MERC
from sectionkinds cimport IS_CODE, IS_COMMON_SHARED, K_MERC_RELA, K_RESOLVED_RELA
from tables.kinds cimport is_a
from tables.rows cimport EmittedRow, EntityRow, FixupRow, OutRow, OutSymbolRow, start_out
from tables.views cimport MergedView
from traits cimport TRAIT_MERCURY


ctypedef struct Record:
    MergedView merged
    uint32_t traits
    int32_t* lists              # by OutRow: the row that lists what was resolved in it, or -1
    uint8_t* named              # by entity: the output has its symbol
    Vec outs
    Vec emitted


def record_resolved(MergedTables merged not None):
    merged.fill()
    cdef Record record
    cdef Scratch scratch
    merged.view(&record.merged)
    record.traits = merged.objects.traits
    scratch_init(&scratch)
    try:
        record.named = <uint8_t*>scratch_zeros(&scratch, record.merged.entity_count, 1)
        record.lists = scratch_nones(&scratch, record.merged.out_count)
        scratch_vector(&scratch, &record.outs, sizeof(OutRow))
        scratch_vector(&scratch, &record.emitted, sizeof(EmittedRow))
        if not scratch.failed:
            with nogil:
                scratch.failed = not (vec_append(&record.outs, record.merged.outs,
                                                 record.merged.out_count)
                                      and vec_append(&record.emitted, record.merged.emitted,
                                                     record.merged.emitted_count)
                                      and find_record_lists(&record, &scratch)
                                      and record_all(&record))
        if scratch.failed:
            raise MemoryError
        merged.outs = Outs(detach_rows(&record.outs))
        merged.emitted = Emitted(detach_rows(&record.emitted))
    finally:
        scratch_free(&scratch)


cdef bint find_record_lists(Record* record, Scratch* scratch) noexcept nogil:
    """Fill `lists`; False without memory.

    Sections of one name, code of local functions, share the first one's list.
    """
    cdef const OutRow* row = record.merged.outs
    cdef size_t i, names = 0
    cdef int32_t* first
    for i in range(record.merged.out_count):
        if row[i].kind == K_RESOLVED_RELA and row[i].symbol_name >= names:
            names = <size_t>row[i].symbol_name + 1
    first = <int32_t*>scratch_zeros(scratch, names, 4)      # by offset of a name: OutRow + 1
    if first == NULL:
        return False
    for i in range(record.merged.out_count):
        if row[i].kind == K_RESOLVED_RELA:
            if first[row[i].symbol_name] == 0:
                first[row[i].symbol_name] = <int32_t>i + 1
            record.lists[row[i].target] = first[row[i].symbol_name] - 1
    return True


cdef bint record_all(Record* record) noexcept nogil:
    """Enter what was resolved; False without memory."""
    cdef const OutSymbolRow* symbol
    cdef const FixupRow* fixup
    cdef size_t i
    cdef int32_t at
    for i in range(record.merged.out_symbol_count):
        symbol = &record.merged.out_symbols[i]
        if symbol.entity >= 0 and not symbol.dropped:
            record.named[symbol.entity] = True
    for i in range(record.merged.fixup_count):
        fixup = &record.merged.fixups[i]
        if fixup.reloc < 0 or fixup.how & FIXUP_CLEAR or not has_record(record, fixup):
            continue
        at = find_or_create_list(record, fixup)
        if at == NO_MEMORY or (at >= 0 and not push_entry(record, at, fixup)):
            return False
    return True


cdef bint has_record(Record* record, const FixupRow* fixup) noexcept nogil:
    """Whether a resolved relocation is listed: it needs a symbol of the output to name."""
    cdef const EntityRow* e = NULL
    if fixup.entity >= 0:
        e = &record.merged.entities[fixup.entity]
        if not record.named[fixup.entity] or e.kind in (E_UNIFIED, E_CONST0_SIZE):
            return False
    if not record.traits & TRAIT_MERCURY:
        return True
    return (e != NULL and e.kind == E_SHARED
            and is_a(row_at(record, fixup.out).kind, IS_CODE))


def names_deleted(PlacedTables placed not None, uint64_t reserved):
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


cdef inline OutRow* row_at(Record* r, size_t number) noexcept nogil:
    return <OutRow*>r.outs.data + number


cdef int32_t find_or_create_list(Record* record, const FixupRow* fixup) noexcept nogil:
    """The section of a resolved relocation, made for mercury ones; -1 without one, NO_MEMORY."""
    cdef const OutRow* reloc = row_at(record, fixup.reloc)
    cdef int32_t plain = record.lists[row_at(record, reloc.twin).target if reloc.twin >= 0
                                      else reloc.target]
    cdef OutRow* row
    if plain < 0 or not fixup.how & FIXUP_MERC:
        return plain
    if row_at(record, plain).merc < 0:
        row = <OutRow*>vec_push(&record.outs)
        if row == NULL:
            return NO_MEMORY
        start_out(row, K_MERC_RELA, SHT_CUDA_MERC_RESOLVED_RELA, SHF_MERCURY | 0x40, 8,
                  sizeof(Rela))
        row.twin = plain
        row_at(record, plain).merc = <int32_t>(record.outs.count - 1)
    return row_at(record, plain).merc


cdef bint push_entry(Record* record, int32_t number, const FixupRow* fixup) noexcept nogil:
    """Add the entry that records a resolved relocation; False without memory."""
    cdef OutRow* row = row_at(record, number)
    cdef EmittedRow* emitted = <EmittedRow*>vec_push(&record.emitted)
    if emitted == NULL:
        return False
    emitted.offset = fixup.offset
    emitted.addend = fixup.addend
    emitted.type = fixup.type
    emitted.entity = fixup.entity
    emitted.section = -1
    if fixup.section >= 0:
        emitted.section = record.merged.out_of[fixup.section]
        emitted.addend += <int64_t>record.merged.base[fixup.section]
    emitted.next = row.head
    row.head = <int32_t>(record.emitted.count - 1)
    row.count += 1
    return True
