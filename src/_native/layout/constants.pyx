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

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from names cimport *
from rows cimport *
from vec cimport *


def fold_pieces(bytes arena, bytes sections, bytes out_of, bytes outs):
    """Lay out the physical bank: `(outs, blob, spans, null_value)`.

    The OutRow table with the bank's physical size, its contents with their SpanRow (both empty
    when no input has constants), and the st_value of the null symbol.
    """
    cdef size_t n = PyBytes_GET_SIZE(sections) // sizeof(SectionRow), i
    cdef size_t out_count = PyBytes_GET_SIZE(outs) // sizeof(OutRow)
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const SectionRow* s = <const SectionRow*>PyBytes_AS_STRING(sections)
    cdef const int32_t* out = <const int32_t*>PyBytes_AS_STRING(out_of)
    cdef bytes new_outs = PyBytes_FromStringAndSize(PyBytes_AS_STRING(outs),
                                                    PyBytes_GET_SIZE(outs))
    cdef OutRow* row = <OutRow*>PyBytes_AS_STRING(new_outs)
    cdef Vec blob, spans
    cdef Pool pool
    cdef NameIndex kept
    cdef SpanRow* span
    cdef uint64_t null_value = 0
    cdef int32_t bank = -1
    cdef bint ok
    if <size_t>PyBytes_GET_SIZE(out_of) != 4 * n:
        raise ValueError("one output section per input section")
    vec_init(&blob, 1)
    vec_init(&spans, sizeof(SpanRow))
    memset(&pool, 0, sizeof(Pool))
    ok = index_init(&kept, 64)
    with nogil:
        for i in range(n):
            if ok and s[i].kind == K_CONSTANT and s[i].bank == 3 and out[i] >= 0:
                bank = out[i]
                ok = place_piece(&s[i], base, &kept, &pool, &blob, &null_value)
        if ok and bank >= 0 and <size_t>bank < out_count:
            span = <SpanRow*>vec_push(&spans)
            ok = span != NULL
            if ok:
                span.out = bank
                span.spare = 0
                span.offset = 0
                span.size = row[bank].size = blob.count
    index_free(&kept)
    pool_free(&pool)
    result = new_outs, vec_take(&blob), vec_take(&spans), null_value
    if not ok:
        raise MemoryError
    return result


cdef bint place_piece(const SectionRow* s, const uint8_t* base, NameIndex* kept, Pool* pool,
                      Vec* blob, uint64_t* null_value) noexcept nogil:
    """Append one piece, unless an equal one of the same alignment is already there."""
    cdef const uint8_t* bytes_ = base + s.offset
    cdef bint small = is_small(s)
    cdef uint8_t* key
    cdef NameSlot* slot
    cdef size_t gap
    cdef uint8_t* place
    if small and not (s.size <= 8 and is_zero(bytes_, s.size)):
        key = pool_join(pool, <const char*>&s.align, sizeof(s.align), bytes_, <uint32_t>s.size)
        slot = index_find(kept, key, sizeof(s.align) + <uint32_t>s.size) if key != NULL else NULL
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


cdef inline bint is_small(const SectionRow* s) noexcept nogil:
    """Whether the fold looks at a piece: a literal by its alignment, or a short vector."""
    return (s.size in (12, 16, 20, 24, 32, 48, 64)
            or (s.size == s.align and s.size in (4, 8)))


cdef inline bint is_zero(const uint8_t* bytes_, size_t size) noexcept nogil:
    cdef size_t i
    for i in range(size):
        if bytes_[i]:
            return False
    return True


def find_cut_relocation(bytes outs, bytes keeps):
    """Whether a relocation that stays lies behind the end of the folded bank."""
    cdef size_t n = PyBytes_GET_SIZE(outs) // sizeof(OutRow), i
    cdef const OutRow* row = <const OutRow*>PyBytes_AS_STRING(outs)
    cdef const KeepRow* keep = <const KeepRow*>PyBytes_AS_STRING(keeps)
    cdef int32_t at
    for i in range(n):
        if row[i].kind != K_RELOC or row[i].target < 0:
            continue
        if row[row[i].target].kind != K_CONSTANT or row[row[i].target].bank != 3:
            continue
        at = row[i].head
        while at >= 0:
            if keep[at].offset >= row[row[i].target].size:
                return True
            at = keep[at].next
    return False
