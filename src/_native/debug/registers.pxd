# Register ranges: entries {name NUL, u32 count, count * (u32, register name NUL, u32 code, u32
# start, u32 end)}, one per function, of which stale ones are cleared in place.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from base.elf64 cimport load32
from debug.rows cimport RANGE, REGISTER, R_COUNT, R_CUT_OFF, R_LENGTH, R_MEMORY, Fault, fail
from base.nameindex cimport NameIndex, NameSlot, index_find


cdef inline bint read_names(const uint8_t* text, uint64_t size, NameIndex* index,
                            Fault* fault) noexcept nogil:
    """Enter each NUL-ended name with value 0: in the output, not yet described."""
    cdef const uint8_t* stop
    cdef NameSlot* slot
    cdef uint64_t at = 0, length
    while at < size:
        stop = <const uint8_t*>memchr(text + at, 0, size - at)
        length = stop - (text + at)
        slot = index_find(index, text + at, <uint32_t>length)
        if slot == NULL:
            return fail(fault, 0, R_MEMORY)
        if slot.value < 0:
            slot.value = 0
            index.count += 1
        at += length + 1
    return True


cdef inline bint clear_registers(uint8_t* data, uint64_t size, NameIndex* index,
                                 Fault* fault) noexcept nogil:
    """Clear, in one piece, the ranges of functions absent or already described."""
    cdef uint64_t at = 0, start, length, count, _i
    cdef uint8_t* stop
    cdef NameSlot* slot
    cdef bint keep
    while at < size:
        start = at
        stop = <uint8_t*>memchr(data + at, 0, size - at)
        if stop == NULL or size - (stop - data) < 1 + 4:
            return fail(fault, start, R_CUT_OFF)
        length = stop - (data + at)
        if length > 0x7fffffff:
            return fail(fault, start, R_LENGTH)
        slot = index_find(index, data + at, <uint32_t>length)
        if slot == NULL:
            return fail(fault, 0, R_MEMORY)
        keep = slot.value == 0
        if keep:
            slot.value = 1
        count = load32(stop + 1)
        at += length + 1 + 4
        if count > (size - at) // REGISTER:
            return fail(fault, start, R_COUNT)
        for _i in range(count):
            stop = NULL
            if size - at >= REGISTER:
                stop = <uint8_t*>memchr(data + at + 4, 0, size - at - 4)
            if stop == NULL or size - (stop - data) < 1 + 4 + RANGE:
                return fail(fault, start, R_CUT_OFF)
            if not keep:
                memset(stop + 1 + 4, 0, RANGE)
            at = (stop - data) + 1 + 4 + RANGE
    return True
