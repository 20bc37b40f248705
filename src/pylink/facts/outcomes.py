"""Numbers by which native code says what it found: faults of inputs, differences, kinds of files.

`header.py` makes constants of them for native code. The packages that report them have the
sentences.
"""

from __future__ import annotations


class ReadFault:
    """Reasons why the reader refuses a cubin: values of FaultRow.reason (`phases/faults.py`)."""

    NONE = 0
    TOO_SHORT = 1
    NOT_ELF = 2
    CLASS = 3
    ENDIAN = 4
    MACHINE = 5
    ABI_VERSION = 6
    NOT_RELOCATABLE = 7
    SECTION_TABLE = 8
    SECTION_BOUNDS = 9
    NAME_OFFSET = 10
    STRING_TABLE = 11
    ALIGN = 12
    NO_SYMTAB = 13
    ENTSIZE = 14
    SYMBOL_SECTION = 15
    SH_INFO = 16
    RELOC_SYMBOL = 17
    RELOC_OFFSET = 18
    TOO_LARGE = 19
    SH_LINK = 20
    RECORD_END = 21  # of attribute records, as all RECORD_ faults
    RECORD_FORMAT = 22
    CAPSULE_SIZE = 24
    TEXT_SIZE = 25
    RECORD_SYMBOL = 26
    RECORD_SIZE = 27
    CALLGRAPH_SYMBOL = 28
    CALLGRAPH_STRING = 29
    CALLGRAPH_BLOCK = 30
    DUPLICATE_SECTION = 31
    SECTION_NAME = 32
    RELOC_TYPE = 33
    SYMBOL_BOUNDS = 34
    BINDING = 35
    VARIABLE_ALIGN = 36
    NO_CAPSULE = 37
    NAME_BYTES = 38
    TABLE_SIZE = 39
    ALIGN_LIMIT = 40
    SYMBOL_TYPE = 41
    NULL_SYMBOL = 42
    ALIGN_SUM = 43
    ROW_COUNT = 44
    SECTION_TYPE = 45
    OSABI = 46
    SIZE_SUM = 47
    ELF_FLAGS = 48


class FatbinFault:
    """Damage of a fat binary, or of the host object that contains it (`inputs/damage.py`)."""

    NONE = 0
    MAGIC = 1
    HEADER = 2  # header of a container
    VERSION = 3
    SIZE = 4  # size of a container
    ENTRY_HEADER = 5
    ENTRY_SIZE = 6
    COMPRESSED_SIZE = 7
    TAIL = 8  # bytes that are too few for an entry
    SECTIONS = 9  # sections of the host object, as all below
    SECTION_RANGE = 10
    SECTION_NAME = 11
    SECTION_SUM = 12


class ArchiveFault:
    """Reasons why an archive is refused (`inputs/archiveformat.py`)."""

    GOOD = 0
    CUT = 1  # bytes that are too few for a header
    END = 2  # the header does not end with the two bytes that end each header
    SIZE = 3  # the size is not a number
    RANGE = 4  # the member runs past the archive
    # A name `#1/N`, which says that the first N bytes of the contents are the name: N is not a
    # number, or larger than the contents.
    NAME_LENGTH = 5
    NAME_OFFSET = 6  # the name begins with a slash and is not an offset
    PLACE = 7  # PLACE in a name `/OFFSET:PLACE` of a thin archive is not a number
    NO_NAMES = 8  # no member //, which has the long names, comes before the member
    NAME_RANGE = 9  # the offset is outside the long names
    EMPTY_NAME = 10


class IndexFault:
    """Reasons why the index of build trees lists no sections of a cubin (`fleet/fragment.py`)."""

    NONE = 0
    HEADER = 1  # not a cubin
    TABLE = 2  # section headers outside the file
    NAMES = 3  # no string table for section names
    NAME = 4  # a section name outside that table
    RANGE = 5  # a section outside the file
    SUM = 6  # sections that together have more than 4 times the file's bytes (SHARED_BYTES)
    NAME_SUM = 7  # section names that together are longer than the file


class IndexedKind:
    """Kinds of files by their contents, for the index of build trees."""

    CUBIN = 0  # a cubin: its sections are listed
    OTHER = 1  # a file without device code
    UNDECIDED = 2  # not read, or a container of other files: Python opens it


class FoldOutcome:
    """Reasons to accept or reject a candidate: a file whose Mercury sections may repeat another's.

    The other file is the reference. HEADER_ reasons are about section headers, TARGET_ reasons
    about relocation sections; a TWIN is the same section of the reference. `mercury/reasons.py` has
    the sentences.
    """

    ACCEPTED = 0
    BYTES_DIFFER = 1
    CANDIDATE_LONGER = 2
    REFERENCE_SHORTER = 3
    HEADER_COUNT = 4
    HEADER_TWIN = 5
    TARGET_COUNT = 6
    TARGET_TWIN = 7
    HEADER_MOVED = 8
    TARGET_MOVED = 9
    TARGET_PLACE = 10
    ATTRIBUTES_DIFFER = 11
    FUNCTION_DIFFERS = 12
    FUNCTION_WEAKER = 13
    SYMBOL_DIFFERS = 14
    SECTION_KIND = 15
    NEEDS_DIGESTS = 16  # not an outcome: native code must be called again, with digests


# The class whose numbers have each prefix in native code.
PREFIXES = {
    "F_": ReadFault,
    "B_": FatbinFault,
    "A_": ArchiveFault,
    "X_": IndexFault,
    "INDEXED_": IndexedKind,
    "": FoldOutcome,
}
