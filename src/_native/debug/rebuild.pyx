"""Rebuilding of debug sections from sm_100 on: converts between the link's tables and `debug`.

From sm_100 on every debug section exists twice: plain, with offsets of machine code, and as
`.nv.merc.*`. nvlink concatenates the mercury ones, but makes plain lines, frames and registers
anew, without what describes functions that are not in the output
(docs/format-notes/family-c-debug.md). The kernels of `pylink._native.debug` write these contents.
They know pieces, which are what one input has of the section, and relocations, but not the tables
of the link. `.debug_line` of two files, as an example:

    piece   sequences of                   outcome       output
    a       f, of which this copy stays    LIVE          unit of a, with this sequence
            g, which is dead               DEAD
    b       f, another copy, which lost    OVERRIDDEN    unit of b, without sequences

1. `find_debug_section` finds a section. `list_debug_pieces` lists its pieces, and their relocations
   with outcomes and the order of their symbols, by which lines are sorted.
2. `list_header_patches` lists fields of line headers for which only the mercury section has a
   relocation. `list_live_names` has the functions of the output, which decide on register ranges.
3. `adopt_sections` enters the sizes of the new sections, and the relocations that stay.
4. `retarget_units` corrects references to line units, which have moved: if an input is an output of
   `-r`, its `.debug_info` refers to them by offset.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp

from base.memory cimport check_memory
from base.scratch cimport (
    Scratch, scratch_free, scratch_init, scratch_reserve, scratch_vector, scratch_zeros,
)
from base.vector cimport Vec, vec_append, vec_push, vec_to_bytes
from debug.rows cimport OTHER, DebugPatchRow, MovedRow, PieceRow, RelocRow, UnitRow
from pylink._native.results cimport MergedTables
from pylink._native.tables cimport Blob, Emitted, Fixups, Numbers, Outs, Table, detach_rows
from relocationtypes cimport R_CUDA_32
from rownumbers cimport EF_DEFINED, EF_LIVE, E_FUNC, FIXUP_MERC
from sectionkinds cimport IS_DEBUG
from tables.kinds cimport is_plain
from tables.rows cimport (
    EmittedNumber, EmittedRow, EntityRow, FixupRow, OutNumber, OutRow, OutSymbolRow, RebuildCounter,
    RebuildNumber, RebuildRow, SectionCounter, SectionNumber, SectionRow, SymbolRow,
)
from tables.views cimport MergedView, ObjectsView


def find_debug_section(MergedTables merged not None, bytes name not None):
    """Return the OutRow of the plain debug section of this name, or -1."""
    cdef ObjectsView objects
    cdef const OutRow* row = merged.outs.rows
    cdef const SectionRow* section
    cdef size_t i
    merged.objects.view(&objects)
    for i in range(merged.outs.count):
        if not is_plain(row[i].kind, IS_DEBUG) or row[i].source < 0:
            continue
        section = &objects.sections[row[i].source]
        if (section.name_size == <uint32_t>PyBytes_GET_SIZE(name)
                and memcmp(objects.arena + section.name, PyBytes_AS_STRING(name),
                           section.name_size) == 0):
            return i
    return -1


cdef enum:
    # Bits for a symbol's number; its part (PART_LOCAL, PART_GLOBAL, PART_TAIL) is above these.
    PART_SHIFT = 29


# A debug section, plain or mercury, while its pieces are listed.
ctypedef struct Rebuild:
    ObjectsView objects
    MergedView merged
    OutNumber out               # OutRow of the section
    uint32_t* symbol_order      # by entity: place of its symbol in the output's order, or 0
    RebuildCounter row          # the next RebuildRow (list_pieces) or FixupRow (list_patches)
    Vec pieces                  # PieceRow: what each input has of the section
    Vec inputs                  # SectionNumber: the input section of each piece
    Vec relocations             # RelocRow: of all pieces, one after the other
    Vec numbers                 # RebuildNumber: of each relocation
    Vec patches                 # DebugPatchRow: resolved fields of line headers, of all pieces


def list_debug_pieces(MergedTables merged not None, OutNumber out):
    """List the pieces of the section with OutRow `out`, and their relocations."""
    # Returns PieceRows, RelocRows, the RebuildRow number of each relocation, and the SectionRow
    # number of each piece.
    cdef Rebuild rebuild
    cdef Scratch scratch
    start_rebuild(&rebuild, merged, out)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &rebuild.pieces, sizeof(PieceRow))
        scratch_vector(&scratch, &rebuild.relocations, sizeof(RelocRow))
        scratch_vector(&scratch, &rebuild.numbers, sizeof(RebuildNumber))
        scratch_vector(&scratch, &rebuild.inputs, sizeof(SectionNumber))
        rebuild.symbol_order = <uint32_t*>scratch_zeros(&scratch, rebuild.merged.entity_count, 4)
        if not scratch.failed:
            with nogil:
                number_symbols(&rebuild)
                scratch.failed = not list_pieces(&rebuild)
        check_memory(not scratch.failed)
        return (Blob(detach_rows(&rebuild.pieces)), Blob(detach_rows(&rebuild.relocations)),
                Numbers(detach_rows(&rebuild.numbers)), Numbers(detach_rows(&rebuild.inputs)))
    finally:
        scratch_free(&scratch)


cdef void start_rebuild(Rebuild* rebuild, MergedTables merged, OutNumber out) noexcept:
    """Set the views and the section's OutRow; the caller sets up vectors and `symbol_order`."""
    merged.objects.view(&rebuild.objects)
    merged.view(&rebuild.merged)
    rebuild.out = out
    rebuild.row = 0


cdef void number_symbols(Rebuild* rebuild) noexcept nogil:
    """Fill `symbol_order`: by part (local, global, PART_TAIL), then in order of creation."""
    cdef const OutSymbolRow* symbol
    cdef size_t i
    for i in range(rebuild.merged.out_symbol_count):
        symbol = &rebuild.merged.out_symbols[i]
        if symbol.entity >= 0:
            rebuild.symbol_order[symbol.entity] = <uint32_t>(symbol.part << PART_SHIFT | i)


cdef PieceRow* new_piece(Rebuild* rebuild, SectionCounter section) noexcept nogil:
    """Add a piece for an input section; NULL without memory."""
    cdef PieceRow* piece = <PieceRow*>vec_push(&rebuild.pieces)
    if piece != NULL:
        piece.offset = rebuild.objects.sections[section].offset
        piece.size = rebuild.objects.sections[section].size
        piece.count = 0
    return piece


cdef bint list_pieces(Rebuild* rebuild) noexcept nogil:
    """List all pieces and their relocations in the order of the inputs; False without memory."""
    cdef const RebuildRow* row
    cdef PieceRow* piece
    cdef SectionNumber* section
    cdef size_t i
    for i in range(rebuild.objects.section_count):
        if rebuild.merged.out_of[i] != rebuild.out:
            continue
        piece = new_piece(rebuild, i)
        section = <SectionNumber*>vec_push(&rebuild.inputs)
        if piece == NULL or section == NULL:
            return False
        section[0] = <SectionNumber>i
        while rebuild.row < rebuild.merged.rebuild_count:
            row = &rebuild.merged.rebuilds[rebuild.row]
            if row.out == rebuild.out and row.piece > <SectionNumber>i:
                break
            if row.out == rebuild.out and row.piece == <SectionNumber>i:
                if not list_relocation(rebuild, row):
                    return False
                piece.count += 1
            rebuild.row += 1
    return True


cdef bint list_relocation(Rebuild* rebuild, const RebuildRow* row) noexcept nogil:
    """List a relocation, `row`, of the last piece; False without memory."""
    cdef RelocRow* relocation = <RelocRow*>vec_push(&rebuild.relocations)
    cdef RebuildNumber* number = <RebuildNumber*>vec_push(&rebuild.numbers)
    if relocation == NULL or number == NULL:
        return False
    number[0] = <RebuildNumber>rebuild.row
    relocation.r_offset = row.offset
    relocation.target = rebuild.symbol_order[row.entity] if row.entity >= 0 else 0
    # RebuildOutcomes of functions have the numbers of DebugOutcome; all others become OTHER.
    relocation.outcome = min(row.outcome, <uint32_t>OTHER)
    return True


def list_header_patches(MergedTables merged not None, OutNumber out):
    """List the mercury twins of the pieces of a line section, and their resolved header fields."""
    # Returns PieceRows and DebugPatchRows. Both are empty if no field was resolved, or if a piece
    # has no twin.
    cdef Rebuild rebuild
    cdef size_t i, plain_count = 0      # number of pieces of the plain section
    cdef Scratch scratch
    start_rebuild(&rebuild, merged, merged.outs.rows[out].merc)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &rebuild.pieces, sizeof(PieceRow))
        scratch_vector(&scratch, &rebuild.patches, sizeof(DebugPatchRow))
        with nogil:
            for i in range(rebuild.objects.section_count):
                plain_count += rebuild.merged.out_of[i] == out
            scratch.failed |= rebuild.out >= 0 and not list_patches(&rebuild)
        check_memory(not scratch.failed)
        if not rebuild.patches.count or rebuild.pieces.count != plain_count:
            return Blob(), Blob()
        return Blob(detach_rows(&rebuild.pieces)), Blob(detach_rows(&rebuild.patches))
    finally:
        scratch_free(&scratch)


cdef bint list_patches(Rebuild* rebuild) noexcept nogil:
    """List all pieces of a mercury section, and the fields that the link resolved in them.

    False without memory.
    """
    cdef const uint64_t* start = rebuild.merged.base    # by input section: offset in its OutRow
    cdef const FixupRow* fixup
    cdef DebugPatchRow* patch
    cdef PieceRow* piece
    cdef size_t i
    for i in range(rebuild.objects.section_count):
        if rebuild.merged.out_of[i] != rebuild.out:
            continue
        piece = new_piece(rebuild, i)
        if piece == NULL:
            return False
        while rebuild.row < rebuild.merged.fixup_count:
            fixup = &rebuild.merged.fixups[rebuild.row]
            if (fixup.out == rebuild.out
                    and fixup.offset >= start[i] + rebuild.objects.sections[i].size):
                break
            if fixup.out == rebuild.out and fixup.section >= 0 and fixup.how & FIXUP_MERC:
                patch = <DebugPatchRow*>vec_push(&rebuild.patches)
                if patch == NULL:
                    return False
                patch.r_offset = fixup.offset - start[i]
                patch.value = <uint64_t>fixup.addend + start[fixup.section]
                piece.count += 1
            rebuild.row += 1
    return True


def list_live_names(MergedTables merged not None):
    """Return the names of the output's functions, each with a NUL at its end."""
    cdef ObjectsView objects
    cdef const EntityRow* entities = merged.entities.rows
    cdef const SymbolRow* symbol
    cdef Vec names
    cdef size_t i
    cdef Scratch scratch
    merged.objects.view(&objects)
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &names, 1)
        with nogil:
            for i in range(merged.entities.count):
                if (entities[i].kind != E_FUNC or not entities[i].flags & EF_LIVE
                        or not entities[i].flags & EF_DEFINED):
                    continue
                symbol = &objects.symbols[entities[i].first]
                scratch.failed |= not vec_append(&names, objects.arena + symbol.name,
                                                 symbol.name_size + 1)      # with its NUL
        check_memory(not scratch.failed)
        return vec_to_bytes(&names)
    finally:
        scratch_free(&scratch)


def adopt_sections(MergedTables merged not None, list results not None):
    """Enter sizes and relocations of rebuilt sections into `outs` and `emitted`."""
    # A result is (OutRow, RebuildRow numbers of all its relocations, MovedRows, new size in bytes).
    merged.fill()
    cdef Outs outs = <Outs>Table.writable(<PyObject*>merged.outs)
    cdef OutRow* row = <OutRow*>outs.rows
    cdef const RebuildRow* origin
    cdef const RebuildNumber* number
    cdef const MovedRow* moved
    cdef Vec all_emitted        # EmittedRow: the table's, then those of the rebuilt sections
    cdef EmittedRow* emitted
    cdef size_t i, count
    cdef OutRow* reloc          # the RELA section of a rebuilt section
    cdef Scratch scratch
    scratch_init(&scratch)
    try:
        scratch_vector(&scratch, &all_emitted, sizeof(EmittedRow))
        count = merged.emitted.count
        for _, _, moved_rows, _ in results:
            count += (<Blob?>moved_rows).count // sizeof(MovedRow)
        scratch_reserve(&scratch, &all_emitted, count)
        scratch.failed |= not vec_append(&all_emitted, merged.emitted.rows, merged.emitted.count)
        for out, numbers, moved_rows, size in results:
            row[<OutNumber><int>out].size = size
            if row[<OutNumber><int>out].rela < 0:
                continue
            reloc = &row[row[<OutNumber><int>out].rela]
            number = <const RebuildNumber*>(<Numbers?>numbers).rows
            moved = <const MovedRow*>(<Blob>moved_rows).rows
            count = (<Blob>moved_rows).count // sizeof(MovedRow)
            for i in range(count):
                emitted = <EmittedRow*>vec_push(&all_emitted)
                if emitted == NULL:
                    scratch.failed = True
                    break
                # The image has the entries of a list newest first, so the last one is added first.
                origin = &merged.rebuilds.rows[number[moved[count - 1 - i].row]]
                emitted.offset = moved[count - 1 - i].r_offset
                emitted.addend = origin.addend
                emitted.type = origin.type
                emitted.entity = origin.entity
                emitted.section = -1
                emitted.next = reloc.head
                reloc.head = <EmittedNumber>(all_emitted.count - 1)
                reloc.count += 1
        check_memory(not scratch.failed)
        merged.outs = outs
        merged.emitted = Emitted(detach_rows(&all_emitted))
    finally:
        scratch_free(&scratch)


def retarget_units(MergedTables merged not None, Numbers inputs not None, Blob units not None,
                   OutNumber out):
    """Update references to line units to their new offsets, in `fixups` and `emitted`."""
    # `out` is the OutRow of the rebuilt section; `inputs` are the input sections of its pieces,
    # `units` the UnitRows of its line units.
    merged.fill()
    cdef Fixups fixups = <Fixups>Table.writable(<PyObject*>merged.fixups)
    cdef Emitted emitted = <Emitted>Table.writable(<PyObject*>merged.emitted)
    cdef FixupRow* fixup = <FixupRow*>fixups.rows
    cdef EmittedRow* row = <EmittedRow*>emitted.rows
    cdef const uint64_t* start = merged.base.rows       # by input section: offset in its OutRow
    cdef const SectionNumber* sections = <const SectionNumber*>inputs.rows
    cdef const UnitRow* unit_rows = <const UnitRow*>units.rows
    cdef size_t fixup_count = merged.fixups.count, i
    cdef size_t emitted_count = merged.emitted.count
    cdef size_t unit_count = units.count // sizeof(UnitRow)
    cdef int64_t new_offset
    cdef SectionNumber first_section, last_section
    if not unit_count:
        return
    first_section = sections[0]
    last_section = sections[inputs.count - 1]
    with nogil:
        for i in range(fixup_count):
            if (fixup[i].how & FIXUP_MERC
                    or not first_section <= fixup[i].section <= last_section):
                continue
            new_offset = find_unit(unit_rows, unit_count, sections, start,
                                   start[fixup[i].section] + <uint64_t>fixup[i].addend,
                                   fixup[i].section)
            if new_offset >= 0:
                fixup[i].addend = new_offset
                fixup[i].section = -1
        for i in range(emitted_count):
            if row[i].section != out or row[i].type != R_CUDA_32:
                continue
            new_offset = find_unit(unit_rows, unit_count, sections, start, <uint64_t>row[i].addend,
                                   -1)
            if new_offset >= 0:
                row[i].addend = new_offset
    merged.fixups = fixups
    merged.emitted = emitted


cdef int64_t find_unit(const UnitRow* units, size_t count, const SectionNumber* sections,
                       const uint64_t* start, uint64_t position,
                       SectionNumber section) noexcept nogil:
    """Return the offset in the new section of the line unit at `position`, -1 if none begins there.

    `position` is an offset in the plain concatenation of the pieces. `sections` are the input
    sections of the pieces; `start`, by input section, is where each begins in that concatenation.
    If `section` is not -1, the unit must be in the piece of that input section.
    """
    cdef size_t low = 0, high = count, middle
    cdef uint64_t offset
    while low < high:
        middle = (low + high) // 2
        offset = start[sections[units[middle].piece]] + units[middle].start
        if offset < position:
            low = middle + 1
        else:
            high = middle
    if low < count and start[sections[units[low].piece]] + units[low].start == position and (
            section < 0 or sections[units[low].piece] == section):
        return <int64_t>units[low].base
    return -1
