# Line sections: units move with their headers, sequences move whole, no program is interpreted.
# A release may close a program without sequences with the opcode that ends a sequence.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport load16, load32
from base.vector cimport Vec, vec_append, vec_push
from debug.rows cimport (
    LEAST_SEQUENCE, LINE_HEADER, LIVE, PREFIX, R_ADDRESS, R_CUT_OFF, R_FORMAT, R_HEADER, R_LENGTH,
    R_MEMORY, R_PATCH, R_UNITS, R_VERSION, Cut, DebugPatchRow, LineUnit, PieceRow, RebuildFault,
    Rebuilt, UnitRow, compare_cuts_by_offset, compare_cuts_by_target, keep_row, read_cuts,
    set_rebuild_fault, sort_cuts,
)

cdef inline bint end_program(Rebuilt* section) noexcept nogil:
    """Append the opcode that ends a sequence: extended, of one byte, number 1."""
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
        if length >= 0xfffffff0U:
            return set_rebuild_fault(fault, start, R_FORMAT)
        if length < LINE_HEADER - 4 or length > size - start - 4:
            return set_rebuild_fault(fault, start, R_LENGTH)
        if not 2 <= load16(data + start + 4) <= 4:
            return set_rebuild_fault(fault, start, R_VERSION)
        if load32(data + start + 6) > length - (LINE_HEADER - 4):
            return set_rebuild_fault(fault, start, R_HEADER)
        unit = <LineUnit*>vec_push(units)
        if unit == NULL:
            return set_rebuild_fault(fault, start, R_MEMORY)
        unit.start = start
        unit.program = start + LINE_HEADER + load32(data + start + 6)
        unit.end = start + 4 + length
        unit.base = 0
        start = unit.end
    return True


cdef inline bint move_piece_unit(Rebuilt* section, const uint8_t* data, LineUnit* unit, Cut* cuts,
                                 size_t count) noexcept nogil:
    """Append one unit; `cuts` are its sequences, by offset, and are sorted anew."""
    cdef uint64_t first = unit.end, length
    cdef size_t i, live = 0
    if count:
        first = cuts[0].offset
        if first < unit.program:
            return set_rebuild_fault(&section.fault, first + PREFIX, R_ADDRESS)
    for i in range(count):
        cuts[i].stop = cuts[i + 1].offset if i + 1 < count else unit.end
        if (cuts[i].stop - cuts[i].offset < LEAST_SEQUENCE or data[cuts[i].offset] != 0
                or data[cuts[i].offset + 1] != 9 or data[cuts[i].offset + 2] != 2):
            return set_rebuild_fault(&section.fault, cuts[i].offset + PREFIX, R_ADDRESS)
    for i in range(count):
        if cuts[i].outcome == LIVE:
            cuts[live] = cuts[i]
            live += 1
    sort_cuts(cuts, live, compare_cuts_by_target)
    unit.base = section.out.count
    vec_append(&section.out, data + unit.start, first - unit.start)
    for i in range(live):
        if not keep_row(section, section.out.count + PREFIX, cuts[i].row):
            return False
        vec_append(&section.out, data + cuts[i].offset, cuts[i].stop - cuts[i].offset)
    if (section.ended and section.out.count - unit.base == unit.program - unit.start
            and not end_program(section)):
        return False
    length = section.out.count - unit.base - 4
    memcpy(section.out.data + unit.base, &length, 4)
    return True


cdef inline bint patch_headers(Rebuilt* section, const PieceRow* twin_piece,
                               const DebugPatchRow* rows, const Vec* units,
                               Vec* twins) noexcept nogil:
    """Write resolved mercury header fields into the same fields of the rebuilt headers."""
    cdef const LineUnit* unit = <const LineUnit*>units.data
    cdef const LineUnit* twin
    cdef Cut* cut
    cdef size_t at = 0
    cdef uint64_t i, value, count = twin_piece.count
    if not read_units(section.arena + twin_piece.offset, twin_piece.size, twins, &section.fault):
        return False
    twin = <const LineUnit*>twins.data
    if twins.count != units.count:
        return set_rebuild_fault(&section.fault, twin_piece.size, R_UNITS)
    section.cuts.count = 0
    for i in range(count):
        cut = <Cut*>vec_push(&section.cuts)
        if cut == NULL:
            return set_rebuild_fault(&section.fault, 0, R_MEMORY)
        cut.offset = rows[i].r_offset
        cut.row = i
    cut = <Cut*>section.cuts.data
    sort_cuts(cut, count, compare_cuts_by_offset)
    for i in range(count):
        while at < twins.count and twin[at].end <= cut[i].offset:
            at += 1
        if (at == twins.count or cut[i].offset > twin[at].program
                or twin[at].program - cut[i].offset < 4):
            return set_rebuild_fault(&section.fault, cut[i].offset, R_PATCH)
        if twin[at].program - twin[at].start != unit[at].program - unit[at].start:
            return set_rebuild_fault(&section.fault, twin[at].start, R_UNITS)
        value = rows[cut[i].row].value
        memcpy(section.out.data + unit[at].base + cut[i].offset - twin[at].start, &value, 4)
    return True


cdef inline bint move_piece(Rebuilt* section, size_t piece, uint64_t first, Vec* units,
                            Vec* unit_rows) noexcept nogil:
    """Append the units of one piece, whose relocations begin at row `first`."""
    cdef const uint8_t* data = section.arena + section.pieces[piece].offset
    cdef UnitRow* row
    cdef LineUnit* unit
    cdef Cut* cut
    cdef size_t u, low = 0, high
    if not read_units(data, section.pieces[piece].size, units, &section.fault):
        return False
    if not read_cuts(section, first, section.pieces[piece].count, PREFIX):
        return False
    cut = <Cut*>section.cuts.data
    for u in range(units.count):
        unit = <LineUnit*>units.data + u
        high = low
        while high < section.cuts.count and cut[high].offset + PREFIX < unit.end:
            high += 1
        if not move_piece_unit(section, data, unit, cut + low, high - low):
            return False
        low = high
        row = <UnitRow*>vec_push(unit_rows)
        if row == NULL:
            return set_rebuild_fault(&section.fault, 0, R_MEMORY)
        row.piece = piece
        row.start = unit.start
        row.base = unit.base
    return (low == section.cuts.count
            or set_rebuild_fault(&section.fault, cut[low].offset + PREFIX, R_ADDRESS))


cdef inline bint move_lines(Rebuilt* section, const PieceRow* headers, const DebugPatchRow* patches,
                            Vec* units, Vec* twins, Vec* unit_rows) noexcept nogil:
    """All pieces; `headers` are their mercury twins, or NULL."""
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
