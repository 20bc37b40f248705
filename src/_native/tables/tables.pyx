# cython: auto_pickle=False
"""Tables: packed C rows of one type, and the memory that they own.

The stub, tables.pyi, says what tables are. Here is how they work: the rows of a table are in
`bytes` or, if they are many, in a block of its own, `Pages`. A native function that fills rows
hands its block to the table without a copy (`detach_rows`). A table that Python can see never
changes. A function that needs a changed table makes a new one, which may take over the rows of the
old one if nothing else owns them (`Table.writable`).
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memchr, memcpy, memset

from base cimport blocks
from base.blocks cimport LARGE_BLOCK, MEDIUM_BLOCK, block_cut, block_free, block_widen, is_in_parts
from base.memory cimport check_memory
from base.vector cimport Vec, vec_free, vec_to_bytes
from columns cimport (
    CALL_ROW, CLASH_ROW, EMITTED_ROW, ENTITY_ROW, EXTERN_USE_ROW, FAULT_ROW, FILE_ROW, FIXUP_ROW,
    FUNCTION_ROW, KERNEL_ROW, OUT_ROW, OUT_SYMBOL_ROW, PATCH_ROW, PLACE_ROW, POOL_ROW, REBUILD_ROW,
    SECTION_ROW, SPAN_ROW, SYMBOL_ROW, USE_ROW, VARIABLE_ROW,
)
from tables.rows cimport (
    CallRow, ClashRow, EmittedRow, EntityRow, FaultRow, FileRow, FixupRow, FunctionRow, OutNumber,
    OutRow, OutSymbolRow, PatchRow, PlaceRow, RebuildRow, SectionRow, SpanRow, SymbolRow,
)

cdef extern from "Python.h":
    object PySeqIter_New(object sequence)
    Py_ssize_t Py_REFCNT(PyObject* object)

cdef enum:
    # Least bytes for which `new_rows` allocates a block (base/blocks.pxd), in a process that keeps
    # no pages of freed blocks. The system would provide new pages for each block, so smaller
    # tables are on the heap.
    LARGE_TABLE = 4 << 20

# By type of table: what `columns_of` returns for it, from the first call on.
cdef dict known_columns = {}


cdef dict columns_of(Table table):
    """Return (offset in the row, code) of each column of a table, by name.

    A code is a letter of Python's struct. The only column of a table of numbers has the name "".
    """
    cdef dict columns = known_columns.get(type(table))
    cdef size_t at = 0          # offset in the row
    if columns is None:
        columns = {}
        for part in (<bytes>table.format).decode().split():
            name, _, code = part.rpartition(":")
            columns[name] = (at, ord(code))
            at += size_of(ord(code))
        known_columns[type(table)] = columns
    return columns


cdef size_t size_of(int code):
    """Return the bytes of a number with a code of Python's struct."""
    return 8 if code in b"qQ" else 4 if code in b"iI" else 2 if code == c"H" else 1


cdef object value_at(const uint8_t* data, int code):
    """Return the number at `data`, an address of any alignment; `code` is as in Python's struct."""
    cdef uint64_t value = 0
    memcpy(&value, data, size_of(code))
    if code == c"i":
        return <int32_t>value
    if code == c"q":
        return <int64_t>value
    return value


cdef class Pages:
    """The memory of a table's rows: a block (base/blocks.pxd), which is freed with the table."""

    cdef uint8_t* start
    cdef size_t size            # bytes of the rows
    cdef size_t room            # bytes of the block

    def __dealloc__(self):
        if self.start != NULL:
            block_free(self.start, self.room)


cdef object detach_rows(Vec* rows):
    """Return the memory of a Vec (growing array), as bytes or Pages; it is empty afterwards."""
    cdef size_t size = rows.count * rows.row, room = rows.room * rows.row
    cdef Pages pages
    if rows.borrowed or size < MEDIUM_BLOCK:
        return vec_to_bytes(rows)
    if size < LARGE_BLOCK and room >= LARGE_BLOCK:
        if blocks.no_recycling:
            return vec_to_bytes(rows)
        # The Vec reserved a large page, and uses only a part: its rows move to a smaller block.
        pages = new_rows(size)
        memcpy(pages.start, rows.data, size)
        vec_free(rows)
        return pages
    pages = Pages()
    pages.start = rows.data
    pages.size = size
    pages.room = room
    if room >= LARGE_BLOCK:
        pages.room = size
        block_cut(rows.data, room, size)
    elif not is_in_parts(rows.data):
        # The unused memory of a block on the heap is freed, unless that fails.
        pages.start = <uint8_t*>realloc(rows.data, size)
        if pages.start == NULL:
            pages.start = rows.data
        else:
            pages.room = size
    rows.data = NULL
    rows.count = rows.room = 0
    return pages


cdef object new_rows(size_t size):
    """Return memory for `size` bytes of rows, uninitialized: bytes or Pages."""
    cdef Pages pages
    if size < (LARGE_TABLE if blocks.no_recycling else MEDIUM_BLOCK):
        return PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
    pages = Pages()
    pages.start = <uint8_t*>block_widen(NULL, 0, size)
    pages.size = pages.room = size
    check_memory(pages.start != NULL)
    return pages


cdef class Row:
    """One row of a table; its columns are attributes."""

    cdef Table table
    cdef size_t at              # offset in the table

    def __getattr__(self, str name):
        cdef tuple column = columns_of(self.table).get(name)
        if column is None:
            raise AttributeError(f"{type(self.table).__name__} have no column {name}")
        return value_at(self.table.start + self.at + <size_t>column[0], column[1])

    def __repr__(self):
        columns = ", ".join(f"{name}={getattr(self, name)}" for name in columns_of(self.table))
        return f"<{columns}>"


cdef class Table:
    """An immutable table of rows of one kind."""

    def __cinit__(self, data=b""):
        if type(data) is bytes:
            self.start = <const uint8_t*>PyBytes_AS_STRING(data)
            self.count = PyBytes_GET_SIZE(data)
        elif type(data) is Pages:
            self.start = (<Pages>data).start
            self.count = (<Pages>data).size
        else:
            raise TypeError(f"{type(self).__name__} are made of bytes")
        self.owner = data

    cdef const void* hold(self, size_t size, const char* format) except? NULL:
        """Finish a new table of rows of `size` bytes with the columns of `format`; return the rows.

        `format` is explained in tables.pxd.
        """
        if self.count % size:
            raise ValueError(f"{type(self).__name__} of {size} bytes a row end inside one")
        self.size = size
        self.count //= size
        self.format = format
        return self.start

    @property
    def data(self):
        if type(self.owner) is bytes:
            return self.owner
        return PyBytes_FromStringAndSize(<const char*>self.start, self.count * self.size)

    cdef Table copy(self):
        """Return a copy of the table, which the caller may change before a result gets it."""
        cdef Table copied = type(self)(new_rows(self.count * self.size))
        memcpy(<void*>copied.start, self.start, self.count * self.size)
        return copied

    @staticmethod
    cdef Table writable(PyObject* table):
        """Return a result's table, which the caller may change before the result gets it again.

        It is a copy if anything besides the result owns the table or its memory.
        """
        cdef Table original = <Table>table  # which is one more reference
        if Py_REFCNT(table) == 2 and Py_REFCNT(<PyObject*>original.owner) == 1:
            return original
        return original.copy()

    def __len__(self):
        return self.count

    def __getitem__(self, Py_ssize_t number):
        cdef Row row
        if not 0 <= number < <Py_ssize_t>self.count:
            raise IndexError(f"row {number} of {self.count} {type(self).__name__}")
        if self.format[1] == 0:
            return value_at(self.start + <size_t>number * self.size, self.format[0])
        row = Row.__new__(Row)
        row.table = self
        row.at = <size_t>number * self.size
        return row

    def __iter__(self):
        return PySeqIter_New(self)

    def column(self, str name):
        cdef size_t offset, i
        cdef int code
        cdef const uint8_t* rows = self.start
        offset, code = columns_of(self)[name]
        return [value_at(rows + i * self.size + offset, code) for i in range(self.count)]

    def first(self, size_t count):
        return type(self)(PyBytes_FromStringAndSize(
            <const char*>self.start, <Py_ssize_t>(min(count, self.count) * self.size)))

    @property
    def row_size(self):
        return self.size

    @property
    def dtype(self):
        cdef dict columns = columns_of(self)
        kinds = [(name, ("<i" if code in b"qi" else "<u") + str(size_of(code)))
                 for name, (_, code) in columns.items()]
        return kinds if kinds[0][0] else kinds[0][1]

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void*>self.start, self.count * self.size, True, flags)

    def __eq__(self, other):
        return type(other) is type(self) and (<Table>other).data == self.data

    def __hash__(self):
        return hash(self.data)

    def __repr__(self):
        return f"<{self.count} {type(self).__name__}>"


cdef class Files(Table):
    """Input files, in command-line order."""

    def __cinit__(self, data=b""):
        self.rows = <const FileRow*>self.hold(sizeof(FileRow), FILE_ROW)


cdef class Sections(Table):
    """Sections of all inputs, file by file."""

    def __cinit__(self, data=b""):
        self.rows = <const SectionRow*>self.hold(sizeof(SectionRow), SECTION_ROW)


cdef class Symbols(Table):
    """Symbols of all inputs, file by file."""

    def __cinit__(self, data=b""):
        self.rows = <const SymbolRow*>self.hold(sizeof(SymbolRow), SYMBOL_ROW)


cdef class Faults(Table):
    """Reasons why an input was refused: empty, or one row."""

    def __cinit__(self, data=b""):
        self.rows = <const FaultRow*>self.hold(sizeof(FaultRow), FAULT_ROW)


cdef class Entities(Table):
    """Distinct symbols of the link, in creation order."""

    def __cinit__(self, data=b""):
        self.rows = <const EntityRow*>self.hold(sizeof(EntityRow), ENTITY_ROW)


cdef class Calls(Table):
    """Rows of the call graph, in input order."""

    def __cinit__(self, data=b""):
        self.rows = <const CallRow*>self.hold(sizeof(CallRow), CALL_ROW)


cdef class Clashes(Table):
    """Contradictions between symbols of one name."""

    def __cinit__(self, data=b""):
        self.rows = <const ClashRow*>self.hold(sizeof(ClashRow), CLASH_ROW)


cdef class Functions(Table):
    """Properties that each entity inherits over the call graph, such as registers."""

    def __cinit__(self, data=b""):
        self.rows = <const FunctionRow*>self.hold(sizeof(FunctionRow), FUNCTION_ROW)


cdef class LiteralPools(Table):
    """Pieces of pools of literals, and where each is in which pool, in order of placement."""

    def __cinit__(self, data=b""):
        self.rows = <const PoolRow*>self.hold(sizeof(PoolRow), POOL_ROW)


cdef class Outs(Table):
    """Sections of the output, in creation order."""

    def __cinit__(self, data=b""):
        self.rows = <const OutRow*>self.hold(sizeof(OutRow), OUT_ROW)


cdef class OutSymbols(Table):
    """Symbols of the output, in creation order."""

    def __cinit__(self, data=b""):
        self.rows = <const OutSymbolRow*>self.hold(sizeof(OutSymbolRow), OUT_SYMBOL_ROW)


cdef class Emitted(Table):
    """Relocations that the output contains."""

    def __cinit__(self, data=b""):
        self.rows = <const EmittedRow*>self.hold(sizeof(EmittedRow), EMITTED_ROW)


cdef class Fixups(Table):
    """Relocations that the link resolves."""

    def __cinit__(self, data=b""):
        self.rows = <const FixupRow*>self.hold(sizeof(FixupRow), FIXUP_ROW)


cdef class Rebuilds(Table):
    """Relocations of debug sections that the link computes again, from sm_100 on."""

    def __cinit__(self, data=b""):
        self.rows = <const RebuildRow*>self.hold(sizeof(RebuildRow), REBUILD_ROW)


cdef class Spans(Table):
    """Ranges of one blob, each with the output section whose contents it is."""

    def __cinit__(self, data=b""):
        self.rows = <const SpanRow*>self.hold(sizeof(SpanRow), SPAN_ROW)

    @staticmethod
    def whole(OutNumber out, uint64_t size):
        cdef SpanRow row
        memset(&row, 0, sizeof(SpanRow))
        row.out = out
        row.size = size
        return Spans(PyBytes_FromStringAndSize(<const char*>&row, sizeof(SpanRow)))


cdef class FilePlaces(Table):
    """Offset and size in the file, name and source of each output section."""

    def __cinit__(self, data=b""):
        self.rows = <const PlaceRow*>self.hold(sizeof(PlaceRow), PLACE_ROW)


cdef class Patches(Table):
    """Fields of the image that relocations patch, each with its value."""

    def __cinit__(self, data=b""):
        self.rows = <const PatchRow*>self.hold(sizeof(PatchRow), PATCH_ROW)


cdef class SharedVariables(Table):
    """Shared variables that are not overridden, in creation order."""

    def __cinit__(self, data=b""):
        self.rows = <const VariableRow*>self.hold(sizeof(VariableRow), VARIABLE_ROW)


cdef class SharedUses(Table):
    """Pairs of a shared variable and a kernel that uses it, in any order, some more than once."""

    def __cinit__(self, data=b""):
        self.rows = <const UseRow*>self.hold(sizeof(UseRow), USE_ROW)


cdef class ExternUses(Table):
    """Kernels that use extern arrays, with the function that refers to the array."""

    def __cinit__(self, data=b""):
        self.rows = <const ExternUseRow*>self.hold(sizeof(ExternUseRow), EXTERN_USE_ROW)


cdef class SharedSizes(Table):
    """Shared memory of each kernel, and of `.nv_debug.shared` at the end."""

    def __cinit__(self, data=b""):
        self.rows = <const KernelRow*>self.hold(sizeof(KernelRow), KERNEL_ROW)


cdef class Numbers(Table):
    """Numbers of rows, i32; -1 for no row."""

    def __cinit__(self, data=b""):
        self.rows = <const int32_t*>self.hold(sizeof(int32_t), b"i")


cdef class Indices(Table):
    """Indices in the output of sections or symbols, or offsets in .strtab, u32; 0 if not there."""

    def __cinit__(self, data=b""):
        self.rows = <const uint32_t*>self.hold(sizeof(uint32_t), b"I")


cdef class Values(Table):
    """Addresses, sizes and offsets, u64."""

    def __cinit__(self, data=b""):
        self.rows = <const uint64_t*>self.hold(sizeof(uint64_t), b"Q")


cdef class Offsets(Table):
    """Offsets, i64; -1 without an offset."""

    def __cinit__(self, data=b""):
        self.rows = <const int64_t*>self.hold(sizeof(int64_t), b"q")


cdef class Marks(Table):
    """Numbers of one byte: 0 or 1, or a Resolution."""

    def __cinit__(self, data=b""):
        self.rows = <const uint8_t*>self.hold(sizeof(uint8_t), b"B")


cdef class Blob(Table):
    """Bytes: a string table of the output, contents that the link makes, or packed rows."""

    def __cinit__(self, data=b""):
        self.rows = <const uint8_t*>self.hold(sizeof(uint8_t), b"B")

    def string(self, size_t offset):
        cdef const void* end = NULL
        if offset < self.count:
            end = memchr(self.rows + offset, 0, self.count - offset)
        if end == NULL:
            raise IndexError(f"no string at {offset} of {self.count} bytes")
        return PyBytes_FromStringAndSize(<const char*>self.rows + offset,
                                         <const uint8_t*>end - self.rows - offset)
