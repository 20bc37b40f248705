# Line number programs: sequences of rewritten kernels are encoded anew, all others are copied.
#
# A program has opcodes that advance the address and the line, and opcodes that add a row of both.
# If instructions move, the distances between rows change, and with them the opcodes. For example, a
# row is 1 line and 0x600 bytes after the row before it, and a fence between them loses its four
# dummy loads (0x40 bytes):
#
#     before    DW_LNS_advance_line 1, DW_LNS_advance_pc 0x600, DW_LNS_copy
#     after     DW_LNS_advance_line 1, DW_LNS_advance_pc 0x5c0, DW_LNS_copy
#
# If one special opcode can express the new distance, it takes the place of the three.
#
# 1. `move_units` goes through the units, and corrects the offsets of the section's relocations.
# 2. `move_line_unit` copies the header of a unit, and corrects the unit's length.
# 3. `move_sequence` reads the opcodes of a sequence. `put_row` and `put_advance` write them again.
#
# nvlink writes a row as the special opcode when the address and the line both change and one
# opcode can say it; else as DW_LNS_advance_line (omitted when the line stays and the address
# advances), DW_LNS_advance_pc (omitted when the address stays) with a signed LEB128 operand, and
# DW_LNS_copy. Every other opcode keeps its place between the rows. ptxas may remove a row (for
# `min` of unsigned integers on sm_110) but keep the row's DW_LNS_advance_pc. This stays an opcode
# of its own, in front of the opcodes of the next row.

from libc.stdint cimport int8_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport Rela, load16, load32, load64
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_zeros
from base.vector cimport Vec, vec_extend, vec_push
from dwarf cimport (
    LNE_END_SEQUENCE, LNE_SET_ADDRESS, LNS_ADVANCE_LINE, LNS_ADVANCE_PC, LNS_CONST_ADD_PC, LNS_COPY,
    LNS_EXTENDED, LNS_FIXED_ADVANCE_PC, UNIT_HEADER_LENGTH, UNIT_LINE_BASE, UNIT_LINE_RANGE,
    UNIT_OPCODE_BASE, UNIT_STEP, UNIT_VERSION,
)
from exits.rows cimport (
    R_CUT_OFF, R_LINE_OP, R_LINE_RELOCATION, R_LINE_UNIT, R_MEMORY, Code, CodeNumber,
    InstructionMap, RewriteFault, View, make_writable, map_offset, put32, read_sleb, read_uleb,
    set_fault,
)
from tables.rows cimport FileSectionCounter, FileSymbolRef


cdef enum:
    UNIT_HEADER = UNIT_OPCODE_BASE + 1      # bytes of a unit up to and including opcode_base


# A line section while it is rebuilt.
ctypedef struct Lines:
    const uint8_t* data         # old contents of the section
    FileSectionCounter section  # index of the section in the file
    uint64_t start              # old offset of the unit
    uint64_t end                # old offset of the unit's end
    uint8_t step                # the unit's minimum_instruction_length, bytes
    int8_t base                 # the unit's line_base
    uint8_t line_range          # the unit's line_range
    uint8_t first               # the unit's opcode_base, the first special opcode
    const CodeNumber* codes     # by symbol of the file: row of `kernels`, or -1
    const Code* code            # kernel of the sequence; NULL if it has not changed
    const Code* kernels         # all changed kernels of the file
    const InstructionMap* places
    const uint32_t* row_at      # by old offset: 1 + row of the relocation there, or 0
    Rela* rows                  # relocations of the section, with old offsets
    uint64_t* new_offsets       # by relocation: its new offset, or -1 until it is known
    uint64_t address            # old address, an offset in .text, of the row being read
    uint64_t placed             # new address after the opcodes written so far
    int64_t line                # line of the row being read
    int64_t written_line        # line after the opcodes written so far
    bint is_advanced            # opcodes after the last row have advanced to `placed`
    Vec* out                    # uint8_t: new contents of the section
    Vec* units                  # UnitPlace: of the units so far


# The old and new offset of a unit in its section, for references to it.
ctypedef struct UnitPlace:
    uint64_t old
    uint64_t new


cdef inline bint put_bytes(Vec* out, const uint8_t* data, uint64_t size) noexcept nogil:
    """Append bytes; False without memory."""
    cdef uint8_t* place
    if size:
        place = <uint8_t*>vec_extend(out, size)
        if place == NULL:
            return False
        memcpy(place, data, size)
    return True


cdef inline bint put_byte(Vec* out, uint8_t value) noexcept nogil:
    """Append one byte; False without memory."""
    return put_bytes(out, &value, 1)


cdef inline bint put_sleb(Vec* out, int64_t value) noexcept nogil:
    """Append a signed LEB128 number; False without memory."""
    while not -64 <= value < 64:
        if not put_byte(out, <uint8_t>(value & 0x7f) | 0x80):
            return False
        value >>= 7
    return put_byte(out, <uint8_t>(value & 0x7f))


cdef inline bint put_advance(Lines* lines, bint alone) noexcept nogil:
    """Advance address and line to the current row, with opcodes that emit no row.

    `alone` says that no DW_LNS_copy, which emits the row, follows at once. False without memory.
    """
    cdef uint64_t place = map_offset(lines.code, lines.places, lines.address, False)
    cdef int64_t advance = <int64_t>(place - lines.placed) // lines.step    # instructions
    cdef int64_t line = lines.line - lines.written_line
    lines.placed = place
    lines.written_line = lines.line
    lines.is_advanced = alone
    if line or not (advance or alone):
        if not (put_byte(lines.out, LNS_ADVANCE_LINE) and put_sleb(lines.out, line)):
            return False
    return not advance or (put_byte(lines.out, LNS_ADVANCE_PC) and put_sleb(lines.out, advance))


cdef inline bint put_row(Lines* lines) noexcept nogil:
    """Write the current row, as a special opcode if one can express it; False without memory."""
    cdef uint64_t place = map_offset(lines.code, lines.places, lines.address, False)
    cdef int64_t advance = <int64_t>(place - lines.placed) // lines.step    # instructions
    cdef int64_t line = lines.line - lines.written_line
    if advance and line and lines.base <= line < lines.base + lines.line_range \
            and 0 <= advance <= 255 \
            and lines.first + line - lines.base + lines.line_range * advance <= 255:
        lines.placed = place
        lines.written_line = lines.line
        lines.is_advanced = False
        return put_byte(lines.out,
                        <uint8_t>(lines.first + line - lines.base + lines.line_range * advance))
    return put_advance(lines, False) and put_byte(lines.out, LNS_COPY)


cdef inline bint move_extended(Lines* lines, uint64_t op, uint64_t* offset, bint* ended,
                               RewriteFault* fault) noexcept nogil:
    """Read the extended opcode whose first byte is at `op`, and move `offset` after it.

    Writes only the opcode that ends a changed kernel's sequence; the caller copies all others. The
    opcode that sets an address sets `lines.code`. `ended` is set at the end of a sequence. False
    with a fault.
    """
    cdef uint64_t size, start, place
    cdef int64_t advance
    cdef uint32_t row
    cdef CodeNumber number
    cdef uint8_t kind
    if (not read_uleb(lines.data, lines.end, offset, &size) or not size
            or size > lines.end - offset[0]):
        return set_fault(fault, lines.section, op, R_CUT_OFF)
    start = offset[0]
    offset[0] += size
    kind = lines.data[start]
    if kind == LNE_END_SEQUENCE:
        ended[0] = True
        if lines.code == NULL:
            return True
        place = map_offset(lines.code, lines.places, lines.address, False)
        advance = <int64_t>(place - lines.placed) // lines.step
        if ((advance or not lines.is_advanced)
                and not (put_byte(lines.out, LNS_ADVANCE_PC) and put_sleb(lines.out, advance))):
            return set_fault(fault, lines.section, op, R_MEMORY)
        if not put_bytes(lines.out, lines.data + op, offset[0] - op):
            return set_fault(fault, lines.section, op, R_MEMORY)
        return True
    if kind == LNE_SET_ADDRESS:
        if size != 1 + sizeof(uint64_t) or lines.code != NULL:
            return set_fault(fault, lines.section, op, R_LINE_OP)
        lines.address = lines.placed = load64(lines.data + start + 1)
        row = lines.row_at[start + 1]
        if row:
            lines.new_offsets[row - 1] = lines.out.count + (start + 1 - op)
            number = lines.codes[<FileSymbolRef>lines.rows[row - 1].r_sym]
            if number >= 0:
                lines.code = lines.kernels + number
                # The opcodes before this one have been copied.
                lines.written_line = lines.line
    return True


cdef inline bint move_standard(Lines* lines, uint64_t op, uint64_t* offset,
                               RewriteFault* fault) noexcept nogil:
    """Read the standard opcode at `op`, and advance `*offset` past its operands.

    At the call `*offset` is just after the opcode. In the sequence of a changed kernel, opcodes of
    rows, addresses and lines are written anew, and all others are copied. False with a fault.
    """
    cdef const Code* code = lines.code
    cdef uint8_t kind = lines.data[op]
    cdef uint64_t value, _operand
    cdef int64_t advance
    if kind == LNS_COPY:
        if code != NULL and not put_row(lines):
            return set_fault(fault, lines.section, op, R_MEMORY)
    elif kind == LNS_ADVANCE_PC:
        if not read_uleb(lines.data, lines.end, offset, &value):
            return set_fault(fault, lines.section, op, R_CUT_OFF)
        lines.address += value * lines.step
        if (code != NULL and offset[0] < lines.end and lines.data[offset[0]] != LNS_COPY
                and lines.data[offset[0]] != LNS_EXTENDED and not put_advance(lines, True)):
            return set_fault(fault, lines.section, op, R_MEMORY)
    elif kind == LNS_ADVANCE_LINE:
        if not read_sleb(lines.data, lines.end, offset, &advance):
            return set_fault(fault, lines.section, op, R_CUT_OFF)
        lines.line += advance
    elif kind == LNS_CONST_ADD_PC or kind == LNS_FIXED_ADVANCE_PC:
        if code != NULL:
            return set_fault(fault, lines.section, op, R_LINE_OP)
        if kind == LNS_FIXED_ADVANCE_PC:
            offset[0] += 2
    else:
        for _operand in range(lines.data[lines.start + UNIT_HEADER + kind - 1]):
            if not read_uleb(lines.data, lines.end, offset, &value):
                return set_fault(fault, lines.section, op, R_CUT_OFF)
        if code != NULL and not put_bytes(lines.out, lines.data + op, offset[0] - op):
            return set_fault(fault, lines.section, op, R_MEMORY)
    return True


cdef inline bint move_sequence(Lines* lines, uint64_t* offset, RewriteFault* fault) noexcept nogil:
    """Copy the sequence at `offset`, and move `offset` after it; False with a fault.

    From the opcode on that sets the address of a changed kernel, the sequence is encoded anew.
    """
    cdef uint64_t start = offset[0], op, value
    cdef uint64_t copied = start    # bytes up to here are in `out`
    cdef bint ended = False
    cdef const Code* code
    lines.code = NULL
    lines.address = lines.placed = 0
    lines.line = lines.written_line = 1
    lines.is_advanced = False
    while offset[0] < lines.end and not ended:
        op = offset[0]
        offset[0] += 1
        code = lines.code
        if lines.data[op] >= lines.first:
            value = lines.data[op] - lines.first
            lines.address += value // lines.line_range * lines.step
            lines.line += lines.base + <int64_t>(value % lines.line_range)
            if code != NULL and not put_row(lines):
                return set_fault(fault, lines.section, op, R_MEMORY)
        elif lines.data[op] == LNS_EXTENDED:
            if code == NULL:
                # All bytes before the opcode must be in `out`: `move_extended` takes the end of
                # `out` as the new offset of the opcode.
                if not put_bytes(lines.out, lines.data + copied, op - copied):
                    return set_fault(fault, lines.section, op, R_MEMORY)
                copied = op
            if not move_extended(lines, op, offset, &ended, fault):
                return False
            if code == NULL or not ended:
                if not put_bytes(lines.out, lines.data + op, offset[0] - op):
                    return set_fault(fault, lines.section, op, R_MEMORY)
            copied = offset[0]
        elif not move_standard(lines, op, offset, fault):
            return False
    if offset[0] > lines.end:
        return set_fault(fault, lines.section, start, R_CUT_OFF)
    if lines.code == NULL and not put_bytes(lines.out, lines.data + copied, offset[0] - copied):
        return set_fault(fault, lines.section, start, R_MEMORY)
    return True


cdef inline bint move_line_unit(Lines* lines, uint64_t size, uint64_t* following,
                                RewriteFault* fault) noexcept nogil:
    """Append the unit at `lines.start` to `lines.out`, rebuilt; False with a fault.

    Sets `following` to the unit's old end. `size` is the number of bytes of the old section.
    """
    cdef uint64_t start = lines.start, length, header, program, offset
    cdef uint64_t base = lines.out.count    # new offset of the unit
    cdef UnitPlace* place
    if size - start < UNIT_HEADER:
        return set_fault(fault, lines.section, start, R_CUT_OFF)
    length = load32(lines.data + start)
    header = load32(lines.data + start + UNIT_HEADER_LENGTH)
    if length < UNIT_HEADER - 4 or length > size - start - 4 or header > length - 6:
        return set_fault(fault, lines.section, start, R_LINE_UNIT)
    lines.end = start + 4 + length
    program = start + UNIT_STEP + header        # header_length counts from there
    lines.step = lines.data[start + UNIT_STEP]
    lines.base = <int8_t>lines.data[start + UNIT_LINE_BASE]
    lines.line_range = lines.data[start + UNIT_LINE_RANGE]
    lines.first = lines.data[start + UNIT_OPCODE_BASE]
    if (not 2 <= load16(lines.data + start + UNIT_VERSION) <= 3 or not lines.step
            or not lines.line_range or lines.first <= LNS_FIXED_ADVANCE_PC
            or program < start + UNIT_HEADER + lines.first - 1):
        return set_fault(fault, lines.section, start, R_LINE_UNIT)
    place = <UnitPlace*>vec_push(lines.units)
    if place == NULL or not put_bytes(lines.out, lines.data + start, program - start):
        return set_fault(fault, lines.section, start, R_MEMORY)
    place.old = start
    place.new = base
    for offset in range(start, program):
        if lines.row_at[offset]:
            lines.new_offsets[lines.row_at[offset] - 1] = offset - start + base
    offset = program
    while offset < lines.end:
        if not move_sequence(lines, &offset, fault):
            return False
    put32(lines.out.data + base, <uint32_t>(lines.out.count - base - 4))
    following[0] = lines.end
    return True


cdef inline bint move_units(Lines* lines, View* view, View* rela, uint64_t symbol_count,
                            FileSectionCounter rela_index, RewriteFault* fault) noexcept nogil:
    """Rebuild a line section and the offsets of its relocations; False with a fault.

    `view` is the line section, `rela` that of its relocations, and `rela_index` the index of `rela`
    in the file. A symbol's number that is not less than `symbol_count` is a fault.
    """
    cdef uint64_t count = rela.size // sizeof(Rela), i
    cdef Scratch scratch
    cdef uint32_t* row_at
    cdef uint64_t* new_offsets
    cdef Rela* rows = <Rela*>make_writable(rela)
    cdef bint done
    scratch_init(&scratch)
    row_at = <uint32_t*>scratch_zeros(&scratch, view.size, sizeof(uint32_t))
    new_offsets = <uint64_t*>scratch_zeros(&scratch, count, sizeof(uint64_t))
    done = not scratch.failed and rows != NULL
    fault.reason = R_MEMORY
    lines.data = view.data
    lines.start = 0
    lines.row_at = row_at
    lines.new_offsets = new_offsets
    lines.rows = rows
    for i in range(count if done else 0):
        if (rows[i].r_offset >= view.size or row_at[rows[i].r_offset]
                or rows[i].r_sym >= symbol_count):
            done = set_fault(fault, rela_index, i * sizeof(Rela), R_LINE_RELOCATION)
            break
        row_at[rows[i].r_offset] = <uint32_t>(i + 1)
        new_offsets[i] = <uint64_t>-1       # none yet
    while done and lines.start < view.size:
        done = move_line_unit(lines, view.size, &lines.start, fault)
    if done:
        for i in range(count):
            if new_offsets[i] == <uint64_t>-1:
                done = set_fault(fault, rela_index, i * sizeof(Rela), R_LINE_RELOCATION)
                break
            rows[i].r_offset = new_offsets[i]
    scratch_free(&scratch)
    return done
