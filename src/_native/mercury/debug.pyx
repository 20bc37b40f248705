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
  index of a live function, and an DebugOutcome;
* patch (r_offset u64, value u64): a resolved header field, offset within the mercury piece.

Out:

* placed (base u64, size u64), one per piece: where it lies in the new section;
* moved (r_offset u64, row u64), one per relocation that is kept, in the order of the output
  relocation section: offset in the new section and row of the input table;
* unit (piece u64, start u64, base u64), one per line unit, ascending: where a unit that began at
  `start` of its piece begins in the new section. `.debug_info` refers to units by offset.

Cost: linear in the bytes, plus sorting the relocations that do not come in order.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from debugframe cimport move_all_frames
from debugline cimport move_lines
from debugregs cimport clear_registers, read_names
from debugrows cimport *
from names cimport NameIndex, index_free, index_init
from vec cimport *

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
    cdef bint mercury = fault.mercury
    raise MalformedDebugSection(fault.piece, fault.offset, mercury, REASONS[fault.reason])


def rebuild_line(bytes arena not None, bytes pieces not None, bytes relocs not None,
                 bytes headers not None=b"", bytes patches not None=b""):
    """Rebuild `.debug_line` or `.nv_debug_line_sass`; see the stub."""
    cdef uint64_t total = check_pieces(arena, pieces, relocs, sizeof(RelocRow)), used = 0
    cdef size_t count = PyBytes_GET_SIZE(pieces) // sizeof(PieceRow)
    cdef const PieceRow* twin_rows = NULL
    check_pieces(arena, headers, patches, sizeof(DebugPatchRow))
    if PyBytes_GET_SIZE(headers):
        if PyBytes_GET_SIZE(headers) != PyBytes_GET_SIZE(pieces):
            raise ValueError("there is not one mercury piece for each piece")
        twin_rows = <const PieceRow*>PyBytes_AS_STRING(headers)
    cdef bytes placed = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(count * sizeof(PlacedRow)))
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const PieceRow* piece_rows = <const PieceRow*>PyBytes_AS_STRING(pieces)
    cdef const RelocRow* reloc_rows = <const RelocRow*>PyBytes_AS_STRING(relocs)
    cdef const DebugPatchRow* patch_rows = <const DebugPatchRow*>PyBytes_AS_STRING(patches)
    cdef PlacedRow* placed_rows = <PlacedRow*>PyBytes_AS_STRING(placed)
    cdef Vec out, moved, unit_rows, units, twins, cuts
    cdef Fault fault
    cdef bint done
    fault.reason = R_MEMORY
    fault.mercury = False
    vec_init(&out, 1)
    vec_init(&moved, sizeof(MovedRow))
    vec_init(&unit_rows, sizeof(UnitRow))
    vec_init(&units, sizeof(Unit))
    vec_init(&twins, sizeof(Unit))
    vec_init(&cuts, sizeof(Cut))
    with nogil:
        done = vec_reserve(&out, total) and move_lines(
            base, piece_rows, twin_rows, count, reloc_rows, patch_rows, out.data, &used,
            placed_rows, &moved, &units, &twins, &cuts, &unit_rows, &fault)
        vec_free(&units)
        vec_free(&twins)
        vec_free(&cuts)
    try:
        if not done:
            raise_fault(&fault)
        out.count = used
        return vec_take(&out), placed, vec_take(&moved), vec_take(&unit_rows)
    finally:
        vec_free(&out)
        vec_free(&unit_rows)
        vec_free(&moved)


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


def rebuild_reg_sass(bytes arena not None, bytes pieces not None, bytes names not None):
    """Rebuild `.nv_debug_info_reg_sass`; see the stub."""
    cdef uint64_t total = check_pieces(arena, pieces, b"", sizeof(RelocRow)), used = 0
    cdef size_t count = PyBytes_GET_SIZE(pieces) // sizeof(PieceRow), i
    cdef uint64_t names_size = PyBytes_GET_SIZE(names)
    cdef bytes contents = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>total)
    cdef bytes placed = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(count * sizeof(PlacedRow)))
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(arena)
    cdef const uint8_t* text = <const uint8_t*>PyBytes_AS_STRING(names)
    cdef const PieceRow* piece = <const PieceRow*>PyBytes_AS_STRING(pieces)
    cdef PlacedRow* place = <PlacedRow*>PyBytes_AS_STRING(placed)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(contents)
    cdef NameIndex index
    cdef Fault fault
    cdef bint done
    if names_size and text[names_size - 1] != 0:
        raise ValueError("the last name has no end")
    fault.reason = R_MEMORY
    fault.mercury = False
    with nogil:
        done = index_init(&index, 0) and read_names(text, names_size, &index, &fault)
        for i in range(count):
            if not done:
                break
            fault.piece = i
            memcpy(out + used, base + piece[i].offset, piece[i].size)
            done = clear_registers(out + used, piece[i].size, &index, &fault)
            place[i].base = used
            place[i].size = piece[i].size
            used += piece[i].size
        index_free(&index)
    if not done:
        raise_fault(&fault)
    return contents, placed
