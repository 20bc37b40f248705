# Line sections, `.debug_line` and `.nv_debug_line_sass`: units move with their headers, sequences
# move whole, no program is interpreted. From CUDA 13.5 on, a program that is empty then gets the
# opcode that ends a sequence. A unit with the sequences of three functions, for example:
#
#     input     header    sequence of h (dead)    of g (symbol 7)    of f (symbol 5)
#     output    header    sequence of f           of g

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport load16, load32
from base.vector cimport Vec, vec_append, vec_push
from debug.rows cimport (
    LEAST_SEQUENCE, LINE_HEADER, LIVE, PREFIX, R_ADDRESS, R_CUT_OFF, R_FORMAT, R_HEADER, R_LENGTH,
    R_MEMORY, R_PATCH, R_UNITS, R_VERSION, DebugPatchRow, FunctionRef, LineUnit, PieceRow,
    RebuildFault, Rebuilt, UnitRow, compare_refs_by_offset, compare_refs_by_target, keep_row,
    read_refs, set_rebuild_fault, sort_refs,
)
from dwarf cimport UNIT_HEADER_LENGTH, UNIT_VERSION

cdef inline bint end_program(Rebuilt* section) noexcept nogil:
    """Append the opcode that ends a sequence: extended (0), of one byte, DW_LNE_end_sequence (1).
    """
    return (vec_append(&section.out, <const char*>b"\x00\x01\x01", PREFIX)
            or set_rebuild_fault(&section.fault, section.out.count, R_MEMORY))


cdef inline bint read_units(const uint8_t* data, uint64_t size, Vec* units,
                            RebuildFault* fault) noexcept nogil:
    """List the line units of a piece; False with a fault."""
    cdef uint64_t start = 0, length
    cdef LineUnit* unit
    units.count = 0
    while start < size:
        if size - start < LINE_HEADER:
            return set_rebuild_fault(fault, start, R_CUT_OFF)
        length = load32(data + start)
        if length >= 0xfffffff0U:           # DWARF reserves these, the last for 64-bit lengths
            return set_rebuild_fault(fault, start, R_FORMAT)
        if length < LINE_HEADER - 4 or length > size - start - 4:
            return set_rebuild_fault(fault, start, R_LENGTH)
        if not 2 <= load16(data + start + UNIT_VERSION) <= 4:
            return set_rebuild_fault(fault, start, R_VERSION)
        if load32(data + start + UNIT_HEADER_LENGTH) > length - (LINE_HEADER - 4):
            return set_rebuild_fault(fault, start, R_HEADER)
        unit = <LineUnit*>vec_push(units)
        if unit == NULL:
            return set_rebuild_fault(fault, start, R_MEMORY)
        unit.start = start
        unit.program = start + LINE_HEADER + load32(data + start + UNIT_HEADER_LENGTH)
        unit.end = start + 4 + length
        unit.base = 0
        start = unit.end
    return True


cdef inline bint move_piece_unit(Rebuilt* section, const uint8_t* data, LineUnit* unit,
                                 FunctionRef* refs, size_t count) noexcept nogil:
    """Append one unit of the piece `data`; False with a fault.

    `refs` are the `count` references of its sequences, by offset. The sequences that stay are
    sorted by the order of the output's symbols.
    """
    cdef uint64_t first_sequence = unit.end, length
    cdef size_t i, live = 0
    if count:
        first_sequence = refs[0].offset
        if first_sequence < unit.program:
            return set_rebuild_fault(&section.fault, first_sequence + PREFIX, R_ADDRESS)
    for i in range(count):
        refs[i].stop = refs[i + 1].offset if i + 1 < count else unit.end
        if (refs[i].stop - refs[i].offset < LEAST_SEQUENCE or data[refs[i].offset] != 0
                or data[refs[i].offset + 1] != 9 or data[refs[i].offset + 2] != 2):
            return set_rebuild_fault(&section.fault, refs[i].offset + PREFIX, R_ADDRESS)
    for i in range(count):
        if refs[i].outcome == LIVE:
            refs[live] = refs[i]
            live += 1
    sort_refs(refs, live, compare_refs_by_target)
    unit.base = section.out.count
    if not vec_append(&section.out, data + unit.start, first_sequence - unit.start):
        return set_rebuild_fault(&section.fault, unit.start, R_MEMORY)
    for i in range(live):
        if not keep_row(section, section.out.count + PREFIX, refs[i].row):
            return False
        if not vec_append(&section.out, data + refs[i].offset, refs[i].stop - refs[i].offset):
            return set_rebuild_fault(&section.fault, refs[i].offset, R_MEMORY)
    if (section.ended and section.out.count - unit.base == unit.program - unit.start
            and not end_program(section)):
        return False
    length = section.out.count - unit.base - 4
    memcpy(section.out.data + unit.base, &length, 4)
    return True


cdef inline bint patch_headers(Rebuilt* section, const PieceRow* twin_piece,
                               const DebugPatchRow* rows, const Vec* units,
                               Vec* twins) noexcept nogil:
    """Write resolved fields of mercury headers into the same fields of a piece's new headers.

    `rows` are the patches of the piece, `units` its units. `twins` is filled with the units of its
    mercury form, `twin_piece`. False with a fault.
    """
    cdef const LineUnit* unit = <const LineUnit*>units.data
    cdef const LineUnit* twin
    cdef FunctionRef* ref       # the patches of the piece, by offset
    cdef size_t u = 0           # number of the unit, the same in both forms
    cdef uint64_t i, value, count = twin_piece.count
    if not read_units(section.arena + twin_piece.offset, twin_piece.size, twins, &section.fault):
        return False
    twin = <const LineUnit*>twins.data
    if twins.count != units.count:
        return set_rebuild_fault(&section.fault, twin_piece.size, R_UNITS)
    section.refs.count = 0
    for i in range(count):
        ref = <FunctionRef*>vec_push(&section.refs)
        if ref == NULL:
            return set_rebuild_fault(&section.fault, 0, R_MEMORY)
        ref.offset = rows[i].r_offset
        ref.row = i
    ref = <FunctionRef*>section.refs.data
    sort_refs(ref, count, compare_refs_by_offset)
    for i in range(count):
        while u < twins.count and twin[u].end <= ref[i].offset:
            u += 1
        if (u == twins.count or ref[i].offset > twin[u].program
                or twin[u].program - ref[i].offset < 4):
            return set_rebuild_fault(&section.fault, ref[i].offset, R_PATCH)
        if twin[u].program - twin[u].start != unit[u].program - unit[u].start:
            return set_rebuild_fault(&section.fault, twin[u].start, R_UNITS)
        value = rows[ref[i].row].value
        memcpy(section.out.data + unit[u].base + ref[i].offset - twin[u].start, &value, 4)
    return True


cdef inline bint move_piece(Rebuilt* section, size_t piece, uint64_t first, Vec* units,
                            Vec* unit_rows) noexcept nogil:
    """Append the units of one piece, whose relocations begin at RelocRow `first`.

    `units` is filled with the units of the piece, `unit_rows` gets a UnitRow for each. False with a
    fault.
    """
    cdef const uint8_t* data = section.arena + section.pieces[piece].offset
    cdef UnitRow* row
    cdef LineUnit* unit
    cdef FunctionRef* ref
    cdef size_t u, low = 0, high    # the references of unit `u` are those from `low` to `high` - 1
    if not read_units(data, section.pieces[piece].size, units, &section.fault):
        return False
    if not read_refs(section, first, section.pieces[piece].count, PREFIX):
        return False
    ref = <FunctionRef*>section.refs.data
    for u in range(units.count):
        unit = <LineUnit*>units.data + u
        high = low
        while high < section.refs.count and ref[high].offset + PREFIX < unit.end:
            high += 1
        if not move_piece_unit(section, data, unit, ref + low, high - low):
            return False
        low = high
        row = <UnitRow*>vec_push(unit_rows)
        if row == NULL:
            return set_rebuild_fault(&section.fault, 0, R_MEMORY)
        row.piece = piece
        row.start = unit.start
        row.base = unit.base
    return (low == section.refs.count
            or set_rebuild_fault(&section.fault, ref[low].offset + PREFIX, R_ADDRESS))


cdef inline bint move_lines(Rebuilt* section, const PieceRow* headers, const DebugPatchRow* patches,
                            Vec* units, Vec* twins, Vec* unit_rows) noexcept nogil:
    """Rebuild a line section; False with a fault.

    `headers` are the mercury twins of the pieces, or NULL. `patches` are the DebugPatchRows that
    these count. `units` and `twins` are memory for the units of a piece and of its mercury twin;
    `unit_rows` gets a UnitRow for each unit.
    """
    cdef uint64_t reloc = 0
    cdef size_t i
    for i in range(section.count):
        section.fault.piece = i
        if not move_piece(section, i, reloc, units, unit_rows):
            return False
        reloc += section.pieces[i].count
        if headers != NULL:
            section.fault.mercury = True
            if not patch_headers(section, &headers[i], patches, units, twins):
                return False
            patches += headers[i].count
            section.fault.mercury = False
    return True
