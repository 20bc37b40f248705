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

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from libc.stddef cimport size_t
from sectionkinds cimport IS_ENTRIES
from tables.kinds cimport is_plain, is_user_bank
from base.nameindex cimport NameIndex, NameSlot, TextPool, scratch_index, scratch_texts
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros,
)
from pylink._native.tables cimport (
    Blob, MergedTables, ObjectTables, Outs, PlacedTables, Spans, Table, take_rows,
)
from layout.repeats cimport find_piece, is_null, is_small
from tables.rows cimport EmittedRow, FixupRow, OutRow, SectionRow, SpanRow
from base.vector cimport Vec, vec_extend, vec_push


cdef struct Bank:
    Vec blob                    # the physical bank
    NameIndex kept              # small pieces that it has
    TextPool keys
    uint8_t* gone               # by logical offset: whether the byte is of a dropped piece
    uint64_t null_value
    bint dropped                # whether any piece is
    bint folds                  # equal pieces stand once


def fold_pieces(PlacedTables placed not None):
    """Lay out the physical bank: fills `outs` and `null_value`, and adds the bank's contents."""
    placed.fill()
    cdef MergedTables merged = placed.merged
    cdef ObjectTables objects = merged.objects
    cdef size_t n = objects.sections.count, i
    cdef size_t out_count = placed.outs.count
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef const SectionRow* s = objects.sections.rows
    cdef const int32_t* out = merged.out_of.rows
    cdef const uint64_t* logical = merged.base.rows
    cdef Outs outs = <Outs>Table.opened(<PyObject*>placed.outs)
    cdef OutRow* row = <OutRow*>outs.rows
    cdef Vec spans
    cdef Bank whole
    cdef SpanRow* span
    cdef int32_t bank = -1
    cdef uint64_t size = 0
    cdef Scratch scratch
    if merged.out_of.count != n or merged.base.count != n:
        raise ValueError("one output section and one offset per input section")
    for i in range(n):
        if is_user_bank(s[i].kind, s[i].bank) and out[i] >= 0:
            bank = out[i]
            size = max(size, logical[i] + s[i].size)
    if bank >= <int64_t>out_count:
        raise ValueError("an output section does not exist")
    scratch_init(&scratch)
    try:
        open_bank(&whole, &scratch, size)
        scratch_vector(&scratch, &spans, sizeof(SpanRow))
        if not scratch.failed:
            with nogil:
                scratch.failed = not place_pieces(s, out, logical, n, base, &whole)
                if not scratch.failed and whole.dropped and (
                        is_cut(merged.emitted.rows, row, out_count, bank, &whole, size)
                        or is_fixed(merged.fixups.rows, merged.fixups.count, bank, &whole, size)):
                    whole.blob.count = 0
                    whole.folds = False
                    scratch.failed = not place_pieces(s, out, logical, n, base, &whole)
                if not scratch.failed and bank >= 0:
                    span = <SpanRow*>vec_push(&spans)
                    scratch.failed = span == NULL
                    if span != NULL:
                        span.out = bank
                        span.offset = 0
                        span.size = row[bank].size = whole.blob.count
        if scratch.failed:
            raise MemoryError
        placed.outs = outs
        placed.null_value = whole.null_value or placed.null_value
        placed.add(Blob(take_rows(&whole.blob)), Spans(take_rows(&spans)))
    finally:
        scratch_free(&scratch)


cdef void open_bank(Bank* bank, Scratch* scratch, uint64_t size) noexcept:
    """Start an empty bank for that many logical bytes."""
    bank.null_value = 0
    bank.dropped = False
    bank.folds = True
    bank.gone = <uint8_t*>scratch_zeros(scratch, size, 1)
    scratch_vector(scratch, &bank.blob, 1)
    scratch_index(scratch, &bank.kept, 64)
    scratch_texts(scratch, &bank.keys)


cdef bint place_pieces(const SectionRow* s, const int32_t* out, const uint64_t* logical, size_t n,
                       const uint8_t* base, Bank* bank) noexcept nogil:
    """Append all pieces; whether there was memory for them."""
    cdef size_t i
    for i in range(n):
        if is_user_bank(s[i].kind, s[i].bank) and out[i] >= 0 and not place_piece(
                &s[i], base + s[i].offset, logical[i], bank):
            return False
    return True


cdef bint place_piece(const SectionRow* s, const uint8_t* bytes_, uint64_t logical,
                      Bank* bank) noexcept nogil:
    """Append one piece, unless the bank folds and an equal one of the same alignment is there."""
    cdef bint small = is_small(s.size, s.align)
    cdef NameSlot* slot
    cdef size_t gap
    cdef uint8_t* place
    if bank.folds and small and not is_null(bytes_, s.size):
        slot = find_piece(&bank.kept, &bank.keys, bytes_, s.size, s.align)
        if slot == NULL:
            return False
        if slot.value >= 0:
            memset(bank.gone + logical, 1, s.size)
            bank.dropped = True
            return True
        slot.value = 0
        bank.kept.count += 1
    gap = -bank.blob.count & (s.align - 1) if s.align else 0
    place = <uint8_t*>vec_extend(&bank.blob, gap + s.size)
    if place == NULL and gap + s.size:
        return False
    if gap:
        memset(place, 0, gap)
    if s.size:
        memcpy(place + gap, bytes_, s.size)
    if small:
        bank.null_value = bank.blob.count - s.size
    return True


cdef bint is_lost(const Bank* bank, uint64_t offset, uint64_t size) noexcept nogil:
    """Whether the field at that logical offset, of `size` bytes in all, has no bytes of its own."""
    return offset < size and (bank.gone[offset] or offset >= bank.blob.count)


cdef bint is_cut(const EmittedRow* emitted, const OutRow* row, size_t n, int32_t bank,
                 const Bank* whole, uint64_t size) noexcept nogil:
    """Whether a relocation that stays is of such a field."""
    cdef size_t i
    cdef int32_t at
    for i in range(n):
        if row[i].target != bank or not is_plain(row[i].kind, IS_ENTRIES):
            continue
        at = row[i].head
        while at >= 0:
            if is_lost(whole, emitted[at].offset, size):
                return True
            at = emitted[at].next
    return False


cdef bint is_fixed(const FixupRow* fixup, size_t n, int32_t bank, const Bank* whole,
                   uint64_t size) noexcept nogil:
    """Whether the link writes such a field."""
    cdef size_t i
    for i in range(n):
        if fixup[i].out == bank and is_lost(whole, fixup[i].offset, size):
            return True
    return False
