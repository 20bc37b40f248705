# Attribute records of .nv.info, .nv.info.F and .nv.compat: their size, and single attributes.
# The reader of cubins has checked the first two, and leaves the third as it is.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from attributetypes cimport EIATTR_MAXREG_COUNT
from base.elf64 cimport load16


cdef inline uint32_t record_size(const uint8_t* data) noexcept nogil:
    """Return the size of a record {u8 format, u8 attribute, u16 n}: 4, or 4 + n for format 4."""
    if data[0] == 4:
        return 4 + load16(data + 2)
    return 4


cdef inline const uint8_t* find_record(const uint8_t* data, uint64_t size,
                                       uint8_t attribute) noexcept nogil:
    """The first record with that attribute; NULL without one before a record that is cut off."""
    cdef uint64_t offset = 0
    while size - offset >= 4 and record_size(data + offset) <= size - offset:
        if data[offset + 1] == attribute:
            return data + offset
        offset += record_size(data + offset)
    return NULL


cdef inline uint32_t register_limit(const uint8_t* data, uint64_t size) noexcept nogil:
    """MAXREG_COUNT of a kernel's records (default: 255, all registers)."""
    cdef const uint8_t* record = find_record(data, size, EIATTR_MAXREG_COUNT)
    return load16(record + 2) if record != NULL else 255
