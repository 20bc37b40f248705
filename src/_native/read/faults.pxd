# The tables that the reader of cubins fills, and the reasons why it refuses an input.
#
# A `bint` function of this package that is a verb returns False if the file is refused (`fault`
# says why) or, without a fault, if memory is exhausted.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from base.vector cimport Vec
from tables.rows cimport FaultRow

# Reasons of a FaultRow; pylink/phases/faults.py has the sentence for each.
cdef enum ReadFault:
    F_NONE = 0
    F_TOO_SHORT = 1
    F_NOT_ELF = 2
    F_CLASS = 3
    F_ENDIAN = 4
    F_MACHINE = 5
    F_ABI_VERSION = 6
    F_NOT_RELOCATABLE = 7
    F_SECTION_TABLE = 8
    F_SECTION_BOUNDS = 9
    F_NAME_OFFSET = 10
    F_STRING_TABLE = 11
    F_ALIGN = 12
    F_NO_SYMTAB = 13
    F_ENTSIZE = 14
    F_SYMBOL_SECTION = 15
    F_SH_INFO = 16
    F_RELOC_SYMBOL = 17
    F_RELOC_OFFSET = 18
    F_TOO_LARGE = 19
    F_SH_LINK = 20
    F_RECORD_END = 21           # of attribute records, as all F_RECORD_ faults
    F_RECORD_FORMAT = 22
    F_CAPSULE_SIZE = 24
    F_TEXT_SIZE = 25
    F_RECORD_SYMBOL = 26
    F_RECORD_SIZE = 27
    F_CALLGRAPH_SYMBOL = 28
    F_CALLGRAPH_STRING = 29
    F_CALLGRAPH_BLOCK = 30
    F_DUPLICATE_SECTION = 31
    F_SECTION_NAME = 32
    F_RELOC_TYPE = 33
    F_SYMBOL_BOUNDS = 34
    F_BINDING = 35
    F_VARIABLE_ALIGN = 36
    F_NO_CAPSULE = 37
    F_NAME_BYTES = 38
    F_TABLE_SIZE = 39
    F_ALIGN_LIMIT = 40
    F_SYMBOL_TYPE = 41
    F_NULL_SYMBOL = 42
    F_ALIGN_SUM = 43
    F_ROW_COUNT = 44
    F_SECTION_TYPE = 45
    F_OSABI = 46
    F_SIZE_SUM = 47
    F_ELF_FLAGS = 48

cdef enum:
    MAX_ALIGN = 0x10000
    MAX_SHARED = 0x40000        # more than any kernel can have
    # Names may share their bytes, but honest files use each byte about once. The limit keeps the
    # work of reading names proportional to the size of the file.
    NAMES_PER_BYTE = 16
    # The limit for contents of sections, which mercury twins may share.
    CONTENTS_PER_BYTE = 4

cdef inline uint64_t max_nobits() noexcept nogil:
    """Bytes of a section without contents, and of a symbol: more than any GPU has."""
    return <uint64_t>1 << 40


ctypedef struct Reader:
    const uint8_t* arena
    Vec files
    Vec sections
    Vec symbols
    Vec marks               # uint64_t for each symbol of the file: sections that the function has
    int32_t file            # the one at hand
    uint64_t names          # bytes of all its names
    FaultRow fault


cdef inline bint refuse(Reader* reader, int32_t section, int64_t index, int32_t reason,
                        uint64_t value, uint64_t limit) noexcept nogil:
    """Record why the current file is refused. Returns False."""
    reader.fault.file = reader.file
    reader.fault.section = section
    reader.fault.index = index
    reader.fault.reason = reason
    reader.fault.value = value
    reader.fault.limit = limit
    return False


cdef inline bint count_name(Reader* reader, uint64_t size, uint64_t file_size) noexcept nogil:
    """Count the bytes of a name; False when names add up to more than the file can mean."""
    reader.names += size
    return reader.names <= NAMES_PER_BYTE * file_size
