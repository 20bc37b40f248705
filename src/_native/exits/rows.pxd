# Views of sections, places and faults, which all parts of the kernel rewriting share.
#
# A `bint` function of this package that is a verb returns False with a fault, whose reason is
# R_MEMORY if memory is exhausted. Without a fault as parameter it returns False only if memory is
# exhausted, except for functions that read and for `move_targets`: there the contents are damaged.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport load16, load32, load64
from base.scratch cimport Scratch, scratch_room


cdef enum ExitFault:
    R_NONE
    R_MEMORY
    R_CUT_OFF               # text_of in exits.pyx says what each of these means
    R_RECORD
    R_BITMAP
    R_INSTRUCTION_COUNT
    R_LAST_SLOT
    R_INFO
    R_REGISTERS
    R_FRAME
    R_FRAME_OP
    R_LINE_UNIT
    R_LINE_OP
    R_LINE_RELOCATION
    R_TABLE
    R_WHOLE                 # has functions inside of a kernel


ctypedef struct RewriteFault:
    size_t section
    uint64_t offset
    int reason


# Contents of one section: as it lies in the file and, once something changed, its own copy.
ctypedef struct View:
    const uint8_t* data
    uint64_t size
    uint8_t* rewritten      # NULL until changed
    uint64_t rewritten_size
    Scratch* scratch        # memory of that copy
    const uint8_t* name
    uint32_t name_size
    uint32_t kind           # sh_type
    uint32_t link
    uint32_t info


# New offsets of one instruction: the `jump_target` that a jump to it reaches, with an inserted
# barrier; the `instruction` itself; and the `range_start` of a register range, in code that is
# brought up to date.
ctypedef struct InstructionMap:
    uint64_t jump_target
    uint64_t instruction
    uint64_t range_start


# A kernel whose code changed.
ctypedef struct Code:
    uint32_t text               # section
    uint32_t capsule            # section
    uint64_t size               # bytes of .text in the file
    uint64_t rewritten_size     # bytes of .text afterwards
    size_t first                # number of the first row in the table of places
    size_t count                # instructions that are not padding, and one for their end


cdef inline bint set_fault(RewriteFault* fault, size_t section, uint64_t offset,
                           int reason) noexcept nogil:
    fault.section = section
    fault.offset = offset
    fault.reason = reason
    return False


cdef inline void put16(uint8_t* p, uint16_t value) noexcept nogil:
    memcpy(p, &value, 2)


cdef inline void put32(uint8_t* p, uint32_t value) noexcept nogil:
    memcpy(p, &value, 4)


cdef inline void put64(uint8_t* p, uint64_t value) noexcept nogil:
    memcpy(p, &value, 8)


cdef inline uint64_t map_offset(const Code* code, const InstructionMap* places, uint64_t offset,
                                bint is_own) noexcept nogil:
    """The new offset of `offset`: of the instruction, without `is_own` of the barrier before it.

    The end of the section maps to its new end; offsets into the padding stay.
    """
    cdef const InstructionMap* place
    if offset == code.size:
        return code.rewritten_size
    if offset // 16 >= code.count:
        return offset
    place = places + code.first + offset // 16
    return (place.instruction if is_own else place.jump_target) + offset % 16


cdef inline uint8_t* replace_contents(View* view, uint64_t size) noexcept nogil:
    """Room for new contents; NULL when memory is exhausted."""
    view.rewritten_size = size
    view.rewritten = <uint8_t*>scratch_room(view.scratch, size, 1)
    return view.rewritten


cdef inline uint8_t* make_writable(View* view) noexcept nogil:
    """The contents as a copy that may be changed in place; NULL when memory is exhausted."""
    if view.rewritten == NULL and replace_contents(view, view.size) != NULL:
        memcpy(view.rewritten, view.data, view.size)
    return view.rewritten


cdef inline bint read_uleb(const uint8_t* data, uint64_t end, uint64_t* offset,
                           uint64_t* value) noexcept nogil:
    """Read an unsigned LEB128 number; False if it does not end before `end`."""
    cdef uint64_t shift = 0
    value[0] = 0
    while offset[0] < end and shift < 63:
        value[0] |= <uint64_t>(data[offset[0]] & 0x7f) << shift
        shift += 7
        offset[0] += 1
        if not data[offset[0] - 1] & 0x80:
            return True
    return False


cdef inline bint read_sleb(const uint8_t* data, uint64_t end, uint64_t* offset,
                           int64_t* value) noexcept nogil:
    """Read a signed LEB128 number; False if it does not end before `end`."""
    cdef uint64_t start = offset[0]
    if not read_uleb(data, end, offset, <uint64_t*>value):
        return False
    if data[offset[0] - 1] & 0x40 and 7 * (offset[0] - start) < 64:
        value[0] -= <int64_t>1 << 7 * (offset[0] - start)
    return True
