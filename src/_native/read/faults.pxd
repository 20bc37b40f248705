# The state of the reader of cubins, and the reasons why it refuses an input.
#
# A function whose name is a verb returns False if the file is refused (`fault` says why). It also
# does, without a fault, if memory is exhausted (base/vector.pxd). `index` is the number of a
# section in its file, as in ELF, and `section` its SectionRow.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from base.vector cimport Vec
from tables.rows cimport FaultRow, FileNumber

# Limits: a file that exceeds one is refused.
cdef enum:
    MAX_ALIGN = 0x10000         # bytes: the largest alignment of a section or variable
    # Bytes: the largest value of an extern array's symbol, an address in shared memory. No kernel
    # can have so much shared memory.
    MAX_SHARED = 0x40000
    # The most rows of a table, and entries of a relocation section: their numbers fit an int32_t.
    MOST_ROWS = 0x7fffffff
    # Names may share their bytes, but honest files use each byte about once. This limit on the
    # bytes of names keeps the work of reading them proportional to the size of the file.
    NAMES_PER_BYTE = 16
    # The most bytes of all sections, for each byte of the file. It is above 1 since a section and
    # its mercury form may share bytes.
    CONTENTS_PER_BYTE = 4

cdef inline uint64_t max_nobits() noexcept nogil:
    """Return the most bytes of a section without contents, or of a symbol: more than any GPU has.
    """
    return <uint64_t>1 << 40


# The tables that the reader fills, and the file that it reads.
ctypedef struct Reader:
    const uint8_t* arena
    Vec files                   # FileRow
    Vec sections                # SectionRow
    Vec symbols                 # SymbolRow
    Vec marks                   # uint64_t by symbol of the file: bits of its sections (`kind_bit`)
    FileNumber file             # the file that is read
    uint64_t names              # bytes of all its names so far
    FaultRow fault              # F_NONE while nothing is wrong


cdef inline bint refuse(Reader* reader, int32_t index, int64_t entry, int32_t reason,
                        uint64_t value, uint64_t limit) noexcept nogil:
    """Record why the current file is refused: `reason`, a ReadFault. Returns False.

    `index` is -1 if the fault is in no section. `entry` is the number of the entry, symbol or byte
    in the section that has the fault, or -1. `value` is the wrong value, and `limit` what it should
    be or the largest that is allowed; 0 where none is given.
    """
    reader.fault.file = reader.file
    reader.fault.section = index
    reader.fault.index = entry
    reader.fault.reason = reason
    reader.fault.value = value
    reader.fault.limit = limit
    return False


cdef inline bint count_name(Reader* reader, uint64_t size, uint64_t file_size) noexcept nogil:
    """Add `size` bytes to those of the file's names; False if they are too many for the file."""
    reader.names += size
    return reader.names <= NAMES_PER_BYTE * file_size
