# Tables that own their rows; `tables.pyi` beside this says what each holds. Kernels cimport these
# types and those of `results.pxd`; everything else that they cimport is inline functions and
# structs.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from base.vector cimport Vec
from tables.poolrows cimport PoolRow
from tables.rows cimport (
    CallRow, ClashRow, EmittedRow, EntityRow, FaultRow, FileRow, FixupRow, FunctionRow, OutRow,
    OutSymbolRow, PatchRow, PlaceRow, RebuildRow, SectionRow, SpanRow, SymbolRow,
)
from tables.sharedrows cimport ExternUseRow, KernelRow, UseRow, VariableRow


# Memory for the rows of a table: bytes, or a block of its own if it is large.
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
    cdef const FileRow* rows

cdef class Sections(Table):
    cdef const SectionRow* rows

cdef class Symbols(Table):
    cdef const SymbolRow* rows

cdef class Faults(Table):
    cdef const FaultRow* rows

cdef class Entities(Table):
    cdef const EntityRow* rows

cdef class Calls(Table):
    cdef const CallRow* rows

cdef class Clashes(Table):
    cdef const ClashRow* rows

cdef class Functions(Table):
    cdef const FunctionRow* rows

cdef class LiteralPools(Table):
    cdef const PoolRow* rows

cdef class Outs(Table):
    cdef const OutRow* rows

cdef class OutSymbols(Table):
    cdef const OutSymbolRow* rows

cdef class Emitted(Table):
    cdef const EmittedRow* rows

cdef class Fixups(Table):
    cdef const FixupRow* rows

cdef class Rebuilds(Table):
    cdef const RebuildRow* rows

cdef class Spans(Table):
    cdef const SpanRow* rows

cdef class FilePlaces(Table):
    cdef const PlaceRow* rows

cdef class Patches(Table):
    cdef const PatchRow* rows

cdef class SharedVariables(Table):
    cdef const VariableRow* rows

cdef class SharedUses(Table):
    cdef const UseRow* rows

cdef class ExternUses(Table):
    cdef const ExternUseRow* rows

cdef class SharedSizes(Table):
    cdef const KernelRow* rows

cdef class Numbers(Table):
    cdef const int32_t* rows

cdef class Indices(Table):
    cdef const uint32_t* rows

cdef class Values(Table):
    cdef const uint64_t* rows

cdef class Offsets(Table):
    cdef const int64_t* rows

cdef class Marks(Table):
    cdef const uint8_t* rows

cdef class Blob(Table):
    cdef const uint8_t* rows
