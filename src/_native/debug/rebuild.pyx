"""Between the tables of the link and the kernels that rebuild debug sections (family C)."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from sectionkinds cimport IS_DEBUG
from debug.rows cimport OTHER, DebugPatchRow, MovedRow, PieceRow, RelocRow, UnitRow
from pylink._native.tables cimport (
    Emitted, Fixups, MergedTables, ObjectTables, Outs, Table, take_rows,
)
from tables.kinds cimport is_plain
from tables.rows cimport (
    EF_DEFINED, EF_LIVE, E_FUNC, FIXUP_MERC, EmittedRow, EntityRow, FixupRow, OutRow, OutSymbolRow,
    RebuildRow, SectionRow, SymbolRow,
)
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_vector, scratch_zeros
from base.vector cimport Vec, vec_append, vec_extend, vec_push, vec_take


def find_debug(MergedTables merged not None, bytes name not None):
    """The OutRow of the plain debug section of that name, or -1."""
    cdef ObjectTables objects = merged.objects
    cdef size_t n = merged.outs.count, i
    cdef const OutRow* row = merged.outs.rows
    cdef const SectionRow* s = objects.sections.rows
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    for i in range(n):
        if (is_plain(row[i].kind, IS_DEBUG) and row[i].source >= 0
                and s[row[i].source].name_size == <uint32_t>PyBytes_GET_SIZE(name)
                and memcmp(base + s[row[i].source].name, PyBytes_AS_STRING(name),
                           PyBytes_GET_SIZE(name)) == 0):
            return i
    return -1


def pieces_of(MergedTables merged not None, int out):
    """What the rebuild of section `out` starts from: `(pieces, relocations, numbers, inputs)`.

    The first two are tables of pylink._native.debug; `numbers` are the RebuildRow numbers (int32)
    of the relocation rows, `inputs` the input sections (int32) of the pieces.
    """
    cdef ObjectTables objects = merged.objects
    cdef size_t n = objects.sections.count, i
    cdef size_t count = merged.rebuilds.count, at = 0
    cdef size_t symbols = merged.out_symbols.count
    cdef size_t entity_count = merged.entities.count
    cdef const SectionRow* s = objects.sections.rows
    cdef const int32_t* home = merged.out_of.rows
    cdef const OutSymbolRow* symbol = merged.out_symbols.rows
    cdef const RebuildRow* row = merged.rebuilds.rows
    cdef uint32_t* key
    cdef Vec pieces, relocations, numbers, inputs
    cdef PieceRow* piece
    cdef RelocRow* relocation
    cdef int32_t* number
    cdef int32_t* source
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &pieces, sizeof(PieceRow))
        scratch_vector(&scratch, &relocations, sizeof(RelocRow))
        scratch_vector(&scratch, &numbers, 4)
        scratch_vector(&scratch, &inputs, 4)
        key = <uint32_t*>scratch_zeros(&scratch, entity_count, 4)
        with nogil:
            for i in range(0 if scratch.failed else symbols):
                if symbol[i].entity >= 0:
                    key[symbol[i].entity] = <uint32_t>(symbol[i].part << 29 | i)
            for i in range(n):
                if scratch.failed:
                    break
                if home[i] != out:
                    continue
                piece = <PieceRow*>vec_push(&pieces)
                source = <int32_t*>vec_push(&inputs)
                if piece == NULL or source == NULL:
                    scratch.failed = True
                    break
                source[0] = <int32_t>i
                piece.offset = s[i].offset
                piece.size = s[i].size
                piece.count = 0
                # Both tables are in input order.
                while at < count and (row[at].out != out or row[at].piece <= <int32_t>i):
                    if row[at].out == out and row[at].piece == <int32_t>i:
                        relocation = <RelocRow*>vec_push(&relocations)
                        number = <int32_t*>vec_push(&numbers)
                        if relocation == NULL or number == NULL:
                            scratch.failed = True
                            break
                        number[0] = <int32_t>at
                        relocation.r_offset = row[at].offset
                        relocation.target = key[row[at].entity] if row[at].entity >= 0 else 0
                        relocation.outcome = min(row[at].outcome, <uint32_t>OTHER)
                        piece.count += 1
                    at += 1
        if scratch.failed:
            raise MemoryError
        return vec_take(&pieces), vec_take(&relocations), vec_take(&numbers), vec_take(&inputs)
    finally:
        scratch_free(&scratch)


def headers_of(MergedTables merged not None, int out):
    """Mercury twins of the pieces of line section `out`, and the resolved fields of their headers.

    Both are empty when no field is resolved there, or when a piece has no twin.
    """
    cdef ObjectTables objects = merged.objects
    cdef const OutRow* row = merged.outs.rows
    cdef int32_t twin = row[out].merc
    cdef size_t n = objects.sections.count, i
    cdef size_t count = merged.fixups.count, at = 0, plain = 0
    cdef const SectionRow* s = objects.sections.rows
    cdef const int32_t* home = merged.out_of.rows
    cdef const uint64_t* start = merged.base.rows
    cdef const FixupRow* fixup = merged.fixups.rows
    cdef Vec pieces, patches
    cdef PieceRow* piece
    cdef DebugPatchRow* patch
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &pieces, sizeof(PieceRow))
        scratch_vector(&scratch, &patches, sizeof(DebugPatchRow))
        with nogil:
            for i in range(n):
                plain += home[i] == out
                if twin < 0 or home[i] != twin:
                    continue
                piece = <PieceRow*>vec_push(&pieces)
                if piece == NULL:
                    scratch.failed = True
                    break
                piece.offset = s[i].offset
                piece.size = s[i].size
                piece.count = 0
                while at < count and (fixup[at].out != twin
                                      or fixup[at].offset < start[i] + s[i].size):
                    if (fixup[at].out == twin and fixup[at].section >= 0
                            and fixup[at].how & FIXUP_MERC):
                        patch = <DebugPatchRow*>vec_push(&patches)
                        if patch == NULL:
                            scratch.failed = True
                            break
                        patch.r_offset = fixup[at].offset - start[i]
                        patch.value = <uint64_t>fixup[at].addend + start[fixup[at].section]
                        piece.count += 1
                    at += 1
        if scratch.failed:
            raise MemoryError
        if not patches.count or pieces.count != plain:
            return b"", b""
        return vec_take(&pieces), vec_take(&patches)
    finally:
        scratch_free(&scratch)


def live_names(MergedTables merged not None):
    """Names of the output's functions, each ended by NUL."""
    cdef ObjectTables objects = merged.objects
    cdef size_t n = merged.entities.count, i
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(objects.arena)
    cdef const SymbolRow* s = objects.symbols.rows
    cdef const EntityRow* e = merged.entities.rows
    cdef Vec names
    cdef uint8_t* place
    cdef const SymbolRow* symbol
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &names, 1)
        with nogil:
            for i in range(n):
                if e[i].kind != E_FUNC or not e[i].flags & EF_LIVE or not e[i].flags & EF_DEFINED:
                    continue
                symbol = &s[e[i].first]
                place = <uint8_t*>vec_extend(&names, symbol.name_size + 1)
                if place == NULL:
                    scratch.failed = True
                    break
                memcpy(place, base + symbol.name, symbol.name_size)
                place[symbol.name_size] = 0
        if scratch.failed:
            raise MemoryError
        return vec_take(&names)
    finally:
        scratch_free(&scratch)


def adopt(MergedTables merged not None, list results not None):
    """Enter rebuilt sections into `outs` and `emitted`.

    `results` has (OutRow, RebuildRow numbers, moved rows, size in bytes) for each.
    """
    merged.fill()
    cdef Outs outs = <Outs>Table.opened(<PyObject*>merged.outs)
    cdef OutRow* row = <OutRow*>outs.rows
    cdef const RebuildRow* source = merged.rebuilds.rows
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
        for out, numbers, moved, size in results:
            row[<int>out].size = size
            if row[<int>out].rela < 0:
                continue
            reloc = &row[row[<int>out].rela]
            number = <const int32_t*>PyBytes_AS_STRING(numbers)
            move = <const MovedRow*>PyBytes_AS_STRING(moved)
            count = PyBytes_GET_SIZE(moved) // sizeof(MovedRow)
            for i in range(count):
                emitted = <EmittedRow*>vec_push(&added)
                if emitted == NULL:
                    scratch.failed = True
                    break
                # The list is written newest first.
                emitted.offset = move[count - 1 - i].r_offset
                emitted.addend = source[number[move[count - 1 - i].row]].addend
                emitted.type = source[number[move[count - 1 - i].row]].type
                emitted.entity = source[number[move[count - 1 - i].row]].entity
                emitted.section = -1
                emitted.next = reloc.head
                reloc.head = <int32_t>(added.count - 1)
                reloc.count += 1
        if scratch.failed:
            raise MemoryError
        merged.outs = outs
        merged.emitted = Emitted(take_rows(&added))
    finally:
        scratch_free(&scratch)


def retarget(MergedTables merged not None, bytes inputs not None, bytes units not None, int out):
    """Let references to line units name the places of the units after the rebuild.

    `inputs` and `units` describe the rebuilt section `out`.
    """
    merged.fill()
    cdef Fixups fixups = <Fixups>Table.opened(<PyObject*>merged.fixups)
    cdef Emitted emitted = <Emitted>Table.opened(<PyObject*>merged.emitted)
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
    cdef uint64_t at
    while low < high:
        middle = (low + high) // 2
        at = start[piece[unit[middle].piece]] + unit[middle].start
        if at < position:
            low = middle + 1
        else:
            high = middle
    if low < count and start[piece[unit[low].piece]] + unit[low].start == position and (
            section < 0 or piece[unit[low].piece] == section):
        return <int64_t>unit[low].base
    return -1
