# Register ranges, `.nv_debug_info_reg_sass`. The section is a list of functions: {name, NUL, u32
# count, count entries {u32, name of a register, NUL, u32 code, u32 start, u32 end}}. A function's
# part of the list is its record. The first record of a function that is in the output stays. In the
# entries of all other records, `start` and `end` become 0.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memset

from base.elf64 cimport load32
from base.nameindex cimport NameIndex, NameSlot, index_find
from debug.rows cimport (
    LEAST_REGISTER, RANGE, R_CUT_OFF, R_LENGTH, R_MEMORY, R_REGISTER_COUNT, RebuildFault,
    set_rebuild_fault,
)


cdef enum:
    # Values of the index of names: whether a function of the output has had a record.
    WITHOUT_RECORD = 0
    WITH_RECORD = 1


cdef inline bint index_names(const uint8_t* text, uint64_t size, NameIndex* index,
                             RebuildFault* fault) noexcept nogil:
    """Enter the names of `text`, each with a NUL, as WITHOUT_RECORD; False with a fault."""
    cdef const uint8_t* stop
    cdef NameSlot* slot
    cdef uint64_t offset = 0, length
    while offset < size:
        stop = <const uint8_t*>memchr(text + offset, 0, size - offset)
        length = stop - (text + offset)
        slot = index_find(index, text + offset, <uint32_t>length)
        if slot == NULL:
            return set_rebuild_fault(fault, 0, R_MEMORY)
        if slot.value < 0:
            slot.value = WITHOUT_RECORD
            index.count += 1
        offset += length + 1
    return True


cdef inline bint clear_registers(uint8_t* data, uint64_t size, NameIndex* index,
                                 RebuildFault* fault) noexcept nogil:
    """Clear the ranges of functions that are not in the output or that had an earlier record.

    `data` are the `size` bytes of one piece. False with a fault.
    """
    cdef uint64_t offset = 0, start, length, count, _i
    cdef uint8_t* stop          # the NUL of a name
    cdef NameSlot* slot
    cdef bint stays
    while offset < size:
        start = offset
        stop = <uint8_t*>memchr(data + offset, 0, size - offset)
        if stop == NULL or size - (stop - data) < 1 + 4:
            return set_rebuild_fault(fault, start, R_CUT_OFF)
        length = stop - (data + offset)
        if length > 0x7fffffff:
            return set_rebuild_fault(fault, start, R_LENGTH)
        slot = index_find(index, data + offset, <uint32_t>length)
        if slot == NULL:
            return set_rebuild_fault(fault, 0, R_MEMORY)
        stays = slot.value == WITHOUT_RECORD
        if stays:
            slot.value = WITH_RECORD
        count = load32(stop + 1)
        offset += length + 1 + 4
        if count > (size - offset) // LEAST_REGISTER:
            return set_rebuild_fault(fault, start, R_REGISTER_COUNT)
        for _i in range(count):
            stop = NULL
            if size - offset >= LEAST_REGISTER:
                stop = <uint8_t*>memchr(data + offset + 4, 0, size - offset - 4)
            if stop == NULL or size - (stop - data) < 1 + 4 + RANGE:
                return set_rebuild_fault(fault, start, R_CUT_OFF)
            if not stays:
                memset(stop + 1 + 4, 0, RANGE)
            offset = (stop - data) + 1 + 4 + RANGE
    return True
