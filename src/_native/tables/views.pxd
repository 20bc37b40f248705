# Views of results for native functions: pointers to the rows of their tables.
#
# A result fills its view (`results.pyx`). The view is valid during one call of a native function:
# the result owns the tables, and a later table may take over the rows of an old one. A column
# without its own count has one element for each row of the table in its comment; tests check that
# only numbers of such rows index it. Tables that no phase has filled yet have no rows.
# `results.pyi` says what the columns contain.

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from tables.poolrows cimport PoolRow
from tables.rows cimport (
    CallRow, EmittedRow, EntityNumber, EntityRow, FileRow, FixupRow, FunctionRow, OutNumber, OutRow,
    OutSymbolNumber, OutSymbolRow, PlaceRow, RebuildRow, SectionNumber, SectionRow, SymbolNumber,
    SymbolRow,
)
from tables.sharedrows cimport ExternUseRow, KernelRow, UseRow, VariableRow


# The inputs, and the options that native functions need.
ctypedef struct ObjectsView:
    const uint8_t* arena
    size_t arena_size
    const FileRow* files
    size_t file_count
    const SectionRow* sections
    size_t section_count
    const SymbolRow* symbols
    size_t symbol_count
    uint32_t family             # FAMILY_A (up to sm_89), FAMILY_B (sm_90) or FAMILY_C (sm_100 on)
    uint32_t mode               # LinkMode bits
    uint32_t traits             # TRAIT_ bits of the family and of the release that is followed
    bint executable             # False with -r


# The contents of the output, and what becomes of the symbols and sections of the inputs.
ctypedef struct MergedView:
    const EntityRow* entities
    size_t entity_count
    const EntityNumber* symbol_entity       # by input symbol: its entity, or -1
    const uint8_t* symbol_resolution        # by input symbol: Resolution of its definition
    const SymbolNumber* met                 # symbols with an entity, in the order they are met
    size_t met_count
    const EntityNumber* section_function    # by input section: function it belongs to, or -1
    const uint8_t* section_resolution       # by input section: Resolution of its function there
    const CallRow* calls
    size_t call_count
    const uint64_t* prototypes              # arena offset of each prototype string
    size_t prototype_count
    const FunctionRow* functions            # by entity
    const PoolRow* pools
    size_t pool_count
    const SectionNumber* stand_ins          # by input section: its replacement; NULL: none
    const OutRow* outs
    size_t out_count
    const OutSymbolRow* out_symbols
    size_t out_symbol_count
    const EmittedRow* emitted
    size_t emitted_count
    const FixupRow* fixups
    size_t fixup_count
    const RebuildRow* rebuilds
    size_t rebuild_count
    const OutNumber* out_of                 # by input section: its output section, or -1
    const uint64_t* base                    # by input section: offset in its output section
    const uint8_t* shstrtab
    size_t shstrtab_size
    const uint8_t* strtab
    size_t strtab_size
    const uint32_t* prototype_offsets       # by prototype: offset of its string in .strtab
    const uint8_t* referenced               # by entity: 1 if any code refers to it
    const uint64_t* array_align             # by entity, with -r: alignment of its extern arrays


# Uses of shared variables, and the resulting places.
ctypedef struct SharedView:
    const VariableRow* variables
    size_t variable_count
    const UseRow* uses
    size_t use_count
    const ExternUseRow* extern_uses
    size_t extern_use_count
    const EntityNumber* variable_entities   # by variable: its entity
    const EntityNumber* kernel_entities     # by kernel: its entity
    size_t kernel_count
    const int64_t* offsets                  # by variable: its address, or -1
    const KernelRow* kernels                # by kernel; the last row: .nv_debug.shared
    const int64_t* ties                     # by entity: address of its extern arrays, or -1
    size_t tie_count


# Places of sections and values of symbols.
ctypedef struct PlacedView:
    const OutRow* outs
    size_t out_count
    const uint64_t* values                  # by entity: S in relocations
    const uint64_t* symbol_values           # by entity: st_value in .symtab
    const uint64_t* merc_values             # by entity: st_value in .nv.merc.symtab
    const OutNumber* homes                  # by entity: section in which it lies, or -1
    const uint64_t* dynamic                 # by entity: address of a function's extern arrays
    const uint8_t* lost                     # by entity: 1: a shared variable without a place
    const uint32_t* symbol_index            # by entity: index in .symtab, or 0
    const uint32_t* instance_index          # by entity: that of a kernel's instance, or 0
    const PlaceRow* places                  # by OutRow: offset and size in the file
    const uint32_t* section_index           # by OutRow: index of its header, or 0
    const uint32_t* section_symbol_index    # by OutRow: index of its symbol in .symtab, or 0
    const OutNumber* section_order          # OutRows in the order of the file
    size_t section_order_count
    const OutSymbolNumber* symbol_order     # OutSymbolRows in the order of the file
    size_t symbol_order_count
    const OutSymbolRow* out_symbols
    size_t out_symbol_count
    const uint8_t* shstrtab
    size_t shstrtab_size
    const uint8_t* strtab
    size_t strtab_size
    uint64_t table_offset                   # of the section headers in the file
    uint64_t null_value                     # st_value of the null symbol
