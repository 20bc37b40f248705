# Tables that own their rows; `tables.pyi` beside this says what each holds. Native modules cimport
# classes and functions from this, `results.pxd` and `recycling.pxd`. All else of the project that
# they cimport is inline functions, structs, constants and C functions.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from base.vector cimport Vec
from tables.poolrows cimport PoolRow
from tables.rows cimport (
    CallRow, ClashRow, EmittedRow, EntityRow, FaultRow, FileRow, FixupRow, FunctionRow, OutRow,
    OutSymbolRow, PatchRow, PlaceRow, RebuildRow, SectionRow, SpanRow, SymbolRow,
)
from tables.sharedrows cimport ExternUseRow, KernelRow, UseRow, VariableRow


# Return memory for the rows of a table: that of a Vec, which is empty afterwards, or `size` new
# bytes, uninitialized. The result is bytes or, if it is large, Pages (a block of its own).
cdef object detach_rows(Vec* rows)
cdef object new_rows(size_t size)


cdef class Table:
    cdef object owner               # of the memory: bytes or Pages
    cdef const uint8_t* start       # the rows
    cdef size_t count               # number of rows
    cdef size_t size                # bytes of a row
    # Names and codes of the columns, "name:code name:code ...", or the code of plain numbers. A
    # code is a letter of Python's struct.
    cdef const char* format
    # Return a copy that may be changed until a result gets it.
    cdef Table copy(self)

    # Return a result's table to change: itself, or a copy if anything else owns it, too.
    @staticmethod
    cdef Table writable(PyObject* table)
    # Finish a new table: set its `size` and `format`, and return its rows.
    cdef const void* hold(self, size_t size, const char* format) except? NULL

cdef class Files(Table):
    cdef const FileRow* rows          # input files

cdef class Sections(Table):
    cdef const SectionRow* rows       # sections of all inputs

cdef class Symbols(Table):
    cdef const SymbolRow* rows        # symbols of all inputs

cdef class Faults(Table):
    cdef const FaultRow* rows         # why an input was refused

cdef class Entities(Table):
    cdef const EntityRow* rows        # distinct symbols of the link

cdef class Calls(Table):
    cdef const CallRow* rows          # rows of the call graph

cdef class Clashes(Table):
    cdef const ClashRow* rows         # contradictions between symbols of one name

cdef class Functions(Table):
    cdef const FunctionRow* rows      # registers and stack by entity

cdef class LiteralPools(Table):
    cdef const PoolRow* rows          # pieces of literal pools

cdef class Outs(Table):
    cdef const OutRow* rows           # sections of the output

cdef class OutSymbols(Table):
    cdef const OutSymbolRow* rows     # symbols of the output

cdef class Emitted(Table):
    cdef const EmittedRow* rows       # relocations in the output

cdef class Fixups(Table):
    cdef const FixupRow* rows         # relocations that the link resolves

cdef class Rebuilds(Table):
    cdef const RebuildRow* rows       # relocations of rebuilt debug sections

cdef class Spans(Table):
    cdef const SpanRow* rows          # ranges of a blob with the contents of sections

cdef class FilePlaces(Table):
    cdef const PlaceRow* rows         # offset and size of each section in the file

cdef class Patches(Table):
    cdef const PatchRow* rows         # fields of the image with their values

cdef class SharedVariables(Table):
    cdef const VariableRow* rows      # shared variables

cdef class SharedUses(Table):
    cdef const UseRow* rows           # which kernel uses which variable

cdef class ExternUses(Table):
    cdef const ExternUseRow* rows     # kernels that use extern arrays

cdef class SharedSizes(Table):
    cdef const KernelRow* rows        # shared memory of each kernel

cdef class Numbers(Table):
    cdef const int32_t* rows          # numbers of rows, or -1

cdef class Indices(Table):
    cdef const uint32_t* rows         # indices or offsets in the output, or 0

cdef class Values(Table):
    cdef const uint64_t* rows         # addresses, sizes, offsets

cdef class Offsets(Table):
    cdef const int64_t* rows          # offsets, or -1

cdef class Marks(Table):
    cdef const uint8_t* rows          # 0 or 1, or a Resolution

cdef class Blob(Table):
    cdef const uint8_t* rows          # bytes of the output
