# The rows of the tables that pass from phase to phase. `pylink.rows` has the columns for Python.
#
# The inputs are files with sections and symbols: FileRow, SectionRow, SymbolRow. The distinct
# symbols of the link are entities: EntityRow. The output has sections, symbols and relocations:
# OutRow, OutSymbolRow, EmittedRow. A row refers to others by their numbers alone.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from elfnumbers cimport STT_CUDA_OBJECT
from rownumbers cimport (
    EF_DEFINED, EF_KERNEL, EF_UNSELECTED, EF_UNSIZED, EF_WEAK, E_CONSTANT, E_GLOBAL, E_SHARED,
    RESOLUTION_LOST, RESOLUTION_LOST_EARLY, RESOLUTION_REPLACED, RESOLUTION_WON,
)

# The number of a row in its table, from 0; -1 for no row. Docstrings say what else a number below 0
# means. A Ref is the number of a row that exists. A Counter is the number of a row as size_t: in a
# loop over rows, or made from such a number.
#
# C treats all of these as integers. `tests/helpers/row_numbers.py` reports a number of one table
# that is used for another, also as an index of a column: `by entity` in the comment of a column
# says that it has an element for each EntityRow. It also reports a plain integer that is used as a
# number without a cast, such as `<OutNumber>`.
ctypedef int32_t FileNumber
ctypedef int32_t SectionNumber      # a section of an input: SectionRow
ctypedef int32_t SymbolNumber       # a symbol of an input: SymbolRow
ctypedef int32_t EntityNumber
ctypedef int32_t OutNumber          # a section of the output: OutRow
ctypedef int32_t OutSymbolNumber
ctypedef int32_t EmittedNumber
ctypedef int32_t CallNumber
ctypedef int32_t RebuildNumber
ctypedef uint32_t FileRef
ctypedef uint32_t SectionRef
ctypedef uint32_t SymbolRef
ctypedef uint32_t EntityRef
ctypedef uint32_t PatchRef
ctypedef size_t FileCounter
ctypedef size_t SectionCounter
ctypedef size_t SymbolCounter
ctypedef size_t EntityCounter
ctypedef size_t OutCounter
ctypedef size_t OutSymbolCounter
ctypedef size_t RebuildCounter

# The index of a section or symbol in its file, from 0.
ctypedef int32_t FileSectionNumber
ctypedef uint32_t FileSectionRef
ctypedef size_t FileSectionCounter
ctypedef uint32_t FileSymbolRef

# One input file. Offsets are into the arena, the single buffer that holds all input bytes.
cdef packed struct FileRow:
    uint64_t offset
    uint64_t size               # bytes
    SectionRef first_section    # SectionRow of its section 0
    uint32_t section_count
    SymbolRef first_symbol      # SymbolRow of its symbol 0
    uint32_t symbol_count
    uint32_t mercury_symbols    # number of leading symbols that .nv.merc.symtab repeats
    uint32_t toolkit            # newest toolkit in header and note: 130 for CUDA 13.0; 0 for none
    uint16_t patch              # patch level of the tool of that toolkit, 0 where unknown
    uint16_t sm                 # SM number of the code: 90 for sm_90
    uint16_t ptx_sm             # SM number of the PTX it was compiled from, or UNKNOWN_SM
    uint8_t format              # row of FORMAT (facts/objectformats.py)
    uint8_t flags               # FileFlag bits
    uint64_t strtab             # arena offset of the string table of .symtab
    uint64_t strtab_size        # bytes
    uint64_t merc_symtab        # arena offset of .nv.merc.symtab, 0 without it
    SectionRef first_note       # first SectionRow with a note, attribute or call record
    SectionRef note_end         # number after the last SectionRow with one
    SectionRef first_code       # first SectionRow with code
    SectionRef code_end         # number after the last SectionRow with code

cdef enum:
    UNKNOWN_SM = 0xffff         # FileRow.ptx_sm of a file that does not state it

cdef inline uint16_t virtual_sm(const FileRow* file) noexcept nogil:
    """Return the SM number of the PTX that a file was compiled from, 0 where unknown."""
    return file.ptx_sm if file.ptx_sm != UNKNOWN_SM else 0

# One input section: its header, and what it belongs to.
cdef packed struct SectionRow:
    uint64_t name               # arena offset of a NUL-terminated name
    uint64_t offset             # arena offset of its bytes; 0 without bytes
    uint64_t size               # sh_size
    uint64_t flags              # sh_flags
    uint32_t name_size          # bytes of the name, without NUL
    uint32_t type               # sh_type
    uint32_t link               # sh_link
    uint32_t info               # sh_info
    uint32_t align              # sh_addralign, at least 1
    uint32_t entsize            # sh_entsize
    FileRef file                # FileRow
    SectionNumber target        # SectionRow that sh_info names (code, capsule: SymbolRow), or -1
    uint16_t kind               # number in facts/sectionkinds.py
    uint16_t bank               # bank of a section of constants, else 0


cdef inline SymbolNumber function_symbol(const SectionRow* code) noexcept nogil:
    """Return the SymbolRow of the function F of a section .text.F or .nv.capmerc.text.F, or -1."""
    return <SymbolNumber>code.target


# One input symbol.
cdef packed struct SymbolRow:
    uint64_t name               # arena offset of a NUL-terminated name
    uint64_t value              # st_value
    uint64_t size               # st_size
    uint64_t merc_size          # st_size in .nv.merc.symtab: that of the mercury form
    uint32_t name_size          # bytes of the name, without NUL
    FileRef file                # FileRow
    SectionNumber section       # SectionRow; -1 if undefined, absolute or common
    uint16_t shndx              # st_shndx
    uint8_t info                # st_info
    uint8_t other               # st_other

# The reason why an input was refused.
cdef packed struct FaultRow:
    FileNumber file             # FileRow
    int32_t section             # index in the file, or -1
    int64_t index               # of an entry, symbol or byte in that section, or -1
    int32_t reason              # ReadFault
    uint64_t value              # the wrong value
    uint64_t limit              # what it should be, or its largest value; 0 where none is given

# One distinct symbol of the link, in creation order: file by file, functions first.
cdef packed struct EntityRow:
    SymbolNumber first          # SymbolRow of its first mention
    SymbolNumber winner         # the definition that is linked, or `first` if there is none
    uint32_t kind               # EntityKind
    uint32_t flags              # EntityFlag bits
    uint64_t size               # bytes; of common symbols the largest
    uint64_t align              # of variables that are or were common, or are shared; else 0
    uint32_t regcount           # of a function: its registers
    uint32_t frame              # of a function: bytes of its stack frame

# Bytes that the system has at the start of .nv.shared.reserved.0 of an executable.
cdef enum:
    SYSTEM_RESERVE = 0x40

cdef inline bint is_root(const EntityRow* entity) noexcept nogil:
    """Return whether an entity is a kernel that no selection of kernels excludes."""
    return entity.flags & EF_KERNEL and not entity.flags & EF_UNSELECTED

cdef inline bint has_lost(uint8_t resolution) noexcept nogil:
    """Return whether a definition never won: another one had won before its file was read."""
    return resolution == RESOLUTION_LOST or resolution == RESOLUTION_LOST_EARLY


cdef inline bint was_current(uint8_t resolution) noexcept nogil:
    """Return whether a definition won when its file was read, so that it created sections.

    A later definition may have replaced it.
    """
    return resolution == RESOLUTION_WON or resolution == RESOLUTION_REPLACED


# One row of .nv.callgraph or .nv.prototype. Calls (BLOCK_DIRECT, _INDIRECT, _CANDIDATE) come only
# from a function's definition that had won when its file was read, other rows from any.
cdef packed struct CallRow:
    EntityRef caller            # EntityRow; BLOCK_TAKEN, _PROTOTYPE: the function
    uint32_t callee             # EntityRow; BLOCK_TAKEN, _INDIRECT, _PROTOTYPE: row of prototypes
    int32_t block               # CallBlock
    uint32_t of_linked_copy     # 1: from the linked definition. At first the definition's SymbolRow

# A contradiction between two symbols of one name: definitions, or mentions. For the kinds COMMON
# and FUNCTION_AS_VARIABLE, `symbol` and `first` are the same symbol.
cdef packed struct ClashRow:
    uint32_t kind               # Clash
    SymbolNumber symbol         # SymbolRow of the later one
    SymbolNumber first          # SymbolRow of the earlier one

# Bits of OutRow.marks.
cdef enum OutFlag:
    OF_NO_SYMBOL = 1            # never has a section symbol
    OF_EMPTY_STAYS = 4          # a relocation section that the output has even without entries
    OF_OWN_BYTES = 8            # mercury: some input has other bytes there than in its plain form
    OF_STAYS = 16               # shared memory: the section is part of the output
    OF_LATE = 32                # .symtab_shndx: only the final file needs it

# One section of the output, in creation order. Mercury forms (twins) have no creation number.
cdef packed struct OutRow:
    uint32_t name               # offset in .shstrtab
    uint32_t symbol_name        # offset in .strtab of the name of its section symbol
    uint16_t kind               # number in facts/sectionkinds.py
    uint16_t bank               # bank of a section of constants, else 0
    uint32_t type               # sh_type
    uint64_t flags              # sh_flags
    uint64_t size               # bytes so far
    uint32_t align              # sh_addralign
    uint32_t entsize            # sh_entsize
    EntityNumber entity         # function of a per-function section, or -1
    OutNumber target            # relocations: the section they patch, or -1
    OutNumber rel               # its .rel section, or -1
    OutNumber rela              # its .rela section, or -1
    OutNumber merc              # its mercury form, or -1
    OutNumber twin              # a mercury section: its plain section, or -1
    OutNumber next              # the section of `entity` created before it, or -1
    EmittedNumber head          # relocations: the entry added last, or -1
    uint32_t count              # relocations: number of entries
    uint32_t rela_count         # RELA entries so far: one after the first may also create the .rel
    uint32_t marks              # OutFlag bits
    SectionNumber source        # an input section that it was created for, or -1
    OutNumber text              # the code of its function, or -1
    uint32_t created            # number among all sections created, 1 for the first; 0: a twin


cdef inline void start_out_row(OutRow* row, uint16_t kind, uint32_t type, uint64_t flags,
                               uint32_t align, uint32_t entsize) noexcept nogil:
    """Fill a new row with these header fields, size 0, and -1 in columns that name other rows."""
    memset(row, 0, sizeof(OutRow))
    row.kind = kind
    row.type = type
    row.flags = flags
    row.align = align
    row.entsize = entsize
    row.entity = row.target = row.rel = row.rela = row.merc = row.twin = -1
    row.next = row.head = row.source = row.text = -1


# The part of the output's symbol table in which a symbol stands.
cdef enum Part:
    PART_LOCAL = 0
    PART_GLOBAL = 1
    PART_TAIL = 2               # sm_100 and later, at the end: section symbols of .nv.constant0.K

# One symbol of the output, in creation order.
cdef packed struct OutSymbolRow:
    uint32_t name               # offset in .strtab
    EntityNumber entity         # EntityRow; -1 for a section symbol and for an instance
    OutNumber section           # of a section symbol: its OutRow; else -1
    EntityNumber instance       # symbol of a kernel's extern arrays (-r): the kernel; else -1
    uint32_t part               # Part
    uint32_t dropped            # 1: .strtab has its name, but .symtab not the symbol

# A relocation that the output has. Entries of one section form a list, newest first.
cdef packed struct EmittedRow:
    uint64_t offset             # of the field in the section that is patched
    int64_t addend
    uint32_t type               # R_CUDA_ or R_MERCURY_ number
    EntityNumber entity         # EntityRow of the symbol, or -1
    OutNumber section           # section symbol: its OutRow; instance of kernel K: -2 - K; or -1
    EmittedNumber next          # the entry added before it, or -1

# A relocation that the link resolves.
cdef packed struct FixupRow:
    uint64_t offset             # of the field in the section that is patched
    int64_t addend
    uint32_t type               # R_CUDA_ or R_MERCURY_ number
    OutNumber out               # OutRow of the section that is patched
    EntityNumber entity         # EntityRow of the symbol, or -1
    SectionNumber section       # of a section symbol: its SectionRow; else -1
    EntityNumber function       # EntityRow of the function whose code has the field, or -1
    uint32_t how                # FixupFlag bits
    OutNumber listed_in         # --preserve-relocs: relocation section that records it, or -1

# Kinds of the symbol that a RebuildRow names.
cdef enum RebuildOutcome:
    OUTCOME_LIVE = 0            # a function of the output
    OUTCOME_DEAD = 1            # a function that was removed
    OUTCOME_LOST = 2            # a definition that lost, or was replaced and has relocations
    OUTCOME_SECTION = 3         # a section symbol
    OUTCOME_OTHER = 4           # any other entity

# A relocation of a debug section that the link computes again, from sm_100 on.
cdef packed struct RebuildRow:
    uint64_t offset             # of the field in `piece`
    int64_t addend
    OutNumber out               # OutRow of the debug section
    SectionNumber piece         # SectionRow of the input's debug section
    uint32_t type               # R_CUDA_ number
    uint32_t outcome            # RebuildOutcome
    EntityNumber entity         # EntityRow of the symbol, or -1
    SectionNumber section       # of a section symbol: its SectionRow; else -1

# Resources of one function, from the call graph; rows of other entities are empty.
cdef packed struct FunctionRow:
    uint32_t regcount           # of a kernel without `keeps`: the largest of functions reached
    uint32_t stack              # bytes of the deepest path; NO_STACK_BOUND with recursion
    EntityNumber raised_by      # function whose register count it took over or passes on, or -1
    SectionNumber info          # .nv.info.F of the linked definition, or -1
    SectionNumber merc_info     # .nv.merc.nv.info.F of the linked definition, or -1
    uint32_t recursive_calls    # of a kernel: callees without a bound on their stack
    uint32_t keeps              # of a kernel: KeepsFlag bits, which say what it does not take over
    uint32_t barriers           # of a kernel: most barriers of functions reached; only by CUDA 12.9

# Bytes that the link makes for one output section: a range of a Blob.
cdef packed struct SpanRow:
    OutNumber out               # OutRow
    uint64_t offset             # in the blob
    uint64_t size               # bytes

# The place of one section in the output file.
cdef packed struct PlaceRow:
    uint64_t offset             # sh_offset
    uint64_t size               # sh_size
    uint32_t name               # offset in .shstrtab
    uint32_t contents           # ContentsFrom

# A relocation with its value, for the loop that patches.
cdef packed struct PatchRow:
    uint64_t offset             # in the image
    uint64_t value              # S + A; with `implicit`, S: the field holds A
    uint32_t type               # R_CUDA_ number; for a mercury type that of its plain one
    uint16_t bank               # of the section that has the symbol, or 0
    uint16_t implicit           # 1: the entry is a Rel


cdef inline bint is_instance(const EntityRow* entity) noexcept nogil:
    """Return whether an entity is an instance, which an earlier -r link made for extern arrays.

    An instance stands for all extern arrays of one kernel. The output may have its name.
    """
    return entity.kind == E_SHARED and entity.flags & (EF_UNSIZED | EF_WEAK) == EF_UNSIZED | EF_WEAK


cdef inline bint is_missing(const EntityRow* entity, const SymbolRow* symbol) noexcept nogil:
    """Return whether an entity is an undefined variable, which -r leaves to a later link."""
    return (not entity.flags & (EF_DEFINED | EF_UNSIZED) and symbol.info & 15 == STT_CUDA_OBJECT
            and (entity.kind == E_GLOBAL or entity.kind == E_CONSTANT or entity.kind == E_SHARED))
