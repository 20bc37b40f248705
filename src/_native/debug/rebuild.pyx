"""Rebuilding of debug sections from sm_100 on: between the tables of the link and `debug`.

Every debug section exists twice there: plain, with offsets of machine code, and as `.nv.merc.*`.
nvlink joins the mercury ones, but makes plain lines, frames and registers anew, without what
describes functions that are not in the output (docs/format-notes/family-c-debug.md). The kernels of
`pylink._native.debug` write these contents. They know pieces, which are what one input has of the
section, and relocations, but not the tables. `.debug_line` of two files, as an example:

    piece   sequences of                   outcome       output
    a       f, of which this copy stays    LIVE          unit of a, with this sequence
            g, which is dead               DEAD
    b       f, another copy, which lost    OVERRIDDEN    unit of b, without sequences

1. `find_debug` finds a section. `pieces_of` lists its pieces, and their relocations with outcomes
   and the order of their symbols, by which lines are sorted.
2. `headers_of` lists fields of line headers for which only the mercury section has a relocation.
   `live_names` has the functions of the output, which decide on register ranges.
3. `adopt` enters the sizes of the new sections, and the relocations that are left.
4. `retarget` corrects references to line units, which have moved: `.debug_info` of a second stage
   refers to them by offset.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp

from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec, vec_append, vec_push, vec_to_bytes
from debug.rows cimport OTHER, DebugPatchRow, MovedRow, PieceRow, RelocRow, UnitRow
from pylink._native.tables cimport Emitted, Fixups, MergedTables, Outs, Table, detach_rows
from rownumbers cimport EF_DEFINED, EF_LIVE, E_FUNC, FIXUP_MERC
from sectionkinds cimport IS_DEBUG
from tables.kinds cimport is_plain
from tables.rows cimport (
    EmittedRow, EntityRow, FixupRow, OutRow, OutSymbolRow, RebuildRow, SectionRow, SymbolRow,
)
from tables.views cimport MergedView, ObjectsView


def find_debug(MergedTables merged not None, bytes name not None):
    cdef ObjectsView v
    cdef const OutRow* row = merged.outs.rows
    cdef const SectionRow* s
    cdef size_t i
    merged.objects.view(&v)
    for i in range(merged.outs.count):
        if not is_plain(row[i].kind, IS_DEBUG) or row[i].source < 0:
            continue
        s = &v.sections[row[i].source]
        if (s.name_size == <uint32_t>PyBytes_GET_SIZE(name)
                and memcmp(v.arena + s.name, PyBytes_AS_STRING(name), s.name_size) == 0):
            return i
    return -1


cdef enum:
    PART_SHIFT = 29             # bits for the number of a symbol, below those of its part


# A section that is rebuilt.
ctypedef struct Rebuild:
    ObjectsView objects
    MergedView merged
    int32_t out                 # the OutRow with the pieces
    uint32_t* symbol_order      # by entity: the place of its symbol among all, see number_symbols
    size_t row                  # RebuildRow, or FixupRow: those before it are listed
    Vec pieces                  # PieceRow
    Vec inputs                  # int32_t: the input section of each piece
    Vec relocations             # RelocRow
    Vec numbers                 # int32_t: the RebuildRow of each relocation
    Vec patches                 # DebugPatchRow


def pieces_of(MergedTables merged not None, int out):
    cdef Rebuild r
    cdef Scratch scratch
    start_rebuild(&r, merged, out)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &r.pieces, sizeof(PieceRow))
        scratch_vector(&scratch, &r.relocations, sizeof(RelocRow))
        scratch_vector(&scratch, &r.numbers, 4)
        scratch_vector(&scratch, &r.inputs, 4)
        r.symbol_order = <uint32_t*>scratch_zeros(&scratch, r.merged.entity_count, 4)
        if not scratch.failed:
            with nogil:
                number_symbols(&r)
                scratch.failed = not list_pieces(&r)
        if scratch.failed:
            raise MemoryError
        return (vec_to_bytes(&r.pieces), vec_to_bytes(&r.relocations), vec_to_bytes(&r.numbers),
                vec_to_bytes(&r.inputs))
    finally:
        scratch_free(&scratch)


cdef void start_rebuild(Rebuild* r, MergedTables merged, int32_t out) noexcept:
    """Set the views and the OutRow; the vectors are the caller's."""
    merged.objects.view(&r.objects)
    merged.view(&r.merged)
    r.out = out
    r.row = 0


cdef void number_symbols(Rebuild* r) noexcept nogil:
    """Number the symbols: local ones first, then global, then the tail; each in creation order."""
    cdef const OutSymbolRow* symbol
    cdef size_t i
    for i in range(r.merged.out_symbol_count):
        symbol = &r.merged.out_symbols[i]
        if symbol.entity >= 0:
            r.symbol_order[symbol.entity] = <uint32_t>(symbol.part << PART_SHIFT | i)


cdef PieceRow* new_piece(Rebuild* r, size_t section) noexcept nogil:
    """Add a piece for an input section; NULL without memory."""
    cdef PieceRow* piece = <PieceRow*>vec_push(&r.pieces)
    if piece != NULL:
        piece.offset = r.objects.sections[section].offset
        piece.size = r.objects.sections[section].size
        piece.count = 0
    return piece


cdef bint list_pieces(Rebuild* r) noexcept nogil:
    """List all pieces and their relocations in the order of the inputs; False without memory."""
    cdef const RebuildRow* row
    cdef PieceRow* piece
    cdef int32_t* section
    cdef size_t i
    for i in range(r.objects.section_count):
        if r.merged.out_of[i] != r.out:
            continue
        piece = new_piece(r, i)
        section = <int32_t*>vec_push(&r.inputs)
        if piece == NULL or section == NULL:
            return False
        section[0] = <int32_t>i
        while r.row < r.merged.rebuild_count:
            row = &r.merged.rebuilds[r.row]
            if row.out == r.out and row.piece > <int32_t>i:
                break
            if row.out == r.out and row.piece == <int32_t>i:
                if not list_relocation(r, row):
                    return False
                piece.count += 1
            r.row += 1
    return True


cdef bint list_relocation(Rebuild* r, const RebuildRow* row) noexcept nogil:
    """List a relocation of the piece at hand; False without memory."""
    cdef RelocRow* relocation = <RelocRow*>vec_push(&r.relocations)
    cdef int32_t* number = <int32_t*>vec_push(&r.numbers)
    if relocation == NULL or number == NULL:
        return False
    number[0] = <int32_t>r.row
    relocation.r_offset = row.offset
    relocation.target = r.symbol_order[row.entity] if row.entity >= 0 else 0
    # Outcomes of functions have the numbers of DebugOutcome; all others are OTHER.
    relocation.outcome = min(row.outcome, <uint32_t>OTHER)
    return True


def headers_of(MergedTables merged not None, int out):
    cdef Rebuild r
    cdef size_t i, plain = 0
    cdef Scratch scratch
    start_rebuild(&r, merged, merged.outs.rows[out].merc)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &r.pieces, sizeof(PieceRow))
        scratch_vector(&scratch, &r.patches, sizeof(DebugPatchRow))
        with nogil:
            for i in range(r.objects.section_count):
                plain += r.merged.out_of[i] == out
            scratch.failed |= r.out >= 0 and not list_headers(&r)
        if scratch.failed:
            raise MemoryError
        if not r.patches.count or r.pieces.count != plain:
            return b"", b""
        return vec_to_bytes(&r.pieces), vec_to_bytes(&r.patches)
    finally:
        scratch_free(&scratch)


cdef bint list_headers(Rebuild* r) noexcept nogil:
    """List all pieces and the fields that the link resolved in them; False without memory."""
    cdef const uint64_t* start = r.merged.base
    cdef const FixupRow* fixup
    cdef DebugPatchRow* patch
    cdef PieceRow* piece
    cdef size_t i
    for i in range(r.objects.section_count):
        if r.merged.out_of[i] != r.out:
            continue
        piece = new_piece(r, i)
        if piece == NULL:
            return False
        while r.row < r.merged.fixup_count:
            fixup = &r.merged.fixups[r.row]
            if fixup.out == r.out and fixup.offset >= start[i] + r.objects.sections[i].size:
                break
            if fixup.out == r.out and fixup.section >= 0 and fixup.how & FIXUP_MERC:
                patch = <DebugPatchRow*>vec_push(&r.patches)
                if patch == NULL:
                    return False
                patch.r_offset = fixup.offset - start[i]
                patch.value = <uint64_t>fixup.addend + start[fixup.section]
                piece.count += 1
            r.row += 1
    return True


def live_names(MergedTables merged not None):
    cdef ObjectsView v
    cdef const EntityRow* e = merged.entities.rows
    cdef const SymbolRow* symbol
    cdef Vec names
    cdef size_t i
    cdef Scratch scratch
    merged.objects.view(&v)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &names, 1)
        with nogil:
            for i in range(merged.entities.count):
                if e[i].kind != E_FUNC or not e[i].flags & EF_LIVE or not e[i].flags & EF_DEFINED:
                    continue
                symbol = &v.symbols[e[i].first]     # the name ends with NUL
                scratch.failed |= not vec_append(&names, v.arena + symbol.name,
                                                 symbol.name_size + 1)
        if scratch.failed:
            raise MemoryError
        return vec_to_bytes(&names)
    finally:
        scratch_free(&scratch)


def adopt(MergedTables merged not None, list results not None):
    merged.fill()
    cdef Outs outs = <Outs>Table.writable(<PyObject*>merged.outs)
    cdef OutRow* row = <OutRow*>outs.rows
    cdef const RebuildRow* origin
    cdef const int32_t* number
    cdef const MovedRow* move
    cdef Vec added
    cdef EmittedRow* emitted
    cdef size_t i, count
    cdef OutRow* reloc
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &added, sizeof(EmittedRow))
        scratch.failed |= not vec_append(&added, merged.emitted.rows, merged.emitted.count)
        for out, numbers, moved_rows, size in results:
            row[<int>out].size = size
            if row[<int>out].rela < 0:
                continue
            reloc = &row[row[<int>out].rela]
            number = <const int32_t*>PyBytes_AS_STRING(numbers)
            move = <const MovedRow*>PyBytes_AS_STRING(moved_rows)
            count = PyBytes_GET_SIZE(moved_rows) // sizeof(MovedRow)
            for i in range(count):
                emitted = <EmittedRow*>vec_push(&added)
                if emitted == NULL:
                    scratch.failed = True
                    break
                # The list is written newest first.
                origin = &merged.rebuilds.rows[number[move[count - 1 - i].row]]
                emitted.offset = move[count - 1 - i].r_offset
                emitted.addend = origin.addend
                emitted.type = origin.type
                emitted.entity = origin.entity
                emitted.section = -1
                emitted.next = reloc.head
                reloc.head = <int32_t>(added.count - 1)
                reloc.count += 1
        if scratch.failed:
            raise MemoryError
        merged.outs = outs
        merged.emitted = Emitted(detach_rows(&added))
    finally:
        scratch_free(&scratch)


def retarget(MergedTables merged not None, bytes inputs not None, bytes units not None, int out):
    merged.fill()
    cdef Fixups fixups = <Fixups>Table.writable(<PyObject*>merged.fixups)
    cdef Emitted emitted = <Emitted>Table.writable(<PyObject*>merged.emitted)
    cdef FixupRow* fixup = <FixupRow*>fixups.rows
    cdef EmittedRow* row = <EmittedRow*>emitted.rows
    cdef const uint64_t* start = merged.base.rows
    cdef const int32_t* piece = <const int32_t*>PyBytes_AS_STRING(inputs)
    cdef const UnitRow* unit = <const UnitRow*>PyBytes_AS_STRING(units)
    cdef size_t n = merged.fixups.count, i
    cdef size_t emitted_count = merged.emitted.count
    cdef size_t count = PyBytes_GET_SIZE(units) // sizeof(UnitRow)
    cdef size_t inputs_count = PyBytes_GET_SIZE(inputs) // 4
    cdef int64_t place
    cdef int32_t low, high
    if not count:
        return
    low = piece[0]
    high = piece[inputs_count - 1]
    with nogil:
        for i in range(n):
            if fixup[i].how & FIXUP_MERC or not low <= fixup[i].section <= high:
                continue
            place = find_unit(unit, count, piece, start,
                              start[fixup[i].section] + <uint64_t>fixup[i].addend, fixup[i].section)
            if place >= 0:
                fixup[i].addend = place
                fixup[i].section = -1
        for i in range(emitted_count):
            if row[i].section != out or row[i].type != 1:
                continue
            place = find_unit(unit, count, piece, start, <uint64_t>row[i].addend, -1)
            if place >= 0:
                row[i].addend = place
    merged.fixups = fixups
    merged.emitted = emitted


cdef int64_t find_unit(const UnitRow* unit, size_t count, const int32_t* piece,
                       const uint64_t* start, uint64_t position, int32_t section) noexcept nogil:
    """New place of the unit at `position` of the plain concatenation, or -1."""
    cdef size_t low = 0, high = count, middle
    cdef uint64_t offset
    while low < high:
        middle = (low + high) // 2
        offset = start[piece[unit[middle].piece]] + unit[middle].start
        if offset < position:
            low = middle + 1
        else:
            high = middle
    if low < count and start[piece[unit[low].piece]] + unit[low].start == position and (
            section < 0 or piece[unit[low].piece] == section):
        return <int64_t>unit[low].base
    return -1
