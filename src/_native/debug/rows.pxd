# Rows, faults and sorting that the functions of debug.pyx share. Its head describes the tables.
#
# In debug/, a `bint` function whose name is a verb returns False if it has set a RebuildFault. The
# reason of the fault is R_MEMORY if memory is exhausted.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort

from base.vector cimport Vec, vec_push
from dwarf cimport UNIT_STEP


# The outcome of a relocation's symbol. Numbers below OTHER are those of RebuildOutcome
# (tables/rows.pxd).
cdef enum DebugOutcome:
    LIVE = 0            # the definition of a function that is in the output
    DEAD = 1            # a function that is not in the output
    OVERRIDDEN = 2      # a definition that lost, or was replaced and has relocations
    OTHER = 3           # not a function: the functions of debug.pyx ignore it

cdef enum:
    PREFIX = 3              # line: bytes of a set-address opcode, `00 09 02`, before its operand
    LEAST_SEQUENCE = 11     # line: bytes of the shortest sequence, a set-address opcode alone
    LINE_HEADER = UNIT_STEP     # line: bytes of a unit that its header_length does not count
    # Registers: an entry is u32, name of the register, NUL, u32 code, u32 start, u32 end.
    LEAST_REGISTER = 17     # bytes of the shortest entry
    RANGE = 8               # bytes of start and end

# Reasons of a RebuildFault. `text_of` in debug.pyx has what those from R_CUT_OFF on say to a user.
cdef enum DebugFault:
    R_NONE
    R_MEMORY
    R_CUT_OFF
    R_FORMAT
    R_LENGTH
    R_VERSION
    R_HEADER
    R_ADDRESS
    R_UNITS
    R_PATCH
    R_NO_CIE
    R_REGISTER_COUNT

# The contents that one input has of the section.
cdef packed struct PieceRow:
    uint64_t offset         # arena offset
    uint64_t size           # bytes
    uint64_t count          # how many of the next RelocRows or DebugPatchRows belong to it

# A relocation of a piece.
cdef packed struct RelocRow:
    uint64_t r_offset       # in the piece
    uint32_t target         # with outcome LIVE: the function's place among the output's symbols
    uint32_t outcome        # DebugOutcome

# A resolved field of a line header.
cdef packed struct DebugPatchRow:
    uint64_t r_offset       # in the mercury form (`.nv.merc.*`) of the piece
    uint64_t value          # of the field, which has 4 bytes

# A relocation that stays.
cdef packed struct MovedRow:
    uint64_t r_offset       # in the new section
    uint64_t row            # its RelocRow

# The old and the new place of a line unit.
cdef packed struct UnitRow:
    uint64_t piece          # its PieceRow
    uint64_t start          # offset in the piece
    uint64_t base           # offset in the new section

# A relocation of the piece at hand against a function. Line sections have it in the opcode that
# opens the function's sequence, frames in the address of its FDE or in a CIE.
ctypedef struct FunctionRef:
    uint64_t offset         # in the piece: of the sequence, or of the field in a frame or header
    uint64_t stop           # in the piece: end of the sequence
    uint64_t row            # number of its RelocRow, or of its DebugPatchRow among the piece's
    uint32_t target         # as in RelocRow
    uint32_t outcome        # DebugOutcome

# A unit of the piece at hand: header, then its line program. Offsets in the piece.
ctypedef struct LineUnit:
    uint64_t start
    uint64_t program        # end of the header
    uint64_t end
    uint64_t base           # offset of the unit in the new section

# Why a section cannot be rebuilt.
ctypedef struct RebuildFault:
    uint64_t piece          # PieceRow
    uint64_t offset         # in the piece, or in its mercury form (`.nv.merc.*`)
    DebugFault reason
    bint mercury            # the offset is in the mercury form

# A section while it is rebuilt.
ctypedef struct Rebuilt:
    const uint8_t* arena
    const PieceRow* pieces
    size_t count            # number of pieces
    const RelocRow* relocs  # of all pieces, one after the other
    size_t reloc_count
    Vec out                 # uint8_t: the new section, with room for the bytes of all pieces
    Vec moved               # MovedRow: the relocations that stay
    Vec refs                # FunctionRef, of the piece at hand
    bint ended              # the release ends a line program that is empty (`end_program`)
    RebuildFault fault


cdef inline bint set_rebuild_fault(RebuildFault* fault, uint64_t offset,
                                   DebugFault reason) noexcept nogil:
    """Fill in a fault of the piece at hand. Returns False, which the caller returns in turn."""
    fault.offset = offset
    fault.reason = reason
    return False


cdef inline int compare_refs_by_offset(const void* a, const void* b) noexcept nogil:
    """Order FunctionRefs by their offset in the piece, for qsort."""
    cdef uint64_t x = (<const FunctionRef*>a).offset, y = (<const FunctionRef*>b).offset
    return (x > y) - (x < y)


cdef inline int compare_refs_by_target(const void* a, const void* b) noexcept nogil:
    """Order FunctionRefs by the place of their symbol in the output, then by offset, for qsort."""
    cdef uint32_t x = (<const FunctionRef*>a).target, y = (<const FunctionRef*>b).target
    return (x > y) - (x < y) if x != y else compare_refs_by_offset(a, b)


# A function that compares two rows, for qsort.
ctypedef int (*Compare)(const void*, const void*) noexcept nogil


cdef inline void sort_refs(FunctionRef* refs, size_t count, Compare compare) noexcept nogil:
    """Sort references. ptxas and earlier links write them in order, so this is tested first."""
    cdef size_t i
    for i in range(1, count):
        if compare(&refs[i - 1], &refs[i]) > 0:
            qsort(refs, count, sizeof(FunctionRef), compare)
            return


cdef inline bint read_refs(Rebuilt* section, uint64_t first, uint64_t count,
                           uint64_t back) noexcept nogil:
    """List in `section.refs`, by offset, the relocations of one piece against functions.

    The piece has `count` RelocRows from `first` on. The offset of a reference is that of its
    relocation minus `back` bytes. False with a fault.
    """
    cdef const RelocRow* rows = section.relocs
    cdef uint64_t i
    cdef FunctionRef* ref
    section.refs.count = 0
    for i in range(first, first + count):
        if rows[i].outcome == OTHER:
            continue
        if rows[i].r_offset < back:
            return set_rebuild_fault(&section.fault, rows[i].r_offset, R_ADDRESS)
        ref = <FunctionRef*>vec_push(&section.refs)
        if ref == NULL:
            return set_rebuild_fault(&section.fault, 0, R_MEMORY)
        ref.offset = ref.stop = rows[i].r_offset - back
        ref.row = i
        ref.target = rows[i].target
        ref.outcome = rows[i].outcome
    sort_refs(<FunctionRef*>section.refs.data, section.refs.count, compare_refs_by_offset)
    return True


cdef inline bint keep_row(Rebuilt* section, uint64_t offset, uint64_t row) noexcept nogil:
    """Add a MovedRow: RelocRow `row` stays, and its field is at `offset` of the new section.

    False with a fault.
    """
    cdef MovedRow* moved = <MovedRow*>vec_push(&section.moved)
    if moved == NULL:
        return set_rebuild_fault(&section.fault, 0, R_MEMORY)
    moved.r_offset = offset
    moved.row = row
    return True
