# Results of phases, which own their tables; `results.pyi` beside this says what each column holds.

from libc.stdint cimport uint32_t, uint64_t

from pylink._native.tables cimport (
    Blob, Calls, Emitted, Entities, ExternUses, FilePlaces, Files, Fixups, Functions, Indices,
    LiteralPools, Marks, Numbers, Offsets, OutSymbols, Outs, Rebuilds, Sections, SharedSizes,
    SharedUses, SharedVariables, Symbols, Values,
)
from tables.views cimport MergedView, ObjectsView, PlacedView, SharedView


# The tables that a phase makes. No column can be set after `seal`.
cdef class Result:
    cdef bint sealed
    # Raise AttributeError if the result is sealed; native functions call this before they fill it.
    cdef int fill(self) except -1

# The inputs, and the options that native functions need. `view` sets pointers to the tables' rows.
cdef class ObjectTables(Result):
    cdef public bytes arena
    cdef public Files files
    cdef public Sections sections
    cdef public Symbols symbols
    cdef readonly uint32_t family
    cdef readonly uint32_t mode
    cdef readonly uint32_t traits
    cdef readonly bint executable
    cdef void view(self, ObjectsView* view) noexcept

# The sections, symbols and relocations of the output. `view` sets pointers to the tables' rows.
cdef class MergedTables(Result):
    cdef public ObjectTables objects
    cdef public Entities entities
    cdef public Numbers symbol_entity
    cdef public Marks symbol_resolution
    cdef public Numbers met
    cdef public Numbers section_function
    cdef public Marks section_resolution
    cdef public Calls calls
    cdef public Values prototypes
    cdef public Functions functions
    cdef public LiteralPools pools
    cdef public Numbers stand_ins
    cdef public Outs outs
    cdef public OutSymbols out_symbols
    cdef public Emitted emitted
    cdef public Fixups fixups
    cdef public Rebuilds rebuilds
    cdef public Numbers out_of
    cdef public Values base
    cdef public Blob shstrtab
    cdef public Blob strtab
    cdef public Indices prototype_offsets
    cdef public Marks referenced
    cdef public Values array_align
    cdef void view(self, MergedView* view) noexcept

# Shared variables, their users and their layout. `view` sets pointers to the tables' rows.
cdef class SharedTables(Result):
    cdef public SharedVariables variables
    cdef public SharedUses uses
    cdef public ExternUses extern_uses
    cdef public Numbers variable_entities
    cdef public Numbers kernel_entities
    cdef readonly Py_ssize_t kernel_count
    cdef readonly Py_ssize_t tie_count
    cdef public Offsets offsets
    cdef public SharedSizes kernels
    cdef public Offsets ties
    cdef void view(self, SharedView* view) noexcept

# The layout of the output. `view` sets pointers to the tables' rows.
cdef class PlacedTables(Result):
    cdef readonly MergedTables merged
    cdef public Outs outs
    cdef public Values values
    cdef public Values symbol_values
    cdef public Values merc_values
    cdef public Numbers homes
    cdef public Values dynamic
    cdef public Marks lost
    cdef public Indices symbol_index
    cdef public Indices instance_index
    cdef public FilePlaces places
    cdef public Indices section_index
    cdef public Indices section_symbol_index
    cdef public Numbers section_order
    cdef public Numbers symbol_order
    cdef public OutSymbols out_symbols
    cdef public bytes phdrs
    cdef public Blob shstrtab
    cdef public Blob strtab
    cdef public list blobs
    cdef public list spans
    cdef public uint64_t size
    cdef public uint64_t table_offset
    cdef public uint64_t null_value
    cdef void view(self, PlacedView* view) noexcept
