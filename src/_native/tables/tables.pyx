# cython: auto_pickle=False
"""Data that passes between phases: tables that own their rows, and results that own their tables.

The stub, tables.pyi, says what tables and results are. Here is how they work: the rows of a table
are in `bytes` or, if they are many, in a block of its own, `Pages`. A native function that fills
rows hands its block to the table without a copy (`detach_rows`). A table that Python can see never
changes. A function that needs a changed table makes a new one, which may take over the rows of the
old one if nothing else owns them (`Table.writable`).
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyObject_GenericSetAttr
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memchr, memcpy, memset

from base cimport blocks
from base.blocks cimport LARGE_BLOCK, MEDIUM_BLOCK, block_cut, block_free, block_widen, is_in_parts
from base.vector cimport Vec, vec_free, vec_to_bytes
from columns cimport (
    CALL_ROW, CLASH_ROW, EMITTED_ROW, ENTITY_ROW, EXTERN_USE_ROW, FAULT_ROW, FILE_ROW, FIXUP_ROW,
    FUNCTION_ROW, KERNEL_ROW, OUT_ROW, OUT_SYMBOL_ROW, PATCH_ROW, PLACE_ROW, POOL_ROW, REBUILD_ROW,
    SECTION_ROW, SPAN_ROW, SYMBOL_ROW, USE_ROW, VARIABLE_ROW,
)
from rownumbers cimport LINK_RELOCATABLE
from tables.rows cimport (
    CallRow, ClashRow, EmittedRow, EntityRow, FaultRow, FileRow, FixupRow, FunctionRow, OutRow,
    OutSymbolRow, PatchRow, PlaceRow, RebuildRow, SectionRow, SpanRow, SymbolRow,
)
from tables.views cimport MergedView, ObjectsView, PlacedView, SharedView
from traits cimport FAMILY_A, FAMILY_TRAITS

cdef extern from "Python.h":
    object PySeqIter_New(object sequence)
    Py_ssize_t Py_REFCNT(PyObject* object)

cdef enum:
    # Bytes from which on a table has a block of its own in a process that recycles no pages. Others
    # are on the heap, since such a process would get the pages of each block from the system.
    LARGE_TABLE = 4 << 20

# By type of table: `columns_of` its tables, from when it was first asked for.
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
    """Return the number with this code at an address of any alignment."""
    cdef uint64_t value = 0
    memcpy(&value, data, size_of(code))
    if code == c"i":
        return <int32_t>value
    if code == c"q":
        return <int64_t>value
    return value


cdef class Pages:
    """A block (base/blocks.pxd) with the rows of a table, which it frees with the table."""

    cdef uint8_t* start
    cdef size_t size            # bytes of the rows
    cdef size_t room            # bytes of the block

    def __dealloc__(self):
        if self.start != NULL:
            block_free(self.start, self.room)


cdef object detach_rows(Vec* rows):
    """Return the memory of a Vec, as bytes or Pages; the Vec is empty afterwards."""
    cdef size_t size = rows.count * rows.row, room = rows.room * rows.row
    cdef Pages pages
    if rows.borrowed or size < MEDIUM_BLOCK:
        return vec_to_bytes(rows)
    if size < LARGE_BLOCK and room >= LARGE_BLOCK:
        if blocks.no_recycling:
            return vec_to_bytes(rows)
        # The Vec reserved a large page, and needs a part of it.
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
    """Return memory for rows of `size` bytes with any values: bytes or Pages."""
    cdef Pages pages
    if size < (LARGE_TABLE if blocks.no_recycling else MEDIUM_BLOCK):
        return PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
    pages = Pages()
    pages.start = <uint8_t*>block_widen(NULL, 0, size)
    pages.size = pages.room = size
    if pages.start == NULL:
        raise MemoryError
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
    def __cinit__(self, data=b""):
        self.rows = <const FileRow*>self.hold(sizeof(FileRow), FILE_ROW)


cdef class Sections(Table):
    def __cinit__(self, data=b""):
        self.rows = <const SectionRow*>self.hold(sizeof(SectionRow), SECTION_ROW)


cdef class Symbols(Table):
    def __cinit__(self, data=b""):
        self.rows = <const SymbolRow*>self.hold(sizeof(SymbolRow), SYMBOL_ROW)


cdef class Faults(Table):
    def __cinit__(self, data=b""):
        self.rows = <const FaultRow*>self.hold(sizeof(FaultRow), FAULT_ROW)


cdef class Entities(Table):
    def __cinit__(self, data=b""):
        self.rows = <const EntityRow*>self.hold(sizeof(EntityRow), ENTITY_ROW)


cdef class Calls(Table):
    def __cinit__(self, data=b""):
        self.rows = <const CallRow*>self.hold(sizeof(CallRow), CALL_ROW)


cdef class Clashes(Table):
    def __cinit__(self, data=b""):
        self.rows = <const ClashRow*>self.hold(sizeof(ClashRow), CLASH_ROW)


cdef class Functions(Table):
    def __cinit__(self, data=b""):
        self.rows = <const FunctionRow*>self.hold(sizeof(FunctionRow), FUNCTION_ROW)


cdef class LiteralPools(Table):
    def __cinit__(self, data=b""):
        self.rows = <const PoolRow*>self.hold(sizeof(PoolRow), POOL_ROW)


cdef class Outs(Table):
    def __cinit__(self, data=b""):
        self.rows = <const OutRow*>self.hold(sizeof(OutRow), OUT_ROW)


cdef class OutSymbols(Table):
    def __cinit__(self, data=b""):
        self.rows = <const OutSymbolRow*>self.hold(sizeof(OutSymbolRow), OUT_SYMBOL_ROW)


cdef class Emitted(Table):
    def __cinit__(self, data=b""):
        self.rows = <const EmittedRow*>self.hold(sizeof(EmittedRow), EMITTED_ROW)


cdef class Fixups(Table):
    def __cinit__(self, data=b""):
        self.rows = <const FixupRow*>self.hold(sizeof(FixupRow), FIXUP_ROW)


cdef class Rebuilds(Table):
    def __cinit__(self, data=b""):
        self.rows = <const RebuildRow*>self.hold(sizeof(RebuildRow), REBUILD_ROW)


cdef class Spans(Table):
    def __cinit__(self, data=b""):
        self.rows = <const SpanRow*>self.hold(sizeof(SpanRow), SPAN_ROW)

    @staticmethod
    def whole(int32_t out, uint64_t size):
        cdef SpanRow row
        memset(&row, 0, sizeof(SpanRow))
        row.out = out
        row.size = size
        return Spans(PyBytes_FromStringAndSize(<const char*>&row, sizeof(SpanRow)))


cdef class FilePlaces(Table):
    def __cinit__(self, data=b""):
        self.rows = <const PlaceRow*>self.hold(sizeof(PlaceRow), PLACE_ROW)


cdef class Patches(Table):
    def __cinit__(self, data=b""):
        self.rows = <const PatchRow*>self.hold(sizeof(PatchRow), PATCH_ROW)


cdef class SharedVariables(Table):
    def __cinit__(self, data=b""):
        self.rows = <const VariableRow*>self.hold(sizeof(VariableRow), VARIABLE_ROW)


cdef class SharedUses(Table):
    def __cinit__(self, data=b""):
        self.rows = <const UseRow*>self.hold(sizeof(UseRow), USE_ROW)


cdef class ExternUses(Table):
    def __cinit__(self, data=b""):
        self.rows = <const ExternUseRow*>self.hold(sizeof(ExternUseRow), EXTERN_USE_ROW)


cdef class SharedSizes(Table):
    def __cinit__(self, data=b""):
        self.rows = <const KernelRow*>self.hold(sizeof(KernelRow), KERNEL_ROW)


cdef class Numbers(Table):
    def __cinit__(self, data=b""):
        self.rows = <const int32_t*>self.hold(sizeof(int32_t), b"i")


cdef class Indices(Table):
    def __cinit__(self, data=b""):
        self.rows = <const uint32_t*>self.hold(sizeof(uint32_t), b"I")


cdef class Values(Table):
    def __cinit__(self, data=b""):
        self.rows = <const uint64_t*>self.hold(sizeof(uint64_t), b"Q")


cdef class Offsets(Table):
    def __cinit__(self, data=b""):
        self.rows = <const int64_t*>self.hold(sizeof(int64_t), b"q")


cdef class Marks(Table):
    def __cinit__(self, data=b""):
        self.rows = <const uint8_t*>self.hold(sizeof(uint8_t), b"B")


cdef class Blob(Table):
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


cdef class Result:
    # Names of attributes that can be set even after `seal`: they are not tables of the result.
    UNSEALED = ()

    cdef int fill(self) except -1:
        """Raise AttributeError for a sealed result. Native functions that fill it begin with this.
        """
        if self.sealed:
            raise AttributeError(f"{type(self).__name__} of a phase that has returned")
        return 0

    def __setattr__(self, name, value):
        if name not in self.UNSEALED:
            self.fill()
            old = getattr(self, name, None)
            if isinstance(old, Table):
                if type(value) is bytes:
                    value = type(old)(value)
                elif type(value) is not type(old):
                    raise TypeError(f"{name} are {type(old).__name__}, not {type(value).__name__}")
        PyObject_GenericSetAttr(self, name, value)

    def __delattr__(self, name):
        raise AttributeError(f"{name} of {type(self).__name__} cannot be taken away")

    def seal(self):
        self.check()
        self.sealed = True
        return self

    def check(self):
        """Raise ValueError for a column whose length does not match the result."""


cdef int expect(str name, Table column, size_t rows, bint optional=False) except -1:
    """Raise ValueError unless a column has this number of rows; an `optional` one may be empty."""
    if column.count != rows and not (optional and column.count == 0):
        raise ValueError(f"{column.count} {name} for {rows} rows")
    return 0


cdef class ObjectTables(Result):
    def __cinit__(self):
        self.arena = b""
        self.files = Files()
        self.sections = Sections()
        self.symbols = Symbols()

    def __init__(self, bytes arena not None, Files files not None, Sections sections not None,
                 Symbols symbols not None, *, int family=FAMILY_A, int mode=0, int traits=0):
        self.arena = arena
        self.files = files
        self.sections = sections
        self.symbols = symbols
        self.family = family
        self.mode = mode
        self.traits = traits | FAMILY_TRAITS[family]
        self.executable = not mode & LINK_RELOCATABLE

    cdef void view(self, ObjectsView* view) noexcept:
        view.arena = <const uint8_t*>PyBytes_AS_STRING(self.arena)
        view.arena_size = <size_t>PyBytes_GET_SIZE(self.arena)
        view.files = self.files.rows
        view.file_count = self.files.count
        view.sections = self.sections.rows
        view.section_count = self.sections.count
        view.symbols = self.symbols.rows
        view.symbol_count = self.symbols.count
        view.family = self.family
        view.mode = self.mode
        view.traits = self.traits
        view.executable = self.executable


cdef class MergedTables(Result):
    def __cinit__(self):
        self.entities = Entities()
        self.symbol_entity = Numbers()
        self.symbol_resolution = Marks()
        self.met = Numbers()
        self.section_function = Numbers()
        self.section_resolution = Marks()
        self.calls = Calls()
        self.prototypes = Values()
        self.functions = Functions()
        self.pools = LiteralPools()
        self.stand_ins = Numbers()
        self.outs = Outs()
        self.out_symbols = OutSymbols()
        self.emitted = Emitted()
        self.fixups = Fixups()
        self.rebuilds = Rebuilds()
        self.out_of = Numbers()
        self.base = Values()
        self.shstrtab = Blob()
        self.strtab = Blob()
        self.prototype_offsets = Indices()
        self.referenced = Marks()
        self.array_align = Values()

    def __init__(self, ObjectTables objects not None, **tables):
        self.objects = objects
        for name, table in tables.items():
            setattr(self, name, table)

    def check(self):
        cdef size_t symbols = self.objects.symbols.count, sections = self.objects.sections.count
        expect("entities of symbols", self.symbol_entity, symbols)
        expect("resolutions of symbols", self.symbol_resolution, symbols)
        expect("functions of sections", self.section_function, sections)
        expect("resolutions of sections", self.section_resolution, sections)
        expect("functions", self.functions, self.entities.count)
        expect("stand-ins", self.stand_ins, sections, optional=True)
        expect("homes of sections", self.out_of, sections)
        expect("offsets of sections", self.base, sections)
        expect("names of prototypes", self.prototype_offsets, self.prototypes.count)
        expect("marks of references", self.referenced, self.entities.count)
        expect("alignments of arrays", self.array_align, self.entities.count)

    cdef void view(self, MergedView* view) noexcept:
        view.entities = self.entities.rows
        view.entity_count = self.entities.count
        view.symbol_entity = self.symbol_entity.rows
        view.symbol_resolution = self.symbol_resolution.rows
        view.met = self.met.rows
        view.met_count = self.met.count
        view.section_function = self.section_function.rows
        view.section_resolution = self.section_resolution.rows
        view.calls = self.calls.rows
        view.call_count = self.calls.count
        view.prototypes = self.prototypes.rows
        view.prototype_count = self.prototypes.count
        view.functions = self.functions.rows
        view.pools = self.pools.rows
        view.pool_count = self.pools.count
        view.stand_ins = self.stand_ins.rows if self.stand_ins.count else NULL
        view.outs = self.outs.rows
        view.out_count = self.outs.count
        view.out_symbols = self.out_symbols.rows
        view.out_symbol_count = self.out_symbols.count
        view.emitted = self.emitted.rows
        view.emitted_count = self.emitted.count
        view.fixups = self.fixups.rows
        view.fixup_count = self.fixups.count
        view.rebuilds = self.rebuilds.rows
        view.rebuild_count = self.rebuilds.count
        view.out_of = self.out_of.rows
        view.base = self.base.rows
        view.shstrtab = self.shstrtab.rows
        view.shstrtab_size = self.shstrtab.count
        view.strtab = self.strtab.rows
        view.strtab_size = self.strtab.count
        view.prototype_offsets = self.prototype_offsets.rows
        view.referenced = self.referenced.rows
        view.array_align = self.array_align.rows


cdef class SharedTables(Result):
    def __cinit__(self):
        self.variables = SharedVariables()
        self.uses = SharedUses()
        self.extern_uses = ExternUses()
        self.variable_entities = Numbers()
        self.kernel_entities = Numbers()
        self.offsets = Offsets()
        self.kernels = SharedSizes()
        self.ties = Offsets()

    def __init__(self, Py_ssize_t kernel_count, Py_ssize_t tie_count, **tables):
        self.kernel_count = kernel_count
        self.tie_count = tie_count
        for name, table in tables.items():
            setattr(self, name, table)

    def check(self):
        expect("entities of variables", self.variable_entities, self.variables.count)
        expect("entities of kernels", self.kernel_entities, self.kernel_count)
        expect("offsets", self.offsets, self.variables.count, optional=True)
        expect("sizes", self.kernels, self.kernel_count + 1)
        expect("ties", self.ties, self.tie_count)

    cdef void view(self, SharedView* view) noexcept:
        view.variables = self.variables.rows
        view.variable_count = self.variables.count
        view.uses = self.uses.rows
        view.use_count = self.uses.count
        view.extern_uses = self.extern_uses.rows
        view.extern_use_count = self.extern_uses.count
        view.variable_entities = self.variable_entities.rows
        view.kernel_entities = self.kernel_entities.rows
        view.kernel_count = self.kernel_entities.count
        view.offsets = self.offsets.rows
        view.kernels = self.kernels.rows
        view.ties = self.ties.rows
        view.tie_count = self.ties.count


cdef class PlacedTables(Result):
    def __cinit__(self):
        self.outs = Outs()
        self.values = Values()
        self.symbol_values = Values()
        self.merc_values = Values()
        self.homes = Numbers()
        self.dynamic = Values()
        self.lost = Marks()
        self.symbol_index = Indices()
        self.instance_index = Indices()
        self.places = FilePlaces()
        self.section_index = Indices()
        self.section_symbol_index = Indices()
        self.section_order = Numbers()
        self.symbol_order = Numbers()
        self.out_symbols = OutSymbols()
        self.phdrs = b""
        self.shstrtab = Blob()
        self.strtab = Blob()
        self.blobs = []
        self.spans = []

    def __init__(self, MergedTables merged not None, **tables):
        self.merged = merged
        self.out_symbols = merged.out_symbols
        self.strtab = merged.strtab
        for name, table in tables.items():
            setattr(self, name, table)

    def add(self, contents not None, Spans spans not None):
        self.fill()
        self.blobs.append(contents if type(contents) is Blob else Blob(contents))
        self.spans.append(spans)

    def check(self):
        cdef size_t entities = self.merged.entities.count, outs = self.outs.count
        expect("values", self.values, entities)
        expect("values of symbols", self.symbol_values, entities)
        expect("values of mercury symbols", self.merc_values, entities)
        expect("homes", self.homes, entities)
        expect("addresses of arrays", self.dynamic, entities)
        expect("marks of lost variables", self.lost, entities)
        expect("indices of symbols", self.symbol_index, entities)
        expect("indices of instances", self.instance_index, entities)
        expect("places", self.places, outs)
        expect("indices of sections", self.section_index, outs)
        expect("indices of section symbols", self.section_symbol_index, outs)

    cdef void view(self, PlacedView* view) noexcept:
        view.outs = self.outs.rows
        view.out_count = self.outs.count
        view.values = self.values.rows
        view.symbol_values = self.symbol_values.rows
        view.merc_values = self.merc_values.rows
        view.homes = self.homes.rows
        view.dynamic = self.dynamic.rows
        view.lost = self.lost.rows
        view.symbol_index = self.symbol_index.rows
        view.instance_index = self.instance_index.rows
        view.places = self.places.rows
        view.section_index = self.section_index.rows
        view.section_symbol_index = self.section_symbol_index.rows
        view.section_order = self.section_order.rows
        view.section_order_count = self.section_order.count
        view.symbol_order = self.symbol_order.rows
        view.symbol_order_count = self.symbol_order.count
        view.out_symbols = self.out_symbols.rows
        view.out_symbol_count = self.out_symbols.count
        view.shstrtab = self.shstrtab.rows
        view.shstrtab_size = self.shstrtab.count
        view.strtab = self.strtab.rows
        view.strtab_size = self.strtab.count
        view.table_offset = self.table_offset
        view.null_value = self.null_value
