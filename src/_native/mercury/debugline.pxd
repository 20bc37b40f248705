# Line sections: units move with their headers, sequences move whole, no program is interpreted.

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from debugrows cimport *
from vec cimport *


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


cdef inline bint move_unit(const uint8_t* data, Unit* unit, Cut* cuts, size_t count, uint8_t* out,
                           uint64_t* used, Vec* moved, Fault* fault) noexcept nogil:
    """Append one unit; `cuts` are its sequences, by offset, and are sorted anew."""
    cdef uint64_t first = unit.end, size
    cdef size_t i, live = 0
    cdef MovedRow* row
    if count:
        first = cuts[0].offset
        if first < unit.program:
            return fail(fault, first + PREFIX, R_ADDRESS)
    for i in range(count):
        cuts[i].stop = cuts[i + 1].offset if i + 1 < count else unit.end
        if (cuts[i].stop - cuts[i].offset < SEQUENCE or data[cuts[i].offset] != 0
                or data[cuts[i].offset + 1] != 9 or data[cuts[i].offset + 2] != 2):
            return fail(fault, cuts[i].offset + PREFIX, R_ADDRESS)
    for i in range(count):
        if cuts[i].outcome == LIVE:
            cuts[live] = cuts[i]
            live += 1
    sort_cuts(cuts, live, by_target)
    unit.base = used[0]
    memcpy(out + used[0], data + unit.start, first - unit.start)
    used[0] += first - unit.start
    for i in range(live):
        row = <MovedRow*>vec_push(moved)
        if row == NULL:
            return fail(fault, 0, R_MEMORY)
        row.r_offset = used[0] + PREFIX
        row.row = cuts[i].row
        size = cuts[i].stop - cuts[i].offset
        memcpy(out + used[0], data + cuts[i].offset, size)
        used[0] += size
    size = used[0] - unit.base - 4
    memcpy(out + unit.base, &size, 4)
    return True


cdef inline bint patch_headers(const uint8_t* data, uint64_t size, const DebugPatchRow* rows,
                               uint64_t count, const Vec* units, Vec* twins, Vec* cuts,
                               uint8_t* out, Fault* fault) noexcept nogil:
    """Write resolved mercury header fields into the same fields of the rebuilt headers."""
    cdef const Unit* unit = <const Unit*>units.data
    cdef const Unit* twin
    cdef Cut* cut
    cdef size_t at = 0
    cdef uint64_t i, value
    if not read_units(data, size, twins, fault):
        return False
    twin = <const Unit*>twins.data
    if twins.count != units.count:
        return fail(fault, size, R_UNITS)
    cuts.count = 0
    for i in range(count):
        cut = <Cut*>vec_push(cuts)
        if cut == NULL:
            return fail(fault, 0, R_MEMORY)
        cut.offset = rows[i].r_offset
        cut.row = i
    cut = <Cut*>cuts.data
    sort_cuts(cut, count, by_offset)
    for i in range(count):
        while at < twins.count and twin[at].end <= cut[i].offset:
            at += 1
        if (at == twins.count or cut[i].offset > twin[at].program
                or twin[at].program - cut[i].offset < 4):
            return fail(fault, cut[i].offset, R_PATCH)
        if twin[at].program - twin[at].start != unit[at].program - unit[at].start:
            return fail(fault, twin[at].start, R_UNITS)
        value = rows[cut[i].row].value
        memcpy(out + unit[at].base + cut[i].offset - twin[at].start, &value, 4)
    return True


cdef inline bint move_lines(const uint8_t* arena, const PieceRow* pieces, const PieceRow* headers,
                            size_t count, const RelocRow* relocs, const DebugPatchRow* patches,
                            uint8_t* out, uint64_t* used, PlacedRow* placed, Vec* moved, Vec* units,
                            Vec* twins, Vec* cuts, Vec* unit_rows, Fault* fault) noexcept nogil:
    cdef uint64_t reloc = 0, patch = 0
    cdef UnitRow* row
    cdef const uint8_t* data
    cdef Unit* unit
    cdef Cut* cut
    cdef size_t i, u, low, high
    for i in range(count):
        fault.piece = i
        data = arena + pieces[i].offset
        placed[i].base = used[0]
        if not read_units(data, pieces[i].size, units, fault):
            return False
        if not read_cuts(relocs, reloc, pieces[i].count, PREFIX, cuts, fault):
            return False
        cut = <Cut*>cuts.data
        low = 0
        for u in range(units.count):
            unit = <Unit*>units.data + u
            high = low
            while high < cuts.count and cut[high].offset + PREFIX < unit.end:
                high += 1
            if not move_unit(data, unit, cut + low, high - low, out, used, moved, fault):
                return False
            low = high
            row = <UnitRow*>vec_push(unit_rows)
            if row == NULL:
                return fail(fault, 0, R_MEMORY)
            row.piece = i
            row.start = unit.start
            row.base = unit.base
        if low < cuts.count:
            return fail(fault, cut[low].offset + PREFIX, R_ADDRESS)
        reloc += pieces[i].count
        placed[i].size = used[0] - placed[i].base
        if headers != NULL:
            fault.mercury = True
            if not patch_headers(arena + headers[i].offset, headers[i].size, patches + patch,
                                 headers[i].count, units, twins, cuts, out, fault):
                return False
            patch += headers[i].count
            fault.mercury = False
    return True
