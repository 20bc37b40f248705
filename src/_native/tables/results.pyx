# cython: auto_pickle=False
"""Results of phases: the tables of each, their sizes, and the views that kernels borrow.

The stub, results.pyi, says what each column holds. A phase sets the columns of its result, also
several times, until it seals the result.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject_GenericSetAttr
from libc.stdint cimport uint8_t

from pylink._native.tables cimport (
    Blob, Calls, Emitted, Entities, ExternUses, FilePlaces, Files, Fixups, Functions, Indices,
    LiteralPools, Marks, Numbers, Offsets, OutSymbols, Outs, Rebuilds, Sections, SharedSizes,
    SharedUses, SharedVariables, Spans, Symbols, Table, Values,
)
from rownumbers cimport LINK_RELOCATABLE
from tables.rows cimport EntityNumber, OutNumber, OutSymbolNumber, SectionNumber, SymbolNumber
from tables.views cimport MergedView, ObjectsView, PlacedView, SharedView
from traits cimport FAMILY_A, FAMILY_TRAITS


cdef class Result:
    """The tables of a phase. Bytes that are assigned become a table of the column's type."""

    # Names of attributes that can be set even after `seal`: they are not tables of the result.
    UNSEALED = ()

    cdef int fill(self) except -1:
        """Raise AttributeError if the result is sealed. Native functions that fill it call this.
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
        """Check the sizes of the tables, let none be set any more, and return the result."""
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
    """The inputs, and the options that native functions need."""

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
        """Fill `view` with pointers to the rows of the tables."""
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
    """The sections, symbols and relocations of the output."""

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
        """Fill `view` with pointers to the rows of the tables."""
        view.entities = self.entities.rows
        view.entity_count = self.entities.count
        view.symbol_entity = <const EntityNumber*>self.symbol_entity.rows
        view.symbol_resolution = self.symbol_resolution.rows
        view.met = <const SymbolNumber*>self.met.rows
        view.met_count = self.met.count
        view.section_function = <const EntityNumber*>self.section_function.rows
        view.section_resolution = self.section_resolution.rows
        view.calls = self.calls.rows
        view.call_count = self.calls.count
        view.prototypes = self.prototypes.rows
        view.prototype_count = self.prototypes.count
        view.functions = self.functions.rows
        view.pools = self.pools.rows
        view.pool_count = self.pools.count
        view.stand_ins = <const SectionNumber*>self.stand_ins.rows if self.stand_ins.count else NULL
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
        view.out_of = <const OutNumber*>self.out_of.rows
        view.base = self.base.rows
        view.shstrtab = self.shstrtab.rows
        view.shstrtab_size = self.shstrtab.count
        view.strtab = self.strtab.rows
        view.strtab_size = self.strtab.count
        view.prototype_offsets = self.prototype_offsets.rows
        view.referenced = self.referenced.rows
        view.array_align = self.array_align.rows


cdef class SharedTables(Result):
    """Shared variables, their users and their layout."""

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
        """Fill `view` with pointers to the rows of the tables."""
        view.variables = self.variables.rows
        view.variable_count = self.variables.count
        view.uses = self.uses.rows
        view.use_count = self.uses.count
        view.extern_uses = self.extern_uses.rows
        view.extern_use_count = self.extern_uses.count
        view.variable_entities = <const EntityNumber*>self.variable_entities.rows
        view.kernel_entities = <const EntityNumber*>self.kernel_entities.rows
        view.kernel_count = self.kernel_entities.count
        view.offsets = self.offsets.rows
        view.kernels = self.kernels.rows
        view.ties = self.ties.rows
        view.tie_count = self.ties.count


cdef class PlacedTables(Result):
    """The layout of the output."""

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
        """Add contents that the link makes, and the sections that they belong to."""
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
        """Fill `view` with pointers to the rows of the tables."""
        view.outs = self.outs.rows
        view.out_count = self.outs.count
        view.values = self.values.rows
        view.symbol_values = self.symbol_values.rows
        view.merc_values = self.merc_values.rows
        view.homes = <const OutNumber*>self.homes.rows
        view.dynamic = self.dynamic.rows
        view.lost = self.lost.rows
        view.symbol_index = self.symbol_index.rows
        view.instance_index = self.instance_index.rows
        view.places = self.places.rows
        view.section_index = self.section_index.rows
        view.section_symbol_index = self.section_symbol_index.rows
        view.section_order = <const OutNumber*>self.section_order.rows
        view.section_order_count = self.section_order.count
        view.symbol_order = <const OutSymbolNumber*>self.symbol_order.rows
        view.symbol_order_count = self.symbol_order.count
        view.out_symbols = self.out_symbols.rows
        view.out_symbol_count = self.out_symbols.count
        view.shstrtab = self.shstrtab.rows
        view.shstrtab_size = self.shstrtab.count
        view.strtab = self.strtab.rows
        view.strtab_size = self.strtab.count
        view.table_offset = self.table_offset
        view.null_value = self.null_value
