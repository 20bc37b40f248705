# Rows, faults and sorting that the kernels of debug.pyx share; their meaning is explained there.
#
# A `bint` function of this package that is a verb returns False with a fault, whose reason is
# R_MEMORY if memory is exhausted.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport qsort

from base.elf64 cimport load16, load32, load64
from base.vector cimport Vec, vec_push


# The outcomes of functions have the numbers of RebuildOutcome (tables/rows.pxd).
cdef enum DebugOutcome:
    LIVE = 0            # the function copy that is in the output
    DEAD = 1            # a function that is not
    OVERRIDDEN = 2      # a copy that lost, or was replaced and has relocations
    OTHER = 3           # not a function: these kernels ignore it

cdef enum:
    PREFIX = 3              # bytes of a set-address opcode before its operand
    LEAST_SEQUENCE = 11     # bytes of the shortest sequence: its opening opcode
    LINE_HEADER = 10        # bytes of unit_length u32, version u16, header_length u32
    FDE_POINTER = 12        # offset of the CIE's, after the 64-bit escape and length
    FDE_ADDRESS = 20        # offset of the function's address, after that pointer
    REGISTER = 17           # bytes of the shortest entry: u32, name, u32 code, u32 start, u32 end
    RANGE = 8               # bytes of start and end

cdef enum DebugFault:
    R_NONE
    R_MEMORY
    R_CUT_OFF               # text_of in debug.pyx says what each of these means
    R_FORMAT
    R_LENGTH
    R_VERSION
    R_HEADER
    R_ADDRESS
    R_UNITS
    R_PATCH
    R_NO_CIE
    R_REGISTER_COUNT

cdef packed struct PieceRow:
    uint64_t offset
    uint64_t size
    uint64_t count

cdef packed struct RelocRow:
    uint64_t r_offset
    uint32_t target
    uint32_t outcome

cdef packed struct DebugPatchRow:
    uint64_t r_offset
    uint64_t value

cdef packed struct MovedRow:
    uint64_t r_offset
    uint64_t row

cdef packed struct UnitRow:
    uint64_t piece
    uint64_t start
    uint64_t base

# A relocation under way: where its sequence (line) or address field (frame) is in the piece.
ctypedef struct Cut:
    uint64_t offset
    uint64_t stop
    uint64_t row
    uint32_t target
    uint32_t outcome

ctypedef struct LineUnit:
    uint64_t start
    uint64_t program
    uint64_t end
    uint64_t base           # in the output

ctypedef struct RebuildFault:
    uint64_t piece
    uint64_t offset
    DebugFault reason
    bint mercury            # in the twin that `headers` names

# A section being rewritten.
ctypedef struct Rebuilt:
    const uint8_t* arena
    const PieceRow* pieces
    size_t count
    const RelocRow* relocs
    size_t reloc_count
    Vec out                 # uint8_t, with room for the bytes of all pieces
    Vec moved               # MovedRow
    Vec cuts                # Cut, of the current piece
    bint ended              # line units without sequences end
    RebuildFault fault


cdef inline bint set_rebuild_fault(RebuildFault* fault, uint64_t offset,
                                   DebugFault reason) noexcept nogil:
    fault.offset = offset
    fault.reason = reason
    return False


cdef inline int compare_cuts_by_offset(const void* a, const void* b) noexcept nogil:
    cdef uint64_t x = (<const Cut*>a).offset, y = (<const Cut*>b).offset
    return (x > y) - (x < y)


cdef inline int compare_cuts_by_target(const void* a, const void* b) noexcept nogil:
    cdef uint32_t x = (<const Cut*>a).target, y = (<const Cut*>b).target
    return (x > y) - (x < y) if x != y else compare_cuts_by_offset(a, b)


ctypedef int (*Compare)(const void*, const void*) noexcept nogil


cdef inline void sort_cuts(Cut* cuts, size_t count, Compare compare) noexcept nogil:
    """Sort unless in order, which is how ptxas and earlier links write them."""
    cdef size_t i
    for i in range(1, count):
        if compare(&cuts[i - 1], &cuts[i]) > 0:
            qsort(cuts, count, sizeof(Cut), compare)
            return


cdef inline bint read_cuts(Rebuilt* section, uint64_t first, uint64_t count,
                           uint64_t back) noexcept nogil:
    """Collect the function relocations of one piece, by offset, each `back` bytes before it."""
    cdef const RelocRow* rows = section.relocs
    cdef uint64_t i
    cdef Cut* cut
    section.cuts.count = 0
    for i in range(first, first + count):
        if rows[i].outcome == OTHER:
            continue
        if rows[i].r_offset < back:
            return set_rebuild_fault(&section.fault, rows[i].r_offset, R_ADDRESS)
        cut = <Cut*>vec_push(&section.cuts)
        if cut == NULL:
            return set_rebuild_fault(&section.fault, 0, R_MEMORY)
        cut.offset = cut.stop = rows[i].r_offset - back
        cut.row = i
        cut.target = rows[i].target
        cut.outcome = rows[i].outcome
    sort_cuts(<Cut*>section.cuts.data, section.cuts.count, compare_cuts_by_offset)
    return True


cdef inline bint keep_row(Rebuilt* section, uint64_t offset, uint64_t row) noexcept nogil:
    """Note where the field of a relocation is in the new section."""
    cdef MovedRow* moved = <MovedRow*>vec_push(&section.moved)
    if moved == NULL:
        return set_rebuild_fault(&section.fault, 0, R_MEMORY)
    moved.r_offset = offset
    moved.row = row
    return True
