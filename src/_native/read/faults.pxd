# The state of the reader of cubins, and the reasons why it refuses an input.
#
# A `bint` function of this package that is a verb returns False if the file is refused (`fault`
# says why) or, without a fault, if memory is exhausted. `index` is the number of a section in its
# file, as ELF has it, and `section` its row.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from base.vector cimport Vec
from tables.rows cimport FaultRow, FileNumber

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
    MAX_ALIGN = 0x10000         # bytes
    MAX_SHARED = 0x40000        # bytes of shared memory: more than any kernel can have
    MOST_ROWS = 0x7fffffff      # so that a row number fits an int32_t
    # Names may share their bytes, but honest files use each byte about once. This limit on the
    # bytes of names keeps the work of reading them proportional to the size of the file.
    NAMES_PER_BYTE = 16
    # A limit on the bytes of contents of sections, which mercury twins may share.
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
    Vec marks                   # uint64_t by symbol: `kind_bit` of each section of a function
    FileNumber file             # the file that is read
    uint64_t names              # bytes of all its names so far
    FaultRow fault              # F_NONE while nothing is wrong


cdef inline bint refuse(Reader* reader, int32_t index, int64_t entry, int32_t reason,
                        uint64_t value, uint64_t limit) noexcept nogil:
    """Record why the current file is refused. Returns False.

    `entry` is an entry, symbol or byte of section `index`, and -1 if the fault is not in one.
    """
    reader.fault.file = reader.file
    reader.fault.section = index
    reader.fault.index = entry
    reader.fault.reason = reason
    reader.fault.value = value
    reader.fault.limit = limit
    return False


cdef inline bint count_name(Reader* reader, uint64_t size, uint64_t file_size) noexcept nogil:
    """Add the bytes of a name to those of the file; False if they are too many for its size."""
    reader.names += size
    return reader.names <= NAMES_PER_BYTE * file_size
