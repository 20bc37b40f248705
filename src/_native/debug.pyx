"""Rebuilding the plain debug sections of sm_100 and later, which nvlink does not concatenate.

A line section is a row of units; each has a header and, per function, one sequence that opens
with the extended opcode `00 09 02` and the 8 relocated bytes of the function's address. The
output keeps units and headers, sorts the sequences of a unit by output symbol index and leaves
out those of functions that are not in the output, so sequences are moved whole and no line
program is interpreted. `.debug_frame` loses FDEs, each with the CIE before it, and
`.nv_debug_info_reg_sass` keeps its size. docs/format-notes/family-c-debug.md has the evidence.

Every table is packed little-endian rows. In:

* piece (offset u64, size u64, count u64): one input's section contents, where they lie in the
  arena, and how many of the next rows of the relocation table are its own;
* relocation (r_offset u64, target u32, outcome u32): r_offset within the piece, output symbol
  index of a live function, and an Outcome;
* patch (r_offset u64, value u64): a resolved header field, offset within the mercury piece.

Out:

* placed (base u64, size u64), one per piece: where it lies in the new section;
* moved (r_offset u64, row u64), one per relocation that is kept, in the order of the output
  relocation section: offset in the new section and row of the input table.

Cost: linear in the bytes, plus sorting the relocations that do not come in order.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from vec cimport *


cdef enum Outcome:
    LIVE = 0            # the function copy that is in the output
    DEAD = 1            # a function that is not
    OVERRIDDEN = 2      # a copy that lost against an earlier one
    OTHER = 3           # no function: not a matter of these kernels

cdef enum:
    PREFIX = 3          # bytes of a set-address opcode before its operand
    SEQUENCE = 11       # shortest sequence: the opcode alone
    LINE_HEADER = 10    # unit_length u32, version u16, header_length u32
    FDE_POINTER = 12    # after the 64-bit escape and length
    FDE_ADDRESS = 20
    REGISTER = 17       # u32, shortest name, u32 code, u32 start, u32 end
    RANGE = 8           # start and end

cdef enum Reason:
    R_NONE = 0
    R_MEMORY = 1
    R_CUT_OFF = 2
    R_FORMAT = 3
    R_LENGTH = 4
    R_VERSION = 5
    R_HEADER = 6
    R_ADDRESS = 7
    R_UNITS = 8
    R_PATCH = 9
    R_NO_CIE = 10
    R_COUNT = 11

cdef tuple REASONS = (
    "", "",
    "record is cut off",
    "record has the other DWARF length format",
    "record runs past the section",
    "line unit has an unknown DWARF version",
    "line header runs past its unit",
    "relocation is at no set-address opcode of its own",
    "mercury line section has other units",
    "relocation is in no line header",
    "FDE has no CIE before it",
    "register count runs past the section",
)


class MalformedDebugSection(ValueError):
    """A section breaks its format; see the stub."""

    def __init__(self, piece, offset, mercury, reason):
        super().__init__(f"{reason} (offset {offset:#x})")
        self.piece = piece
        self.offset = offset
        self.mercury = mercury


cdef packed struct PieceRow:
    uint64_t offset
    uint64_t size
    uint64_t count

cdef packed struct RelocRow:
    uint64_t r_offset
    uint32_t target
    uint32_t outcome

cdef packed struct PatchRow:
    uint64_t r_offset
    uint64_t value

cdef packed struct PlacedRow:
    uint64_t base
    uint64_t size

cdef packed struct MovedRow:
    uint64_t r_offset
    uint64_t row

# A relocation under way: where its sequence (line) or address field (frame) is in the piece.
ctypedef struct Cut:
    uint64_t offset
    uint64_t stop
    uint64_t row
    uint32_t target
    uint32_t outcome

ctypedef struct Unit:
    uint64_t start
    uint64_t program
    uint64_t end
    uint64_t base           # in the output

ctypedef struct Fault:
    uint64_t piece
    uint64_t offset
    Reason reason
    bint mercury            # in the twin that `headers` names


cdef inline uint16_t load16(const uint8_t* p) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, p, 2)
    return value


cdef inline uint32_t load32(const uint8_t* p) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, p, 4)
    return value


cdef inline uint64_t load64(const uint8_t* p) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, p, 8)
    return value


cdef inline bint fail(Fault* fault, uint64_t offset, Reason reason) noexcept nogil:
    fault.offset = offset
    fault.reason = reason
    return False


cdef int by_offset(const void* a, const void* b) noexcept nogil:
    cdef uint64_t x = (<const Cut*>a).offset, y = (<const Cut*>b).offset
    return (x > y) - (x < y)


cdef int by_target(const void* a, const void* b) noexcept nogil:
    cdef uint32_t x = (<const Cut*>a).target, y = (<const Cut*>b).target
    return (x > y) - (x < y) if x != y else by_offset(a, b)


ctypedef int (*Compare)(const void*, const void*) noexcept nogil


cdef void sort_cuts(Cut* cuts, size_t count, Compare compare) noexcept nogil:
    """Sort unless in order, which is how ptxas and earlier links write them."""
    cdef size_t i
    for i in range(1, count):
        if compare(&cuts[i - 1], &cuts[i]) > 0:
            qsort(cuts, count, sizeof(Cut), compare)
            return


cdef uint64_t check_pieces(bytes arena, bytes pieces, bytes rows, size_t row) except? 1:
    """Check that the tables fit each other and the arena; return the bytes of all pieces."""
    cdef const PieceRow* piece = <const PieceRow*>PyBytes_AS_STRING(pieces)
    cdef size_t count = PyBytes_GET_SIZE(pieces) // sizeof(PieceRow), i
    cdef uint64_t limit = PyBytes_GET_SIZE(arena), left = PyBytes_GET_SIZE(rows) // row, total = 0
    if PyBytes_GET_SIZE(pieces) % sizeof(PieceRow) or PyBytes_GET_SIZE(rows) % row:
        raise ValueError("a table is not made of whole rows")
    for i in range(count):
        if piece[i].offset > limit or piece[i].size > limit - piece[i].offset:
            raise ValueError(f"piece {i} runs past the arena")
        if piece[i].count > left:
            raise ValueError(f"piece {i} counts more rows than there are")
        left -= piece[i].count
        if piece[i].size > <uint64_t>(<Py_ssize_t>-1) // 4 - total:
            raise ValueError("pieces are larger than memory")
        total += piece[i].size
    if left:
        raise ValueError("rows belong to no piece")
    return total


cdef object raise_fault(const Fault* fault):
    if fault.reason == R_MEMORY:
        raise MemoryError
    raise MalformedDebugSection(fault.piece, fault.offset, bool(fault.mercury), REASONS[fault.reason])


# ---------------------------------------------------------------- line sections

cdef bint read_units(const uint8_t* data, uint64_t size, Vec* units, Fault* fault) noexcept nogil:
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


cdef bint read_cuts(const RelocRow* rows, uint64_t first, uint64_t count, uint64_t back, Vec* cuts,
                    Fault* fault) noexcept nogil:
    """Collect the function relocations of one piece, by offset, each `back` bytes before it."""
    cdef uint64_t i
    cdef Cut* cut
    cuts.count = 0
    for i in range(first, first + count):
        if rows[i].outcome == OTHER:
            continue
        if rows[i].r_offset < back:
            return fail(fault, rows[i].r_offset, R_ADDRESS)
        cut = <Cut*>vec_push(cuts)
        if cut == NULL:
            return fail(fault, 0, R_MEMORY)
        cut.offset = cut.stop = rows[i].r_offset - back
        cut.row = i
        cut.target = rows[i].target
        cut.outcome = rows[i].outcome
    sort_cuts(<Cut*>cuts.data, cuts.count, by_offset)
    return True


cdef bint move_unit(const uint8_t* data, Unit* unit, Cut* cuts, size_t count, uint8_t* out,
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


cdef bint patch_headers(const uint8_t* data, uint64_t size, const PatchRow* rows, uint64_t count,
                        const Vec* units, Vec* twins, Vec* cuts, uint8_t* out,
                        Fault* fault) noexcept nogil:
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


cdef bint move_lines(const uint8_t* arena, const PieceRow* pieces, const PieceRow* headers,
                     size_t count, const RelocRow* relocs, const PatchRow* patches, uint8_t* out,
                     uint64_t* used, PlacedRow* placed, Vec* moved, Vec* units, Vec* twins,
                     Vec* cuts, Fault* fault) noexcept nogil:
    cdef uint64_t reloc = 0, patch = 0
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


def rebuild_line(bytes arena not None, bytes pieces not None, bytes relocs not None,
                 bytes headers not None=b"", bytes patches not None=b""):
    """Rebuild `.debug_line` or `.nv_debug_line_sass`; see the stub."""
    cdef uint64_t total = check_pieces(arena, pieces, relocs, sizeof(RelocRow)), used = 0
    cdef size_t count = PyBytes_GET_SIZE(pieces) // sizeof(PieceRow)
    cdef const PieceRow* twin_rows = NULL
    check_pieces(arena, headers, patches, sizeof(PatchRow))
    if PyBytes_GET_SIZE(headers):
        if PyBytes_GET_SIZE(headers) != PyBytes_GET_SIZE(pieces):
            raise ValueError("there is not one mercury piece for each piece")
        twin_rows = <const PieceRow*>PyBytes_AS_STRING(headers)
    cdef bytes placed = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(count * sizeof(PlacedRow)))
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const PieceRow* piece_rows = <const PieceRow*>PyBytes_AS_STRING(pieces)
    cdef const RelocRow* reloc_rows = <const RelocRow*>PyBytes_AS_STRING(relocs)
    cdef const PatchRow* patch_rows = <const PatchRow*>PyBytes_AS_STRING(patches)
    cdef PlacedRow* placed_rows = <PlacedRow*>PyBytes_AS_STRING(placed)
    cdef Vec out, moved, units, twins, cuts
    cdef Fault fault
    cdef bint done
    fault.reason = R_MEMORY
    fault.mercury = False
    vec_init(&out, 1)
    vec_init(&moved, sizeof(MovedRow))
    vec_init(&units, sizeof(Unit))
    vec_init(&twins, sizeof(Unit))
    vec_init(&cuts, sizeof(Cut))
    with nogil:
        done = vec_reserve(&out, total) and move_lines(
            base, piece_rows, twin_rows, count, reloc_rows, patch_rows, out.data, &used,
            placed_rows, &moved, &units, &twins, &cuts, &fault)
        vec_free(&units)
        vec_free(&twins)
        vec_free(&cuts)
    try:
        if not done:
            raise_fault(&fault)
        out.count = used
        return vec_take(&out), placed, vec_take(&moved)
    finally:
        vec_free(&out)
        vec_free(&moved)


# ---------------------------------------------------------------- call frames

cdef bint move_frames(const uint8_t* data, uint64_t size, const Cut* cuts, size_t count,
                      uint8_t* out, uint64_t* used, uint64_t* places,
                      Fault* fault) noexcept nogil:
    """Append the records of one piece; `places` receives each row's new offset."""
    cdef uint64_t start = 0, length, cie = 0, cie_size = 0, cie_base = 0
    cdef bint fresh = False
    cdef size_t at = 0
    while start < size:
        if size - start < FDE_ADDRESS:
            return fail(fault, start, R_CUT_OFF)
        if load32(data + start) != 0xffffffffU:
            return fail(fault, start, R_FORMAT)
        length = load64(data + start + 4)
        if length > size - start - FDE_POINTER or length < 8:
            return fail(fault, start, R_LENGTH)
        length += FDE_POINTER
        if load64(data + start + FDE_POINTER) == <uint64_t>-1:
            cie = start
            cie_size = length
            fresh = True
            start += length
            continue
        if cie_size == 0:
            return fail(fault, start, R_NO_CIE)
        if length < FDE_ADDRESS + 16:
            return fail(fault, start, R_LENGTH)
        while at < count and cuts[at].offset < start + FDE_ADDRESS:
            at += 1
        if (at == count or cuts[at].offset != start + FDE_ADDRESS
                or cuts[at].outcome == LIVE):
            if fresh:
                memcpy(out + used[0], data + cie, cie_size)
                cie_base = used[0]
                used[0] += cie_size
                fresh = False
            memcpy(out + used[0], data + start, length)
            memcpy(out + used[0] + FDE_POINTER, &cie_base, 8)
            if at < count and cuts[at].offset == start + FDE_ADDRESS:
                places[cuts[at].row] = used[0] + FDE_ADDRESS
            used[0] += length
        start += length
    return True


cdef bint move_all_frames(const uint8_t* arena, const PieceRow* pieces, size_t count,
                          const RelocRow* relocs, size_t reloc_count, uint8_t* out,
                          uint64_t* used, PlacedRow* placed, Vec* moved, Vec* places, Vec* cuts,
                          Fault* fault) noexcept nogil:
    cdef uint64_t reloc = 0, row
    cdef uint64_t* place
    cdef MovedRow* kept
    cdef size_t i
    if not vec_reserve(places, reloc_count):
        return fail(fault, 0, R_MEMORY)
    place = <uint64_t*>places.data
    memset(place, 0, reloc_count * sizeof(uint64_t))    # no address field is at offset 0
    for i in range(count):
        fault.piece = i
        placed[i].base = used[0]
        if not read_cuts(relocs, reloc, pieces[i].count, 0, cuts, fault):
            return False
        if not move_frames(arena + pieces[i].offset, pieces[i].size, <const Cut*>cuts.data,
                           cuts.count, out, used, place, fault):
            return False
        placed[i].size = used[0] - placed[i].base
        reloc += pieces[i].count
    row = reloc_count
    while row > 0:                                      # each kept relocation is put in front
        row -= 1
        if place[row] == 0:
            continue
        kept = <MovedRow*>vec_push(moved)
        if kept == NULL:
            return fail(fault, 0, R_MEMORY)
        kept.r_offset = place[row]
        kept.row = row
    return True


def rebuild_frame(bytes arena not None, bytes pieces not None, bytes relocs not None):
    """Rebuild `.debug_frame`; see the stub."""
    cdef uint64_t total = check_pieces(arena, pieces, relocs, sizeof(RelocRow)), used = 0
    cdef size_t count = PyBytes_GET_SIZE(pieces) // sizeof(PieceRow)
    cdef size_t reloc_count = PyBytes_GET_SIZE(relocs) // sizeof(RelocRow)
    cdef bytes placed = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(count * sizeof(PlacedRow)))
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const PieceRow* piece_rows = <const PieceRow*>PyBytes_AS_STRING(pieces)
    cdef const RelocRow* reloc_rows = <const RelocRow*>PyBytes_AS_STRING(relocs)
    cdef PlacedRow* placed_rows = <PlacedRow*>PyBytes_AS_STRING(placed)
    cdef Vec out, moved, places, cuts
    cdef Fault fault
    cdef bint done
    fault.reason = R_MEMORY
    fault.mercury = False
    vec_init(&out, 1)
    vec_init(&moved, sizeof(MovedRow))
    vec_init(&places, sizeof(uint64_t))
    vec_init(&cuts, sizeof(Cut))
    with nogil:
        done = vec_reserve(&out, total) and move_all_frames(
            base, piece_rows, count, reloc_rows, reloc_count, out.data, &used, placed_rows,
            &moved, &places, &cuts, &fault)
        vec_free(&places)
        vec_free(&cuts)
    try:
        if not done:
            raise_fault(&fault)
        out.count = used
        return vec_take(&out), placed, vec_take(&moved)
    finally:
        vec_free(&out)
        vec_free(&moved)
