# Single attributes of a function, looked up in the records of its .nv.info.F.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from elf64 cimport EIATTR_MAXREG_COUNT


cdef inline uint32_t register_limit(const uint8_t* data, uint64_t size) noexcept nogil:
    """MAXREG_COUNT of a kernel's records; 255, all there are, without."""
    cdef uint64_t at = 0
    while at < size:
        if data[at + 1] == EIATTR_MAXREG_COUNT:
            return <uint32_t>data[at + 2] | <uint32_t>data[at + 3] << 8
        at += 4
        if data[at - 4] == 4:
            at += <uint32_t>data[at - 2] | <uint32_t>data[at - 1] << 8
    return 255
