"""Pieces of the file-scope constant bank, the small ones folded when they repeat.

A link that selects kernels (--kernels-used, --variables-used) treats the .nv.constant3 section of
each input as one piece and writes a small piece only once (docs/format-notes.md). The fold comes
after symbols have their values and relocations their offsets, and moves neither: both go on
describing the logical bank, the plain concatenation of all pieces, while the file holds the
physical one, which is shorter. Code that reads a variable after a dropped piece therefore reads
something else. That is nvlink's behavior, and identical output needs it.

Equal bytes are not equal contents where relocations fill them in: two tables of addresses are
zeros in their files. A bank is written whole if folding would drop a piece that has relocations, or
leave one without its bytes; nvlink writes it over other constants, or refuses the program.

The only trace of the fold outside the bank is the value of the null symbol: the physical offset of
the last piece that the fold looked at and kept.
"""

from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from base.nameindex cimport NameIndex, NameSlot, TextPool, scratch_index, scratch_texts
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec, vec_extend, vec_push
from layout.repeats cimport find_piece, is_null, is_small
from pylink._native.tables cimport Blob, Outs, PlacedTables, Spans, Table, detach_rows
from sectionkinds cimport IS_ENTRIES
from tables.kinds cimport is_plain, is_user_bank
from tables.rows cimport EmittedRow, FixupRow, OutRow, SectionRow, SpanRow
from tables.views cimport MergedView, ObjectsView


ctypedef struct Bank:
    ObjectsView objects
    MergedView merged
    OutRow* outs
    size_t out_count
    int32_t out                 # the bank's OutRow, or -1
    uint64_t size               # bytes of the logical bank
    Vec blob                    # uint8_t: the physical bank
    Vec spans                   # SpanRow: that of the bank
    NameIndex kept_pieces       # small pieces that it has
    TextPool keys
    uint8_t* is_dropped         # by logical offset: whether the byte is of a dropped piece
    uint64_t null_value
    bint dropped                # whether any piece is
    bint folds                  # equal pieces stand once


def fold_pieces(PlacedTables placed not None):
    placed.fill()
    cdef Outs outs = <Outs>Table.writable(<PyObject*>placed.outs)
    cdef Bank bank
    cdef Scratch scratch
    memset(&bank, 0, sizeof(Bank))
    placed.merged.objects.view(&bank.objects)
    placed.merged.view(&bank.merged)
    if (placed.merged.out_of.count != bank.objects.section_count
            or placed.merged.base.count != bank.objects.section_count):
        raise ValueError("one output section and one offset per input section")
    bank.outs = <OutRow*>outs.rows
    bank.out_count = outs.count
    find_bank(&bank)
    if bank.out >= <int64_t>bank.out_count:
        raise ValueError("an output section does not exist")
    scratch_init(&scratch)
    try:
        bank.is_dropped = <uint8_t*>scratch_zeros(&scratch, bank.size, 1)
        scratch_vector(&scratch, &bank.blob, 1)
        scratch_vector(&scratch, &bank.spans, sizeof(SpanRow))
        scratch_index(&scratch, &bank.kept_pieces, 64)
        scratch_texts(&scratch, &bank.keys)
        if not scratch.failed:
            with nogil:
                scratch.failed = not (fold_bank(&bank) and enter_bank(&bank))
        if scratch.failed:
            raise MemoryError
        placed.outs = outs
        placed.null_value = bank.null_value or placed.null_value
        placed.add(Blob(detach_rows(&bank.blob)), Spans(detach_rows(&bank.spans)))
    finally:
        scratch_free(&scratch)


cdef bint is_piece(const Bank* bank, size_t section) noexcept nogil:
    """Whether input section `section` is a piece of the bank."""
    cdef const SectionRow* s = &bank.objects.sections[section]
    return is_user_bank(s.kind, s.bank) and bank.merged.out_of[section] >= 0


cdef void find_bank(Bank* bank) noexcept:
    cdef size_t i
    bank.out = -1
    for i in range(bank.objects.section_count):
        if is_piece(bank, i):
            bank.out = bank.merged.out_of[i]
            bank.size = max(bank.size, bank.merged.base[i] + bank.objects.sections[i].size)


cdef bint fold_bank(Bank* bank) noexcept nogil:
    """Append all pieces, folded unless that would cut a field; False without memory."""
    bank.folds = True
    if not place_pieces(bank):
        return False
    if not bank.dropped or not (is_cut(bank) or is_fixed(bank)):
        return True
    bank.blob.count = 0
    bank.folds = False
    return place_pieces(bank)


cdef bint enter_bank(Bank* bank) noexcept nogil:
    """Tell where the bank's bytes are; False without memory."""
    cdef SpanRow* span
    if bank.out < 0:
        return True
    span = <SpanRow*>vec_push(&bank.spans)
    if span == NULL:
        return False
    span.out = bank.out
    span.offset = 0
    span.size = bank.outs[bank.out].size = bank.blob.count
    return True


cdef bint place_pieces(Bank* bank) noexcept nogil:
    """Append all pieces; False without memory."""
    cdef size_t i
    for i in range(bank.objects.section_count):
        if is_piece(bank, i) and not place_piece(bank, i):
            return False
    return True


cdef bint place_piece(Bank* bank, size_t number) noexcept nogil:
    """Append one piece, unless the bank folds and an equal one of the same alignment is there."""
    cdef const SectionRow* s = &bank.objects.sections[number]
    cdef const uint8_t* data = bank.objects.arena + s.offset
    cdef bint small = is_small(s.size, s.align)
    cdef NameSlot* slot
    cdef size_t gap
    cdef uint8_t* place
    if bank.folds and small and not is_null(data, s.size):
        slot = find_piece(&bank.kept_pieces, &bank.keys, data, s.size, s.align)
        if slot == NULL:
            return False
        if slot.value >= 0:
            memset(bank.is_dropped + bank.merged.base[number], 1, s.size)
            bank.dropped = True
            return True
        slot.value = 0
        bank.kept_pieces.count += 1
    gap = -bank.blob.count & (s.align - 1) if s.align else 0
    place = <uint8_t*>vec_extend(&bank.blob, gap + s.size)
    if place == NULL and gap + s.size:
        return False
    if gap:
        memset(place, 0, gap)
    if s.size:
        memcpy(place + gap, data, s.size)
    if small:
        bank.null_value = bank.blob.count - s.size
    return True


cdef bint has_lost_bytes(const Bank* bank, uint64_t offset) noexcept nogil:
    """Whether the field at that logical offset has no bytes of its own."""
    return offset < bank.size and (bank.is_dropped[offset] or offset >= bank.blob.count)


cdef bint is_cut(const Bank* bank) noexcept nogil:
    """Whether a relocation that stays is of such a field."""
    cdef const EmittedRow* emitted = bank.merged.emitted
    cdef const OutRow* row
    cdef size_t i
    cdef int32_t entry
    for i in range(bank.out_count):
        row = &bank.outs[i]
        entry = row.head if row.target == bank.out and is_plain(row.kind, IS_ENTRIES) else -1
        while entry >= 0:
            if has_lost_bytes(bank, emitted[entry].offset):
                return True
            entry = emitted[entry].next
    return False


cdef bint is_fixed(const Bank* bank) noexcept nogil:
    """Whether the link writes such a field."""
    cdef const FixupRow* fixup = bank.merged.fixups
    cdef size_t i
    for i in range(bank.merged.fixup_count):
        if fixup[i].out == bank.out and has_lost_bytes(bank, fixup[i].offset):
            return True
    return False
