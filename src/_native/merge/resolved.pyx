"""--preserve-relocs: the record of relocations that the link resolved.

`.nv.resolvedrela.S` lists what was resolved in S under the original types. REL and RELA entries
for S share that list, newest first, as if every entry were pushed to the front while the inputs are
read (docs/format-notes.md). The addend of a REL entry of type R_CUDA_64 in variables is what the
field held. A field that was only cleared leaves no record.

From sm_100 on, only relocations of code that name shared variables are recorded, in both forms of
the code, plain and mercury.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from base.elf64 cimport Rela
from base.memory cimport check_memory
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_nones, scratch_vector, scratch_zeros,
)
from base.vector cimport Vec, vec_append, vec_push
from elfnumbers cimport SHF_INFO_LINK, SHF_MERCURY, SHT_CUDA_MERC_RESOLVED_RELA
from pylink._native.results cimport MergedTables, PlacedTables
from pylink._native.tables cimport Emitted, Outs, detach_rows
from rownumbers cimport EF_UNSIZED, E_CONST0_SIZE, E_SHARED, E_UNIFIED, FIXUP_CLEAR, FIXUP_MERC
from sectionkinds cimport IS_CODE, IS_COMMON_SHARED, K_MERC_RELA, K_RESOLVED_RELA
from tables.kinds cimport is_a
from tables.rows cimport (
    EmittedNumber, EmittedRow, EntityRow, FixupRow, OutCounter, OutNumber, OutRow, OutSymbolRow,
    start_out_row,
)
from tables.views cimport MergedView
from traits cimport TRAIT_MERCURY


# State of `record_resolved`: the record is all `.nv.resolvedrela.S`, with their entries.
ctypedef struct Record:
    MergedView merged
    uint32_t traits
    OutNumber* record_of        # by OutRow: OutRow that lists what was resolved in it, or -1
    uint8_t* has_symbol         # by entity: the output has its symbol
    Vec outs                    # OutRow: those of the merge, then those created here
    Vec emitted                 # EmittedRow: those of the merge, then those added here


def record_resolved(MergedTables merged not None):
    """List the resolved relocations of each section S in its `.nv.resolvedrela.S`."""
    merged.fill()
    cdef Record record
    cdef Scratch scratch
    merged.view(&record.merged)
    record.traits = merged.objects.traits
    scratch_init(&scratch)
    try:
        record.has_symbol = <uint8_t*>scratch_zeros(&scratch, record.merged.entity_count, 1)
        record.record_of = scratch_nones(&scratch, record.merged.out_count)
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
        check_memory(not scratch.failed)
        merged.outs = Outs(detach_rows(&record.outs))
        merged.emitted = Emitted(detach_rows(&record.emitted))
    finally:
        scratch_free(&scratch)


cdef bint find_record_lists(Record* record, Scratch* scratch) noexcept nogil:
    """Fill `record_of`; False without memory.

    Several local functions can have one name, and so can their `.nv.resolvedrela.S`. All entries of
    such sections are in the list of the first one.
    """
    cdef const OutRow* outs = record.merged.outs
    cdef size_t i, names = 0
    cdef int32_t* first_of
    for i in range(record.merged.out_count):
        if outs[i].kind == K_RESOLVED_RELA and outs[i].symbol_name >= names:
            names = <size_t>outs[i].symbol_name + 1
    # By offset of a name in .strtab: 1 + the first OutRow of that name, or 0.
    first_of = <int32_t*>scratch_zeros(scratch, names, 4)
    if first_of == NULL:
        return False
    for i in range(record.merged.out_count):
        if outs[i].kind == K_RESOLVED_RELA:
            if first_of[outs[i].symbol_name] == 0:
                first_of[outs[i].symbol_name] = <int32_t>i + 1
            record.record_of[outs[i].target] = <OutNumber>(first_of[outs[i].symbol_name] - 1)
    return True


cdef bint record_all(Record* record) noexcept nogil:
    """Add an entry for each resolved relocation that has a record; False without memory."""
    cdef const OutSymbolRow* symbol
    cdef const FixupRow* fixup
    cdef size_t i
    cdef OutNumber number
    for i in range(record.merged.out_symbol_count):
        symbol = &record.merged.out_symbols[i]
        if symbol.entity >= 0 and not symbol.dropped:
            record.has_symbol[symbol.entity] = True
    for i in range(record.merged.fixup_count):
        fixup = &record.merged.fixups[i]
        if fixup.listed_in < 0 or fixup.how & FIXUP_CLEAR or not has_record(record, fixup):
            continue
        number = find_or_create_list(record, fixup)
        if number == NO_MEMORY or (number >= 0 and not push_entry(record, number, fixup)):
            return False
    return True


cdef bint has_record(Record* record, const FixupRow* fixup) noexcept nogil:
    """Return whether a resolved relocation gets an entry in the record.

    If it names an entity, the output must have the symbol, and the entity must not be a unified
    table (__UFT, __UDT) or `.nv.ptx.const0.size`. From sm_100 on, it must name a shared variable,
    and its field must be in code.
    """
    cdef const EntityRow* entity = NULL
    if fixup.entity >= 0:
        entity = &record.merged.entities[fixup.entity]
        if not record.has_symbol[fixup.entity] or entity.kind in (E_UNIFIED, E_CONST0_SIZE):
            return False
    if not record.traits & TRAIT_MERCURY:
        return True
    return (entity != NULL and entity.kind == E_SHARED
            and is_a(out_at(record, fixup.out).kind, IS_CODE))


# `reserved` is the number of bytes that the system has in .nv_debug.shared.
def refers_to_deleted_array(PlacedTables placed not None, uint64_t reserved):
    """Return whether debug data refers to an extern array that has lost its symbol."""
    cdef MergedTables merged = placed.merged
    cdef size_t out_count = placed.outs.count
    cdef size_t fixup_count = merged.fixups.count, i
    cdef const EntityRow* entities = merged.entities.rows
    cdef const OutRow* outs = placed.outs.rows
    cdef const FixupRow* fixups = merged.fixups.rows
    cdef bint has_common = False
    for i in range(out_count):
        has_common = (has_common
                      or (is_a(outs[i].kind, IS_COMMON_SHARED) and outs[i].size > reserved))
    for i in range(fixup_count if has_common else 0):
        if (fixups[i].entity >= 0 and entities[fixups[i].entity].flags & EF_UNSIZED
                and not is_a(outs[fixups[i].out].kind, IS_CODE)):
            return True
    return False


cdef enum:
    NO_MEMORY = -2          # in place of an OutRow


cdef inline OutRow* out_at(Record* record, OutCounter number) noexcept nogil:
    """Return an OutRow; it moves when the next one is added."""
    return <OutRow*>record.outs.data + number


cdef OutNumber find_or_create_list(Record* record, const FixupRow* fixup) noexcept nogil:
    """Return the OutRow that lists a resolved relocation; -1 if none does, or NO_MEMORY.

    A list of mercury relocations is created if it is new.
    """
    # `relocations` is the section that would have the entry, had it not been resolved. `plain`
    # lists what was resolved in the section that it patches, or in the plain form of that section.
    cdef const OutRow* relocations = out_at(record, fixup.listed_in)
    cdef OutNumber plain = record.record_of[out_at(record, relocations.twin).target
                                            if relocations.twin >= 0 else relocations.target]
    cdef OutRow* row
    if plain < 0 or not fixup.how & FIXUP_MERC:
        return plain
    if out_at(record, plain).merc < 0:
        row = <OutRow*>vec_push(&record.outs)
        if row == NULL:
            return NO_MEMORY
        start_out_row(row, K_MERC_RELA, SHT_CUDA_MERC_RESOLVED_RELA, SHF_MERCURY | SHF_INFO_LINK, 8,
                      sizeof(Rela))
        row.twin = plain
        out_at(record, plain).merc = <OutNumber>(record.outs.count - 1)
    return out_at(record, plain).merc


cdef bint push_entry(Record* record, OutNumber number, const FixupRow* fixup) noexcept nogil:
    """Add a resolved relocation to the list of OutRow `number`; False without memory."""
    cdef OutRow* row = out_at(record, number)
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
    row.head = <EmittedNumber>(record.emitted.count - 1)
    row.count += 1
    return True
