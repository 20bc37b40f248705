"""Rebuilding the plain debug sections of sm_100 and later, which nvlink does not concatenate.

A line section is a list of units; each has a header and, per function, one sequence that opens with
the extended opcode `00 09 02` and the 8 relocated bytes of the function's address. The output keeps
units and headers. The sequences of a unit are sorted by the order of the output's symbols, and
those of functions that are not in the output are omitted. So sequences are moved whole, and no line
program is interpreted. `.debug_frame` loses the FDEs of such functions, and CIEs that no FDE needs.
`.nv_debug_info_reg_sass` keeps its size. docs/format-notes/family-c-debug.md has the evidence.

The tables that functions take and return are packed little-endian rows (structs in debug/rows.pxd;
types of the stub in brackets):

* PieceRow (Pieces): one input's contents of the section, and how many of the next rows of the table
  with relocations or patches are its own;
* RelocRow (PieceRelocations): a relocation of a piece;
* DebugPatchRow (HeaderPatches): a resolved header field of a mercury piece;
* MovedRow (Moved): a relocation that stays, in the order of the output's relocation section;
* UnitRow (LineUnits): the old and the new place of a line unit, ascending. `.debug_info` refers to
  units by offset.

Cost: linear in the bytes, plus sorting the relocations that do not come in order.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t

from base.memory cimport check_memory
from base.nameindex cimport NameIndex, scratch_index
from base.scratch cimport Scratch, scratch_free, scratch_init, scratch_reserve, scratch_vector
from base.vector cimport Vec, vec_append
from debug.frame cimport move_all_frames
from debug.line cimport move_lines
from debug.registers cimport clear_registers, index_names
from debug.rows cimport (
    R_ADDRESS, R_CUT_OFF, R_FORMAT, R_HEADER, R_LENGTH, R_MEMORY, R_NO_CIE, R_PATCH,
    R_REGISTER_COUNT, R_UNITS, R_VERSION, DebugPatchRow, FunctionRef, LineUnit, MovedRow, PieceRow,
    RebuildFault, Rebuilt, RelocRow, UnitRow,
)
from pylink._native.tables cimport Blob, detach_rows


class MalformedDebugSection(ValueError):
    """A section breaks its format, at an offset in a piece or in the piece's mercury twin."""

    def __init__(self, piece, offset, *, mercury, reason):
        super().__init__(f"{reason} (offset {offset:#x})")
        self.piece = piece
        self.offset = offset
        self.mercury = mercury


cdef uint64_t check_pieces(bytes arena, Blob pieces, Blob rows, size_t row_size) except? 1:
    """Return the size of all pieces; ValueError unless the tables fit each other and the arena.

    `rows` are the relocations or patches that `pieces` count (PieceRow), each of `row_size` bytes.
    """
    cdef const PieceRow* piece = <const PieceRow*>pieces.rows
    cdef size_t count = pieces.count // sizeof(PieceRow), i
    cdef uint64_t limit = PyBytes_GET_SIZE(arena), total = 0
    cdef uint64_t remaining = rows.count // row_size
    if pieces.count % sizeof(PieceRow) or rows.count % row_size:
        raise ValueError("a table is not made of whole rows")
    for i in range(count):
        if piece[i].offset > limit or piece[i].size > limit - piece[i].offset:
            raise ValueError(f"piece {i} runs past the arena")
        if piece[i].count > remaining:
            raise ValueError(f"piece {i} counts more rows than there are")
        remaining -= piece[i].count
        # This limit also keeps the sum of sizes from overflowing.
        if piece[i].size > <uint64_t>(<Py_ssize_t>-1) // 4 - total:
            raise ValueError("pieces are larger than memory")
        total += piece[i].size
    if remaining:
        raise ValueError("rows belong to no piece")
    return total


cdef str text_of(int reason):
    """Return the text that describes a DebugFault, from R_CUT_OFF on, to a user."""
    return {
        R_CUT_OFF: "record is cut off",
        R_FORMAT: "record has the other DWARF length format",
        R_LENGTH: "record runs past the section",
        R_VERSION: "line unit has an unknown DWARF version",
        R_HEADER: "line header runs past its unit",
        R_ADDRESS: "relocation is at no set-address opcode of its own",
        R_UNITS: "mercury line section has other units",
        R_PATCH: "relocation is in no line header",
        R_NO_CIE: "FDE has no CIE before it",
        R_REGISTER_COUNT: "register count runs past the section",
    }[reason]


cdef object raise_fault(const RebuildFault* fault):
    """Raise MemoryError or MalformedDebugSection for a fault."""
    check_memory(fault.reason != R_MEMORY)
    cdef bint mercury = fault.mercury
    raise MalformedDebugSection(fault.piece, fault.offset, mercury=mercury,
                                reason=text_of(fault.reason))


cdef uint64_t start_rebuild(Rebuilt* section, bytes arena, Blob pieces, Blob relocs) except? 1:
    """Check the tables and enter them into `section`; return the size of all pieces in bytes."""
    cdef uint64_t total = check_pieces(arena, pieces, relocs, sizeof(RelocRow))
    section.arena = <const uint8_t*>PyBytes_AS_STRING(arena)
    section.pieces = <const PieceRow*>pieces.rows
    section.count = pieces.count // sizeof(PieceRow)
    section.relocs = <const RelocRow*>relocs.rows
    section.reloc_count = relocs.count // sizeof(RelocRow)
    section.fault.reason = R_MEMORY
    section.fault.mercury = False
    return total


cdef void allocate_rebuilt(Rebuilt* section, Scratch* scratch, uint64_t total) noexcept:
    """Set up the vectors of `section`, with room for `total` bytes of new contents."""
    scratch_init(scratch)
    scratch_vector(scratch, &section.out, 1)
    scratch_vector(scratch, &section.moved, sizeof(MovedRow))
    scratch_vector(scratch, &section.refs, sizeof(FunctionRef))
    scratch_reserve(scratch, &section.out, total)


def rebuild_line(bytes arena not None, Blob pieces not None, Blob relocs not None,
                 Blob headers not None, Blob patches not None, *, bint ended=False):
    """Rebuild `.debug_line` or `.nv_debug_line_sass`: (contents, kept relocations, units)."""
    # `headers` are the mercury forms of the `pieces`, `patches` the fields that the link resolved
    # in them. With `ended`, a unit whose new program is empty gets the opcode that ends a sequence.
    cdef Rebuilt section
    cdef const PieceRow* twin_rows = NULL
    cdef const DebugPatchRow* patch_rows = <const DebugPatchRow*>patches.rows
    cdef Vec unit_rows, units, twins
    cdef Scratch scratch
    cdef uint64_t total
    cdef bint done
    check_pieces(arena, headers, patches, sizeof(DebugPatchRow))
    if headers.count:
        if headers.count != pieces.count:
            raise ValueError("there is not one mercury piece for each piece")
        twin_rows = <const PieceRow*>headers.rows
    total = start_rebuild(&section, arena, pieces, relocs)
    section.ended = ended
    allocate_rebuilt(&section, &scratch, total)
    try:
        scratch_vector(&scratch, &unit_rows, sizeof(UnitRow))
        scratch_vector(&scratch, &units, sizeof(LineUnit))
        scratch_vector(&scratch, &twins, sizeof(LineUnit))
        with nogil:
            done = (not scratch.failed
                    and move_lines(&section, twin_rows, patch_rows, &units, &twins, &unit_rows))
        if not done:
            raise_fault(&section.fault)
        return (Blob(detach_rows(&section.out)), Blob(detach_rows(&section.moved)),
                Blob(detach_rows(&unit_rows)))
    finally:
        scratch_free(&scratch)


def rebuild_frame(bytes arena not None, Blob pieces not None, Blob relocs not None):
    """Rebuild `.debug_frame` (64-bit DWARF): (contents, kept relocations)."""
    cdef Rebuilt section
    cdef Vec places             # uint64_t, by RelocRow: offset of its field in the new section
    cdef Scratch scratch
    cdef uint64_t total = start_rebuild(&section, arena, pieces, relocs)
    cdef bint done
    allocate_rebuilt(&section, &scratch, total)
    try:
        scratch_vector(&scratch, &places, sizeof(uint64_t))
        with nogil:
            done = not scratch.failed and move_all_frames(&section, &places)
        if not done:
            raise_fault(&section.fault)
        return Blob(detach_rows(&section.out)), Blob(detach_rows(&section.moved))
    finally:
        scratch_free(&scratch)


def rebuild_reg_sass(bytes arena not None, Blob pieces not None, bytes names not None):
    """Concatenate `.nv_debug_info_reg_sass`; ranges of functions that `names` lacks become 0."""
    # `names` are those of the output's functions, each with a NUL. Only the first record of each
    # keeps its ranges.
    cdef Rebuilt section
    cdef uint64_t names_size = PyBytes_GET_SIZE(names)
    cdef const uint8_t* text = <const uint8_t*>PyBytes_AS_STRING(names)
    cdef const PieceRow* piece
    cdef NameIndex index
    cdef Scratch scratch
    cdef uint64_t total
    cdef size_t i
    cdef bint done
    if names_size and text[names_size - 1] != 0:
        raise ValueError("the last name does not end with NUL")
    total = start_rebuild(&section, arena, pieces, Blob())
    allocate_rebuilt(&section, &scratch, total)
    try:
        scratch_index(&scratch, &index, 0)
        with nogil:
            done = not scratch.failed and index_names(text, names_size, &index, &section.fault)
            for i in range(section.count):
                if not done:
                    break
                section.fault.piece = i
                piece = &section.pieces[i]
                vec_append(&section.out, section.arena + piece.offset, piece.size)
                done = clear_registers(section.out.data + section.out.count - piece.size,
                                       piece.size, &index, &section.fault)
        if not done:
            raise_fault(&section.fault)
        return Blob(detach_rows(&section.out))
    finally:
        scratch_free(&scratch)
