# The tables that pass from phase to phase: one packed row each, the row number is the only
# reference, and -1 means no row. `pylink.rows` has the columns for Python.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from base.elf64 cimport STT_CUDA_OBJECT
from rownumbers cimport (
    EF_DEFINED, EF_KERNEL, EF_UNSELECTED, EF_UNSIZED, EF_WEAK, E_CONSTANT, E_GLOBAL, E_SHARED,
    RESOLUTION_LOST, RESOLUTION_LOST_EARLY, RESOLUTION_REPLACED, RESOLUTION_WON,
)

# One input file. Offsets are into the arena, the single buffer that holds all input bytes.
cdef packed struct FileRow:
    uint64_t offset
    uint64_t size
    uint32_t first_section
    uint32_t section_count
    uint32_t first_symbol
    uint32_t symbol_count
    uint32_t mercury_symbols    # leading symbols that .nv.merc.symtab repeats
    uint32_t toolkit            # newest number that header and note name, 0 for none
    uint16_t patch              # patch level of the tool of that toolkit, 0 where unknown
    uint16_t sm                 # SM number of the code
    uint16_t ptx_sm             # SM number of the PTX it was compiled from, or UNKNOWN_SM
    uint8_t format              # row of FORMAT
    uint8_t flags               # FileFlag bits
    uint64_t strtab             # arena offset of the string table of .symtab
    uint64_t strtab_size
    uint64_t merc_symtab        # arena offset, 0 without such a table
    uint32_t first_note         # first section with a note, attribute or call record
    uint32_t note_end           # after the last one
    uint32_t first_code         # first section with code
    uint32_t code_end           # after the last one

cdef enum:
    UNKNOWN_SM = 0xffff

cdef inline uint16_t virtual_sm(const FileRow* file) noexcept nogil:
    """The SM number of the PTX that a file was made from, 0 where unknown."""
    return file.ptx_sm if file.ptx_sm != UNKNOWN_SM else 0

# One input section. `target` is what sh_info names, or -1: of code and of a capsule the symbol of
# the function; of others (relocations, .nv.info.F ...) a section.
cdef packed struct SectionRow:
    uint64_t name               # arena offset of a NUL-terminated name
    uint64_t offset             # arena offset of its bytes; 0 without bytes
    uint64_t size
    uint64_t flags
    uint32_t name_size
    uint32_t type
    uint32_t link
    uint32_t info
    uint32_t align
    uint32_t entsize
    uint32_t file
    int32_t target
    uint16_t kind
    uint16_t bank               # bank of a section of constants

# One input symbol. `section` is a SectionRow, or -1 for undefined, absolute and common.
cdef packed struct SymbolRow:
    uint64_t name               # arena offset of a NUL-terminated name
    uint64_t value
    uint64_t size
    uint64_t merc_size          # st_size in .nv.merc.symtab: that of the mercury form
    uint32_t name_size
    uint32_t file
    int32_t section
    uint16_t shndx
    uint8_t info
    uint8_t other

# The reason for refusing an input, with the index of the section and of the entry in it.
cdef packed struct FaultRow:
    int32_t file
    int32_t section
    int64_t index
    int32_t reason
    uint64_t value
    uint64_t limit

# One distinct symbol of the link, in creation order: file by file, functions first.
cdef packed struct EntityRow:
    int32_t first               # symbol row of its first mention
    int32_t winner              # symbol row of the definition that counts, or `first`
    uint32_t kind
    uint32_t flags
    uint64_t size               # common: the largest
    uint64_t align              # common and shared
    uint32_t regcount           # functions
    uint32_t frame              # bytes of stack frame

# Bytes of an executable before the variables of .nv.shared.reserved.0.
cdef enum:
    SYSTEM_RESERVE = 0x40

cdef inline bint is_root(const EntityRow* e) noexcept nogil:
    """Whether it is a kernel, and not one that lives because other code launches it."""
    return e.flags & EF_KERNEL and not e.flags & EF_UNSELECTED

cdef inline bint has_lost(uint8_t resolution) noexcept nogil:
    """Whether a definition did nothing: another definition was current and stayed current."""
    return resolution == RESOLUTION_LOST or resolution == RESOLUTION_LOST_EARLY


cdef inline bint was_current(uint8_t resolution) noexcept nogil:
    """Whether a definition was the current one when its file was read: sections come of it."""
    return resolution == RESOLUTION_WON or resolution == RESOLUTION_REPLACED


# One row of .nv.callgraph or .nv.prototype, of a function copy that was current when its file
# was merged (address-taken rows: of any copy).
cdef packed struct CallRow:
    uint32_t caller             # entity
    uint32_t callee             # entity; BLOCK_TAKEN, _INDIRECT, _PROTOTYPE: number of a string
    int32_t block               # Block
    uint32_t won                # whether the copy that stays has the row; first the copy's symbol

cdef packed struct ClashRow:
    uint32_t kind               # Clash
    int32_t symbol              # symbol row of the later one
    int32_t first               # symbol row of the earlier one

cdef enum OutFlag:
    OF_NO_SYMBOL = 1            # never has a section symbol
    OF_EMPTY_STAYS = 4          # a relocation section that stays though it has no entry left
    OF_OWN_BYTES = 8            # mercury: some input has other bytes there than its plain twin
    OF_STAYS = 16               # shared memory: the section is part of the output
    OF_LATE = 32                # .symtab_shndx: only the mercury file needs it

# One section of the output, in creation order. Mercury twins follow their plain section by
# `merc`; they have no creation number of their own.
cdef packed struct OutRow:
    uint32_t name               # offset in .shstrtab
    uint32_t symbol_name        # offset in .strtab
    uint16_t kind
    uint16_t bank
    uint32_t type
    uint64_t flags
    uint64_t size
    uint32_t align
    uint32_t entsize
    int32_t entity              # function of a per-function section
    int32_t target              # relocations: the section they patch
    int32_t rel                 # OutRow of its .rel section, or -1
    int32_t rela                # OutRow of its .rela section, or -1
    int32_t merc                # OutRow of its mercury twin, or -1
    int32_t twin                # a mercury section: its plain section
    int32_t next                # next section of the same entity
    int32_t head                # relocations: the last entry added, see EmittedRow
    uint32_t count              # relocations: entries
    uint32_t counted            # relocations: entries seen by the rule of two forms
    uint32_t marks              # OutFlag bits
    int32_t source              # an input section that it was created for
    int32_t text                # the .text row of its function, or -1
    uint32_t created            # number among all sections created, 1 for the first


cdef inline void start_out(OutRow* row, uint16_t kind, uint32_t type, uint64_t flags,
                           uint32_t align, uint32_t entsize) noexcept nogil:
    """Fill a new row: no name, no size, no other row."""
    memset(row, 0, sizeof(OutRow))
    row.kind = kind
    row.type = type
    row.flags = flags
    row.align = align
    row.entsize = entsize
    row.entity = row.target = row.rel = row.rela = row.merc = row.twin = -1
    row.next = row.head = row.source = row.text = -1


# One symbol of the output, in creation order.
cdef enum Part:
    PART_LOCAL = 0
    PART_GLOBAL = 1
    PART_TAIL = 2               # family C: section symbols of .nv.constant0.F

cdef packed struct OutSymbolRow:
    uint32_t name               # offset in .strtab
    int32_t entity              # or -1
    int32_t section             # section symbol: the OutRow
    int32_t instance            # externsharedinstance: entity of its kernel, or -1
    uint32_t part
    uint32_t dropped            # name stays, symbol goes

# A relocation that stays. Entries of one section form a list, newest first.
cdef packed struct EmittedRow:
    uint64_t offset
    int64_t addend
    uint32_t type
    int32_t entity              # symbol, or -1
    int32_t section             # section symbol: the OutRow; -2 - kernel: its instance; or -1
    int32_t next

# A relocation that the link resolves.
cdef packed struct FixupRow:
    uint64_t offset             # in the output section
    int64_t addend
    uint32_t type
    int32_t out                 # section to patch
    int32_t entity              # symbol, or -1
    int32_t section             # section symbol: the input section, or -1
    int32_t function            # entity of the code that holds it, or -1
    uint32_t how                # FixupFlag bits
    int32_t reloc               # OutRow of the relocation section it came through

# A relocation of a debug section that family C rebuilds.
cdef enum RebuildOutcome:
    OUTCOME_LIVE = 0            # a function that stays
    OUTCOME_DEAD = 1            # a function that was removed
    OUTCOME_LOST = 2            # a copy that lost, or was replaced and has relocations
    OUTCOME_SECTION = 3         # a section symbol
    OUTCOME_OTHER = 4

cdef packed struct RebuildRow:
    uint64_t offset             # in the piece
    int64_t addend
    int32_t out                 # the debug section
    int32_t piece               # input section
    uint32_t type
    uint32_t outcome
    int32_t entity              # or -1
    int32_t section             # input section of a section symbol, or -1

# Resources of one function, from the call graph; rows of other entities are empty.
cdef packed struct FunctionRow:
    uint32_t regcount           # kernels: the largest of all functions reached
    uint32_t stack              # bytes of the deepest path; NO_STACK_BOUND with recursion
    int32_t raised_by           # entity whose register count a kernel took, or -1
    int32_t info                # input section: .nv.info.F of the copy that won, or -1
    int32_t merc_info           # input section: .nv.merc.nv.info.F, or -1
    uint32_t recursive_calls    # kernels: callees without a bound on their stack
    uint32_t keeps              # kernels: KeepsFlag bits
    uint32_t barriers           # kernels: largest barrier count in sh_flags of functions reached

# Bytes made by the link for one output section: a part of a blob.
cdef packed struct SpanRow:
    int32_t out
    uint64_t offset
    uint64_t size

# The place of one section in the output file.
cdef packed struct PlaceRow:
    uint64_t offset
    uint64_t size
    uint32_t name               # offset in .shstrtab
    uint32_t contents           # ContentsFrom

# A relocation with its value, for the loop that patches.
cdef packed struct PatchRow:
    uint64_t offset             # in the image
    uint64_t value              # S + A; with `implicit`, S: the field holds A
    uint32_t type
    uint16_t bank
    uint16_t implicit


cdef inline bint is_instance(const EntityRow* e) noexcept nogil:
    """An instance of an extern array, made by an earlier -r link; the output may keep its name."""
    return e.kind == E_SHARED and e.flags & (EF_UNSIZED | EF_WEAK) == EF_UNSIZED | EF_WEAK


cdef inline bint is_missing(const EntityRow* e, const SymbolRow* s) noexcept nogil:
    """A variable that this link (-r) leaves to a later one: it has no place, and no value yet."""
    return (not e.flags & (EF_DEFINED | EF_UNSIZED) and s.info & 15 == STT_CUDA_OBJECT
            and (e.kind == E_GLOBAL or e.kind == E_CONSTANT or e.kind == E_SHARED))
