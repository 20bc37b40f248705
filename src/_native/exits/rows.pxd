# Views of sections, faults, and maps from old to new code offsets, for all parts of the kernel
# rewriting. The maps are InstructionMaps; parameters and tables of them are named `places`.
#
# A function with a parameter `fault`, unless its name begins with is_, has_ or needs_, fills in the
# fault before it returns False. The reason is R_MEMORY if memory is exhausted. Functions that read
# and have no such parameter, and `move_targets`, return False if the contents are damaged.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport WORD
from base.scratch cimport Scratch, scratch_room
from tables.rows cimport FileSectionCounter, FileSectionRef


# Reasons of a RewriteFault. `text_of` in exits.pyx has their texts for users, from R_CUT_OFF on.
cdef enum RewriteFaultReason:
    R_NONE
    R_MEMORY
    R_CUT_OFF
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
    R_WHOLE                 # a whole program (-ewp): the changed kernel has functions inside of it


# Why the rewriting of a file stopped.
ctypedef struct RewriteFault:
    FileSectionCounter section  # index of the section in the file
    uint64_t offset             # offset in the section
    int reason                  # RewriteFaultReason


# Contents of one section: as they are before a step and, once it changes them, in a changed copy.
ctypedef struct View:
    const uint8_t* data         # contents before the step
    uint64_t size               # bytes of `data`
    uint8_t* rewritten          # the copy that may change; NULL until something asks for it
    uint64_t rewritten_size     # bytes of `rewritten`
    Scratch* scratch            # memory of `rewritten`
    const uint8_t* name
    uint32_t name_size
    uint32_t kind               # sh_type
    uint32_t link               # sh_link
    FileSectionRef info         # sh_info; of a capsule a FileSymbolRef


# New offsets in .text of one instruction of the input. If others were inserted in front of it, such
# as an error barrier, a jump to the instruction must reach the first of these.
ctypedef struct InstructionMap:
    uint64_t jump_target        # of the first inserted one, if any, else of the instruction
    uint64_t instruction        # of the instruction itself; if it was dropped, of what follows
    uint64_t range_start        # of a register range that begins with it, in code that is updated


# A row of RewrittenFile.kernels, that is a changed kernel or function of the file; -1 for none.
ctypedef int32_t CodeNumber

# A kernel or function whose code changed.
ctypedef struct Code:
    FileSectionRef text         # index of its .text in the file
    FileSectionRef capsule      # index of its capsule in the file
    uint64_t size               # bytes of .text in the file
    uint64_t rewritten_size     # bytes of .text afterwards
    size_t first                # row in `places` of its first InstructionMap
    # InstructionMaps: one per instruction before the padding, and one for the offset after them.
    size_t count


cdef inline bint set_fault(RewriteFault* fault, FileSectionCounter section, uint64_t offset,
                           int reason) noexcept nogil:
    """Fill in a fault. Returns False, which the caller returns in turn."""
    fault.section = section
    fault.offset = offset
    fault.reason = reason
    return False


cdef inline void put16(uint8_t* p, uint16_t value) noexcept nogil:
    """Write a little-endian number of 16 bits at an address of any alignment."""
    memcpy(p, &value, 2)


cdef inline void put32(uint8_t* p, uint32_t value) noexcept nogil:
    """Write a little-endian number of 32 bits at an address of any alignment."""
    memcpy(p, &value, 4)


cdef inline void put64(uint8_t* p, uint64_t value) noexcept nogil:
    """Write a little-endian number of 64 bits at an address of any alignment."""
    memcpy(p, &value, 8)


cdef inline uint64_t map_offset(const Code* code, const InstructionMap* places, uint64_t offset,
                                bint is_own) noexcept nogil:
    """Return the new offset in .text for an old `offset`.

    With `is_own` the result is the offset of the instruction itself, without it the offset that a
    jump to the instruction must reach. `places` are the InstructionMaps of all functions. The end
    of the section maps to its new end; offsets into the padding stay.
    """
    cdef const InstructionMap* row
    if offset == code.size:
        return code.rewritten_size
    if offset // WORD >= code.count:
        return offset
    row = places + code.first + offset // WORD
    return (row.instruction if is_own else row.jump_target) + offset % WORD


cdef inline uint8_t* replace_contents(View* view, uint64_t size) noexcept nogil:
    """Return room for `size` bytes of a view's new contents; NULL when memory is exhausted."""
    view.rewritten_size = size
    view.rewritten = <uint8_t*>scratch_room(view.scratch, size, 1)
    return view.rewritten


cdef inline uint8_t* make_writable(View* view) noexcept nogil:
    """Return the view's changeable copy, made at the first call; NULL when memory is exhausted."""
    if view.rewritten == NULL and replace_contents(view, view.size) != NULL:
        memcpy(view.rewritten, view.data, view.size)
    return view.rewritten


cdef inline bint read_uleb(const uint8_t* data, uint64_t end, uint64_t* offset,
                           uint64_t* value) noexcept nogil:
    """Read an unsigned LEB128 number, and move `offset` after it.

    False if it runs past `end` or has more than 9 bytes.
    """
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
    """Read a signed LEB128 number, and move `offset` after it; False as from `read_uleb`."""
    cdef uint64_t start = offset[0]
    if not read_uleb(data, end, offset, <uint64_t*>value):
        return False
    if data[offset[0] - 1] & 0x40 and 7 * (offset[0] - start) < 64:
        value[0] -= <int64_t>1 << 7 * (offset[0] - start)
    return True
