# The tables that pass from phase to phase: one packed row each, the row number is the only
# reference, "none" is -1. `pylink.tables` names the same columns for Python.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

# What a section is. The names behind the numbers are in pylink/sections/rules.py.
cdef enum Kind:
    K_OTHER = 0
    K_NULL = 1
    K_SHSTRTAB = 2
    K_STRTAB = 3
    K_SYMTAB = 4
    K_SYMTAB_SHNDX = 5
    K_DEBUG = 6             # .debug_*, .nv_debug_*: concatenated or rebuilt
    K_TKINFO = 7
    K_CUINFO = 8
    K_INFO = 9              # .nv.info
    K_COMPAT = 10
    K_INFO_FUNC = 11        # .nv.info.F
    K_CALLGRAPH = 12
    K_PROTOTYPE = 13
    K_REL_ACTION = 14
    K_RELOC = 15            # .rel.S and .rela.S
    K_RESOLVED_RELA = 16
    K_CONSTANT = 17         # .nv.constantN, file scope
    K_CONSTANT_FUNC = 18    # .nv.constantN.F, N > 0
    K_CONSTANT0 = 19        # .nv.constant0.F
    K_TEXT = 20
    K_GLOBAL_INIT = 21
    K_GLOBAL = 22
    K_SHARED = 23           # .nv.shared.F
    K_DEBUG_SHARED = 24     # .nv_debug.shared
    K_LOCAL = 25
    K_CAPMERC = 26
    K_MERC_DEBUG = 27
    K_MERC_INFO = 28
    K_MERC_INFO_FUNC = 29
    K_MERC_RELA = 30
    K_MERC_CONSTANT = 31    # .nv.merc.nv.constant.user
    K_MERC_GLOBAL_INIT = 32
    K_MERC_SYMTAB = 33

# One input file. Offsets are into the arena, the single buffer that holds all input bytes.
cdef packed struct FileRow:
    uint64_t offset
    uint64_t size
    uint32_t first_section
    uint32_t section_count
    uint32_t first_symbol
    uint32_t symbol_count
    uint32_t mercury_symbols    # leading symbols that .nv.merc.symtab repeats
    uint32_t e_flags
    uint64_t strtab             # arena offset of the string table of .symtab
    uint64_t strtab_size
    uint64_t merc_symtab        # arena offset, 0 when there is none

# One input section; `target` is the section that sh_info names (relocations, .nv.info.F ...).
cdef packed struct SectionRow:
    uint64_t name               # arena offset of a NUL-terminated name
    uint64_t offset             # arena offset of its bytes; 0 when it has none
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
    uint16_t bank               # constant bank of K_CONSTANT*

# One input symbol. `section` is a SectionRow number, or -1 for undefined, absolute and common.
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

# One rule of pylink/sections/rules.py: a section whose name is, or begins with, `text`.
cdef packed struct RuleRow:
    uint16_t kind
    uint8_t size
    uint8_t exact
    uint8_t text[28]

# Why an input was refused. `section` is the index in the file, `index` the entry in the section.
cdef packed struct FaultRow:
    int32_t file
    int32_t section
    int64_t index
    int32_t reason
    int32_t spare
    uint64_t value
    uint64_t limit
