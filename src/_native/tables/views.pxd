# Views of results for native functions: pointers to the rows of their tables.
#
# A result fills its view (`results.pyx`). The view is good for one call of a native function: the
# result owns the tables, and a later table may take over the rows of an old one. A column without
# its own count has one element for each row of the table in its comment. What no phase has filled
# yet has no rows. `results.pyi` says what the columns are.

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from tables.poolrows cimport PoolRow
from tables.rows cimport (
    CallRow, EmittedRow, EntityRow, FileRow, FixupRow, FunctionRow, OutRow, OutSymbolRow, PlaceRow,
    RebuildRow, SectionRow, SymbolRow,
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
    uint32_t family
    uint32_t mode
    uint32_t traits
    bint executable


# The contents of the output.
ctypedef struct MergedView:
    const EntityRow* entities
    size_t entity_count
    # By input symbol.
    const int32_t* symbol_entity
    const uint8_t* symbol_resolution
    const int32_t* met
    size_t met_count
    # By input section.
    const int32_t* section_function
    const uint8_t* section_resolution
    const CallRow* calls
    size_t call_count
    const uint64_t* prototypes
    size_t prototype_count
    # By entity.
    const FunctionRow* functions
    const PoolRow* pools
    size_t pool_count
    # By input section; NULL if nothing was folded.
    const int32_t* stand_ins
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
    # By input section.
    const int32_t* out_of
    const uint64_t* base
    const uint8_t* shstrtab
    size_t shstrtab_size
    const uint8_t* strtab
    size_t strtab_size
    # By prototype.
    const uint32_t* prototype_offsets
    # By entity.
    const uint8_t* referenced
    const uint64_t* array_align


# Uses of shared variables, and the resulting places.
ctypedef struct SharedView:
    const VariableRow* variables
    size_t variable_count
    const UseRow* uses
    size_t use_count
    const ExternUseRow* extern_uses
    size_t extern_use_count
    # By variable.
    const int32_t* variable_entities
    # By kernel.
    const int32_t* kernel_entities
    size_t kernel_count
    # By variable.
    const int64_t* offsets
    # By kernel, and one more row.
    const KernelRow* kernels
    const int64_t* ties
    size_t tie_count


# Places of sections and values of symbols.
ctypedef struct PlacedView:
    const OutRow* outs
    size_t out_count
    # By entity.
    const uint64_t* values
    const uint64_t* symbol_values
    const uint64_t* merc_values
    const int32_t* homes
    const uint64_t* dynamic
    const uint8_t* lost
    const uint32_t* symbol_index
    const uint32_t* instance_index
    # By section of the output.
    const PlaceRow* places
    const uint32_t* section_index
    const uint32_t* section_symbol_index
    # In the order of the file.
    const int32_t* section_order
    size_t section_order_count
    const int32_t* symbol_order
    size_t symbol_order_count
    const OutSymbolRow* out_symbols
    size_t out_symbol_count
    const uint8_t* shstrtab
    size_t shstrtab_size
    const uint8_t* strtab
    size_t strtab_size
    uint64_t table_offset       # of the section headers in the file
    uint64_t null_value         # st_value of the null symbol
