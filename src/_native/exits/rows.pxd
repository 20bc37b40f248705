# What the parts of the kernel code rewriting share: views of sections, places, faults.

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from base.elf64 cimport load16, load32, load64
from base.scratch cimport Scratch, scratch_room


cdef enum ExitFault:
    R_NONE
    R_MEMORY
    R_CUT_OFF
    R_RECORD
    R_BITMAP
    R_COUNT
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


ctypedef struct Fault:
    size_t section
    uint64_t offset
    int reason


# Contents of one section: as it lies in the file and, once something changed, its own copy.
ctypedef struct View:
    const uint8_t* data
    uint64_t size
    uint8_t* fresh          # NULL until changed
    uint64_t fresh_size
    Scratch* scratch        # where that copy is
    const uint8_t* name
    uint32_t name_size
    uint32_t kind           # sh_type
    uint32_t link
    uint32_t info


# Where an instruction went: `label` is what a jump to it reaches, an inserted barrier included.
# `begin` is where a range of a register begins, in code that is brought up to date.
ctypedef struct Place:
    uint64_t label
    uint64_t own
    uint64_t begin


# A kernel whose code changed.
ctypedef struct Code:
    uint32_t text           # section
    uint32_t capsule        # section
    uint64_t size           # bytes of .text in the file
    uint64_t fresh_size     # bytes of .text afterwards
    size_t first            # its rows of the table of places
    size_t count            # instructions that are not padding, and one for their end


cdef inline bint fail(Fault* fault, size_t section, uint64_t offset, int reason) noexcept nogil:
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


cdef inline uint64_t moved(const Code* code, const Place* places, uint64_t offset,
                           bint own) noexcept nogil:
    """Where `offset` went: the instruction itself, or with `own` unset what precedes it.

    The end of the section goes to its new end; offsets into the padding stay.
    """
    cdef const Place* place
    if offset == code.size:
        return code.fresh_size
    if offset // 16 >= code.count:
        return offset
    place = places + code.first + offset // 16
    return (place.own if own else place.label) + offset % 16


cdef inline uint8_t* renew(View* view, uint64_t size) noexcept nogil:
    """Room for new contents; NULL when memory is exhausted."""
    view.fresh_size = size
    view.fresh = <uint8_t*>scratch_room(view.scratch, size, 1)
    return view.fresh


cdef inline uint8_t* editable(View* view) noexcept nogil:
    """The contents as a copy that may be changed in place; NULL when memory is exhausted."""
    if view.fresh == NULL and renew(view, view.size) != NULL:
        memcpy(view.fresh, view.data, view.size)
    return view.fresh


cdef inline bint read_uleb(const uint8_t* data, uint64_t end, uint64_t* at,
                           uint64_t* value) noexcept nogil:
    cdef uint64_t shift = 0
    value[0] = 0
    while at[0] < end and shift < 63:
        value[0] |= <uint64_t>(data[at[0]] & 0x7f) << shift
        shift += 7
        at[0] += 1
        if not data[at[0] - 1] & 0x80:
            return True
    return False


cdef inline bint read_sleb(const uint8_t* data, uint64_t end, uint64_t* at,
                           int64_t* value) noexcept nogil:
    cdef uint64_t start = at[0]
    if not read_uleb(data, end, at, <uint64_t*>value):
        return False
    if data[at[0] - 1] & 0x40 and 7 * (at[0] - start) < 64:
        value[0] -= <int64_t>1 << 7 * (at[0] - start)
    return True
