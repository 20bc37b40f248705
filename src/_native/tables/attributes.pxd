# Attributes, the records of .nv.info, .nv.info.F and .nv.compat: finds their sizes, and the record
# of an attribute. The reader of cubins has checked the sizes in .nv.info and .nv.info.F. In
# .nv.compat records may be cut off.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from attributetypes cimport EIATTR_MAXREG_COUNT
from base.elf64 cimport load16


cdef inline uint32_t record_size(const uint8_t* data) noexcept nogil:
    """Return the bytes of a record {u8 format, u8 attribute, u16 n}: 4, or 4 + n for format 4."""
    if data[0] == 4:
        return 4 + load16(data + 2)
    return 4


cdef inline const uint8_t* find_record(const uint8_t* data, uint64_t size,
                                       uint8_t attribute) noexcept nogil:
    """Return the first record of `attribute`, an EIATTR_ number; NULL without one, or if cut off.

    `data` are all records, and `size` is the number of their bytes.
    """
    cdef uint64_t offset = 0
    cdef uint32_t bytes
    while offset + 4 <= size:
        bytes = record_size(data + offset)
        if data[offset + 1] == attribute:
            return data + offset if bytes <= size - offset else NULL
        offset += bytes
    return NULL


cdef inline uint32_t register_limit(const uint8_t* data, uint64_t size) noexcept nogil:
    """Return the register limit (MAXREG_COUNT) in a kernel's records; 255 without a record."""
    cdef const uint8_t* record = find_record(data, size, EIATTR_MAXREG_COUNT)
    return load16(record + 2) if record != NULL else 255
