# Line sections: units move with their headers, sequences move whole, no program is interpreted.
# A release may close a program that has none with the opcode that ends a sequence.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport load16, load32
from debug.rows cimport (
    LINE_HEADER, LIVE, PREFIX, R_ADDRESS, R_CUT_OFF, R_FORMAT, R_HEADER, R_LENGTH, R_MEMORY,
    R_PATCH, R_UNITS, R_VERSION, SEQUENCE, Cut, DebugPatchRow, Fault, PieceRow, Rebuilt, Unit,
    UnitRow, by_offset, by_target, fail, keep_row, read_cuts, sort_cuts,
)
from base.vector cimport Vec, vec_append, vec_push

cdef inline bint end_program(Rebuilt* b) noexcept nogil:
    """Append the opcode that ends a sequence: extended, of one byte, number 1."""
    return (vec_append(&b.out, <const char*>b"\x00\x01\x01", PREFIX)
            or fail(&b.fault, b.out.count, R_MEMORY))


cdef inline bint read_units(const uint8_t* data, uint64_t size, Vec* units,
                            Fault* fault) noexcept nogil:
    cdef uint64_t start = 0, length
    cdef Unit* unit
    units.count = 0
    while start < size:
        if size - start < LINE_HEADER:
            return fail(fault, start, R_CUT_OFF)
        length = load32(data + start)
        if length >= 0xfffffff0U:
            return fail(fault, start, R_FORMAT)
        if length < LINE_HEADER - 4 or length > size - start - 4:
            return fail(fault, start, R_LENGTH)
        if not 2 <= load16(data + start + 4) <= 4:
            return fail(fault, start, R_VERSION)
        if load32(data + start + 6) > length - (LINE_HEADER - 4):
            return fail(fault, start, R_HEADER)
        unit = <Unit*>vec_push(units)
        if unit == NULL:
            return fail(fault, start, R_MEMORY)
        unit.start = start
        unit.program = start + LINE_HEADER + load32(data + start + 6)
        unit.end = start + 4 + length
        unit.base = 0
        start = unit.end
    return True


cdef inline bint move_unit(Rebuilt* b, const uint8_t* data, Unit* unit, Cut* cuts,
                           size_t count) noexcept nogil:
    """Append one unit; `cuts` are its sequences, by offset, and are sorted anew."""
    cdef uint64_t first = unit.end, length
    cdef size_t i, live = 0
    if count:
        first = cuts[0].offset
        if first < unit.program:
            return fail(&b.fault, first + PREFIX, R_ADDRESS)
    for i in range(count):
        cuts[i].stop = cuts[i + 1].offset if i + 1 < count else unit.end
        if (cuts[i].stop - cuts[i].offset < SEQUENCE or data[cuts[i].offset] != 0
                or data[cuts[i].offset + 1] != 9 or data[cuts[i].offset + 2] != 2):
            return fail(&b.fault, cuts[i].offset + PREFIX, R_ADDRESS)
    for i in range(count):
        if cuts[i].outcome == LIVE:
            cuts[live] = cuts[i]
            live += 1
    sort_cuts(cuts, live, by_target)
    unit.base = b.out.count
    vec_append(&b.out, data + unit.start, first - unit.start)
    for i in range(live):
        if not keep_row(b, b.out.count + PREFIX, cuts[i].row):
            return False
        vec_append(&b.out, data + cuts[i].offset, cuts[i].stop - cuts[i].offset)
    if b.ended and b.out.count - unit.base == unit.program - unit.start and not end_program(b):
        return False
    length = b.out.count - unit.base - 4
    memcpy(b.out.data + unit.base, &length, 4)
    return True


cdef inline bint patch_headers(Rebuilt* b, const PieceRow* twin_piece, const DebugPatchRow* rows,
                               const Vec* units, Vec* twins) noexcept nogil:
    """Write resolved mercury header fields into the same fields of the rebuilt headers."""
    cdef const Unit* unit = <const Unit*>units.data
    cdef const Unit* twin
    cdef Cut* cut
    cdef size_t at = 0
    cdef uint64_t i, value, count = twin_piece.count
    if not read_units(b.arena + twin_piece.offset, twin_piece.size, twins, &b.fault):
        return False
    twin = <const Unit*>twins.data
    if twins.count != units.count:
        return fail(&b.fault, twin_piece.size, R_UNITS)
    b.cuts.count = 0
    for i in range(count):
        cut = <Cut*>vec_push(&b.cuts)
        if cut == NULL:
            return fail(&b.fault, 0, R_MEMORY)
        cut.offset = rows[i].r_offset
        cut.row = i
    cut = <Cut*>b.cuts.data
    sort_cuts(cut, count, by_offset)
    for i in range(count):
        while at < twins.count and twin[at].end <= cut[i].offset:
            at += 1
        if (at == twins.count or cut[i].offset > twin[at].program
                or twin[at].program - cut[i].offset < 4):
            return fail(&b.fault, cut[i].offset, R_PATCH)
        if twin[at].program - twin[at].start != unit[at].program - unit[at].start:
            return fail(&b.fault, twin[at].start, R_UNITS)
        value = rows[cut[i].row].value
        memcpy(b.out.data + unit[at].base + cut[i].offset - twin[at].start, &value, 4)
    return True


cdef inline bint move_piece(Rebuilt* b, size_t piece, uint64_t first, Vec* units,
                            Vec* unit_rows) noexcept nogil:
    """Append the units of one piece, whose relocations begin at row `first`."""
    cdef const uint8_t* data = b.arena + b.pieces[piece].offset
    cdef UnitRow* row
    cdef Unit* unit
    cdef Cut* cut
    cdef size_t u, low = 0, high
    if not read_units(data, b.pieces[piece].size, units, &b.fault):
        return False
    if not read_cuts(b, first, b.pieces[piece].count, PREFIX):
        return False
    cut = <Cut*>b.cuts.data
    for u in range(units.count):
        unit = <Unit*>units.data + u
        high = low
        while high < b.cuts.count and cut[high].offset + PREFIX < unit.end:
            high += 1
        if not move_unit(b, data, unit, cut + low, high - low):
            return False
        low = high
        row = <UnitRow*>vec_push(unit_rows)
        if row == NULL:
            return fail(&b.fault, 0, R_MEMORY)
        row.piece = piece
        row.start = unit.start
        row.base = unit.base
    return low == b.cuts.count or fail(&b.fault, cut[low].offset + PREFIX, R_ADDRESS)


cdef inline bint move_lines(Rebuilt* b, const PieceRow* headers, const DebugPatchRow* patches,
                            Vec* units, Vec* twins, Vec* unit_rows) noexcept nogil:
    """All pieces; `headers` are their mercury twins, or NULL."""
    cdef uint64_t reloc = 0
    cdef size_t i
    for i in range(b.count):
        b.fault.piece = i
        if not move_piece(b, i, reloc, units, unit_rows):
            return False
        reloc += b.pieces[i].count
        if headers != NULL:
            b.fault.mercury = True
            if not patch_headers(b, &headers[i], patches, units, twins):
                return False
            patches += headers[i].count
            b.fault.mercury = False
    return True
