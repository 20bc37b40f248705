"""Pieces of the file-scope constant bank, the small ones folded when they repeat.

A link that selects kernels (--kernels-used, --variables-used) treats the .nv.constant3 section of
each input as one piece and writes a small piece only once (docs/format-notes.md). The fold comes
after symbols have their values and relocations their offsets, and moves neither: both still
describe the logical bank, the plain concatenation of all pieces. The file has the physical bank,
which is shorter. Code that reads a variable after a dropped piece therefore reads something else.
That is nvlink's behavior, and identical output needs it. Four pieces, as an example:

    pieces           a (8 bytes)    b (16 bytes)    a again    c (40 bytes)
    logical bank     0              8               24         32
    physical bank    0              8               dropped    24

Equal bytes are not equal contents where relocations fill them in: two tables of addresses are
zeros in their files. So the bank is not folded if that would drop a piece with relocations, or if a
relocation's offset would be past the end of the physical bank. In these cases nvlink writes the
field over other constants, or refuses the program.

The only trace of the fold outside the bank is the value of the null symbol: the physical offset of
the last small piece that was kept.
"""

from cpython.object cimport PyObject
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from base.memory cimport check_memory
from base.nameindex cimport NameIndex, NameSlot, TextPool, scratch_index, scratch_texts
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec, vec_extend, vec_push
from layout.repeats cimport find_piece, is_null, is_small
from pylink._native.results cimport PlacedTables
from pylink._native.tables cimport Blob, Outs, Spans, Table, detach_rows
from sectionkinds cimport IS_ENTRIES
from tables.kinds cimport is_plain, is_user_bank
from tables.rows cimport (
    EmittedNumber, EmittedRow, FixupRow, OutNumber, OutRow, SectionCounter, SectionRow, SpanRow,
)
from tables.views cimport MergedView, ObjectsView


# The file-scope constant bank, and its physical form: the bytes of the output, in which equal small
# pieces stand only once.
ctypedef struct Bank:
    ObjectsView objects
    MergedView merged
    OutRow* outs
    size_t out_count
    OutNumber out               # the bank's OutRow, or -1
    uint64_t size               # bytes of the logical bank
    Vec blob                    # uint8_t: the physical bank
    Vec spans                   # SpanRow: one, of the bank
    NameIndex kept_pieces       # small pieces in the blob; the values say nothing
    TextPool keys               # keys of `kept_pieces`
    uint8_t* is_dropped         # by logical offset: 1 if the byte is of a dropped piece
    uint64_t null_value         # st_value of the null symbol; 0 without a small piece
    bint has_dropped            # a piece was dropped when `folds` was set
    bint folds                  # small pieces that repeat others are dropped


# The bank is .nv.constant3. `null_value` becomes the offset of the last small piece that stays; it
# does not change if that is 0, or if there is no such piece.
def fold_pieces(PlacedTables placed not None):
    """Make the file-scope constant bank as the file has it; fills `outs` and `null_value`."""
    placed.fill()
    cdef Outs outs = <Outs>Table.writable(<PyObject*>placed.outs)
    cdef Bank bank
    cdef Scratch scratch
    memset(&bank, 0, sizeof(Bank))
    placed.merged.objects.view(&bank.objects)
    placed.merged.view(&bank.merged)
    if (placed.merged.out_of.count != bank.objects.section_count
            or placed.merged.base.count != bank.objects.section_count):
        raise ValueError("out_of or base has not one row for each input section")
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
        check_memory(not scratch.failed)
        placed.outs = outs
        placed.null_value = bank.null_value or placed.null_value
        placed.add(Blob(detach_rows(&bank.blob)), Spans(detach_rows(&bank.spans)))
    finally:
        scratch_free(&scratch)


cdef bint is_piece(const Bank* bank, SectionCounter section) noexcept nogil:
    """Return whether input section `section` is a piece of the bank."""
    cdef const SectionRow* row = &bank.objects.sections[section]
    return is_user_bank(row.kind, row.bank) and bank.merged.out_of[section] >= 0


cdef void find_bank(Bank* bank) noexcept:
    """Set the OutRow and the logical size of the bank."""
    cdef size_t i
    bank.out = -1
    for i in range(bank.objects.section_count):
        if is_piece(bank, i):
            bank.out = bank.merged.out_of[i]
            bank.size = max(bank.size, bank.merged.base[i] + bank.objects.sections[i].size)


cdef bint fold_bank(Bank* bank) noexcept nogil:
    """Write the physical bank, folded unless a relocation would lose its bytes.

    False without memory.
    """
    bank.folds = True
    if not place_pieces(bank):
        return False
    if not bank.has_dropped or not (has_lost_emitted(bank) or has_lost_fixup(bank)):
        return True
    bank.blob.count = 0
    bank.folds = False
    return place_pieces(bank)


cdef bint enter_bank(Bank* bank) noexcept nogil:
    """Set the bank's span and size to those of the physical bank; False without memory."""
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
    """Append all pieces to the physical bank, without those that it drops; False without memory."""
    cdef SectionCounter i
    for i in range(bank.objects.section_count):
        if is_piece(bank, i) and not place_piece(bank, i):
            return False
    return True


cdef bint place_piece(Bank* bank, SectionCounter number) noexcept nogil:
    """Append the piece of input section `number`; drop it if the bank folds and has an equal one.

    Only small pieces are dropped, and no literal of value 0. Equal pieces have the same bytes and
    alignment. False without memory.
    """
    cdef const SectionRow* piece = &bank.objects.sections[number]
    cdef const uint8_t* data = bank.objects.arena + piece.offset
    cdef bint can_repeat = is_small(piece.size, piece.align)
    cdef NameSlot* slot
    cdef size_t gap
    cdef uint8_t* place
    if bank.folds and can_repeat and not is_null(data, piece.size):
        slot = find_piece(&bank.kept_pieces, &bank.keys, data, piece.size, piece.align)
        if slot == NULL:
            return False
        if slot.value >= 0:
            memset(bank.is_dropped + bank.merged.base[number], 1, piece.size)
            bank.has_dropped = True
            return True
        slot.value = 0
        bank.kept_pieces.count += 1
    gap = -bank.blob.count & (piece.align - 1) if piece.align else 0
    place = <uint8_t*>vec_extend(&bank.blob, gap + piece.size)
    if place == NULL and gap + piece.size:
        return False
    if gap:
        memset(place, 0, gap)
    if piece.size:
        memcpy(place + gap, data, piece.size)
    if can_repeat:
        bank.null_value = bank.blob.count - piece.size
    return True


cdef bint has_lost_bytes(const Bank* bank, uint64_t offset) noexcept nogil:
    """Return whether the physical bank lacks the byte at a logical offset.

    The byte was dropped, or its offset is past the end of the physical bank.
    """
    return offset < bank.size and (bank.is_dropped[offset] or offset >= bank.blob.count)


cdef bint has_lost_emitted(const Bank* bank) noexcept nogil:
    """Return whether the physical bank lacks the bytes of an emitted relocation."""
    cdef const EmittedRow* emitted = bank.merged.emitted
    cdef const OutRow* row
    cdef size_t i
    cdef EmittedNumber entry
    for i in range(bank.out_count):
        row = &bank.outs[i]
        entry = row.head if row.target == bank.out and is_plain(row.kind, IS_ENTRIES) else -1
        while entry >= 0:
            if has_lost_bytes(bank, emitted[entry].offset):
                return True
            entry = emitted[entry].next
    return False


cdef bint has_lost_fixup(const Bank* bank) noexcept nogil:
    """Return whether the physical bank lacks the bytes of a relocation that the link resolves."""
    cdef const FixupRow* fixup = bank.merged.fixups
    cdef size_t i
    for i in range(bank.merged.fixup_count):
        if fixup[i].out == bank.out and has_lost_bytes(bank, fixup[i].offset):
            return True
    return False
