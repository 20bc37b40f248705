"""Pieces of the file-scope constant bank, the small ones folded when they repeat.

A link that selects kernels (--kernels-used, --variables-used) treats the .nv.constant3 section of
each input as one piece and writes a small piece only once (docs/format-notes.md). The fold comes
after symbols have their values and relocations their offsets, and moves neither: both go on
describing the logical bank, the plain concatenation of all pieces, while the file holds the
physical one, which is shorter. Code that reads a variable behind a dropped piece therefore reads
something else. That is nvlink's behaviour, and identical output needs it.

The only trace of the fold outside the bank is the value of the null symbol: the physical offset of
the last piece that the fold looked at and kept.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from kinds cimport *
from names cimport *
from pylink._native.tables cimport (
    Blob, MergedTables, ObjectTables, Outs, PlacedTables, Spans, Table, take_rows,
)
from repeats cimport *
from rows cimport *
from vec cimport *


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
    cdef Outs outs = <Outs>Table.opened(<PyObject*>placed.outs)
    cdef OutRow* row = <OutRow*>outs.rows
    cdef Vec blob, spans
    cdef TextPool pool
    cdef NameIndex kept
    cdef SpanRow* span
    cdef uint64_t null_value = 0
    cdef int32_t bank = -1
    cdef bint ok
    if merged.out_of.count != n:
        raise ValueError("one output section per input section")
    vec_init(&blob, 1)
    vec_init(&spans, sizeof(SpanRow))
    memset(&pool, 0, sizeof(TextPool))
    ok = index_init(&kept, 64)
    with nogil:
        for i in range(n):
            if ok and is_user_bank(s[i].kind, s[i].bank) and out[i] >= 0:
                bank = out[i]
                ok = place_piece(&s[i], base, &kept, &pool, &blob, &null_value)
        if ok and bank >= 0 and <size_t>bank < out_count:
            span = <SpanRow*>vec_push(&spans)
            ok = span != NULL
            if ok:
                span.out = bank
                span.offset = 0
                span.size = row[bank].size = blob.count
    index_free(&kept)
    pool_free(&pool)
    made = Blob(take_rows(&blob)), Spans(take_rows(&spans))
    if not ok:
        raise MemoryError
    placed.outs = outs
    placed.null_value = null_value or placed.null_value
    placed.add(*made)


cdef bint place_piece(const SectionRow* s, const uint8_t* base, NameIndex* kept, TextPool* pool,
                      Vec* blob, uint64_t* null_value) noexcept nogil:
    """Append one piece, unless an equal one of the same alignment is already there."""
    cdef const uint8_t* bytes_ = base + s.offset
    cdef bint small = is_small(s.size, s.align)
    cdef NameSlot* slot
    cdef size_t gap
    cdef uint8_t* place
    if small and not is_null(bytes_, s.size):
        slot = find_piece(kept, pool, bytes_, s.size, s.align)
        if slot == NULL:
            return False
        if slot.value >= 0:
            return True
        slot.value = 0
        kept.count += 1
    gap = -blob.count & (s.align - 1) if s.align else 0
    place = <uint8_t*>vec_extend(blob, gap + s.size)
    if place == NULL and gap + s.size:
        return False
    if gap:
        memset(place, 0, gap)
    if s.size:
        memcpy(place + gap, bytes_, s.size)
    if small:
        null_value[0] = blob.count - s.size
    return True


def find_cut_relocation(PlacedTables placed not None):
    """Whether a relocation that stays lies behind the end of the folded bank."""
    cdef MergedTables merged = placed.merged
    cdef size_t n = placed.outs.count, i
    cdef const OutRow* row = placed.outs.rows
    cdef const KeepRow* keep = merged.keeps.rows
    cdef int32_t at
    for i in range(n):
        at = row[i].target
        if at < 0 or not is_plain(row[i].kind, IS_ENTRIES) or not is_user_bank(
                row[at].kind, row[at].bank):
            continue
        at = row[i].head
        while at >= 0:
            if keep[at].offset >= row[row[i].target].size:
                return True
            at = keep[at].next
    return False
