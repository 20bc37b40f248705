"""The data passed between phases: tables that own their rows, and results that own tables.

A table is `bytes` of packed C rows with a type. Rows are numbered from 0; the number is the only
reference, -1 for no row. Tables are immutable. Python reads columns by name (`pylink.rows` has
all names), and numpy all of them at once:
`numpy.frombuffer(table, table.dtype)`.

A result owns the tables of a phase. Native functions take results, so that no two tables can be
swapped, and fill the columns that their stubs name. `seal` checks their sizes against each other
when the phase returns; afterwards none can be set.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from pylink.rows import (
    CallRow,
    ClashRow,
    EmittedRow,
    EntityRow,
    ExternUseRow,
    FaultRow,
    FileRow,
    FixupRow,
    FunctionRow,
    KernelRow,
    OutRow,
    OutSymbolRow,
    PatchRow,
    PlaceRow,
    PoolRow,
    RebuildRow,
    SectionRow,
    SpanRow,
    SymbolRow,
    UseRow,
    VariableRow,
)

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T", bound="Table[object]")
ResultT = TypeVar("ResultT", bound="Result")

class Table(Generic[R_co]):
    """An immutable table of rows of one kind.

    `TypeError` for other objects than `bytes`, `ValueError` for bytes that end inside a row.
    """

    def __init__(self, data: bytes = b"") -> None: ...
    @property
    def data(self) -> bytes:
        """The packed rows; a copy for a large table."""

    @property
    def row_size(self) -> int:
        """Bytes of a row."""

    @property
    def dtype(self) -> str | list[tuple[str, str]]:
        """The argument for `numpy.dtype`: the type of the numbers, or a list of columns."""

    def __len__(self) -> int: ...
    def __getitem__(self, number: int, /) -> R_co: ...
    def __iter__(self) -> Iterator[R_co]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def column(self, name: str) -> list[int]:
        """A column as a list."""

    def first(self: T, count: int) -> T:
        """A table of the first `count` rows."""

class Files(Table[FileRow]):
    """One per input file, in command-line order."""

class Sections(Table[SectionRow]):
    """One per section of every input, file by file."""

class Symbols(Table[SymbolRow]):
    """One per symbol of every input, file by file."""

class Faults(Table[FaultRow]):
    """Reasons why an input was refused: empty, or one row."""

class Entities(Table[EntityRow]):
    """One per distinct symbol of the link, in order of first mention."""

class Calls(Table[CallRow]):
    """Rows of the call graph, in input order."""

class Clashes(Table[ClashRow]):
    """Conflicting definitions."""

class Functions(Table[FunctionRow]):
    """Properties of each entity in the call graph."""

class LiteralPools(Table[PoolRow]):
    """Pieces of literal pools that go to kernels, in order of placement."""

class Outs(Table[OutRow]):
    """One per section of the output, in creation order."""

class OutSymbols(Table[OutSymbolRow]):
    """One per symbol of the output, in creation order."""

class Emitted(Table[EmittedRow]):
    """Relocations that the output contains."""

class Fixups(Table[FixupRow]):
    """Relocations that the link resolves."""

class Rebuilds(Table[RebuildRow]):
    """Relocations of debug sections that are rewritten."""

class Spans(Table[SpanRow]):
    """The output sections of a blob of contents."""

    @staticmethod
    def whole(out: int, size: int) -> Spans:
        """One row that assigns a blob of `size` bytes to one section."""

class FilePlaces(Table[PlaceRow]):
    """The place of each output section in the file."""

class Patches(Table[PatchRow]):
    """Fields of the image with their values."""

class SharedVariables(Table[VariableRow]):
    """Shared variables that are not overridden, in creation order."""

class SharedUses(Table[UseRow]):
    """Pairs of a shared variable and a kernel that uses it; any order, repeats allowed."""

class ExternUses(Table[ExternUseRow]):
    """Kernels that use extern arrays, with the function that refers to the array."""

class SharedSizes(Table[KernelRow]):
    """Shared memory of each kernel, and of `.nv_debug.shared` at the end."""

class Numbers(Table[int]):
    """Numbers of rows, i32; -1 for no row."""

class Indices(Table[int]):
    """Indices in the output, u32; 0 if not in the output."""

class Values(Table[int]):
    """Addresses, sizes and offsets, u64."""

class Offsets(Table[int]):
    """Offsets, i64; -1 without an offset."""

class Marks(Table[int]):
    """A byte each: a mark or a resolution."""

class Blob(Table[int]):
    """Bytes of the output: a string table, or sections that the link makes."""

    def string(self, at: int) -> bytes:
        """The string at an offset, without its NUL; `IndexError` if no NUL follows."""

class Result:
    """The tables of a phase. Assigned bytes become a table of the column's type."""

    def seal(self: ResultT) -> ResultT:
        """Check that the tables are consistent, and freeze them. Returns itself."""

class ObjectTables(Result):
    """The inputs, and the options that kernels need.

    `arena` holds all input bytes. `family` is 0 for sm_75 to sm_89, 1 for sm_90, 2 from sm_100
    on; `mode` holds the bits of `pylink.phases.init`, `traits` those of a release;
    `executable` is the opposite of -r.
    """

    def __init__(
        self,
        arena: bytes,
        files: Files,
        sections: Sections,
        symbols: Symbols,
        *,
        family: int = 0,
        mode: int = 0,
        traits: int = 0,
    ) -> None: ...
    @property
    def family(self) -> int: ...
    @property
    def mode(self) -> int: ...
    @property
    def traits(self) -> int: ...
    @property
    def executable(self) -> bool: ...
    arena: bytes
    files: Files
    sections: Sections
    symbols: Symbols

class MergedTables(Result):
    """The sections, symbols and relocations of the output.

    By input symbol: `symbol_entity` and `symbol_resolution`; `met` are the symbols with an
    entity in the order in which the link meets them. By entity: `functions`, `referenced` (any
    code refers to it), `array_align` (-r: the largest alignment stated by extern arrays that a
    kernel's own code names, 1 if not stated, 0 without arrays). By input section:
    `section_function`, the function that a copy with the section defines, and
    `section_resolution`, the resolution of that copy; `stand_ins`, the section that replaces it
    (empty if nothing folds); `out_of`, its output section, and `base`, its offset there.
    `prototypes` are arena offsets, `prototype_offsets` are offsets in .strtab.
    """

    def __init__(self, objects: ObjectTables, **tables: Table[object] | bytes) -> None: ...
    objects: ObjectTables
    entities: Entities
    symbol_entity: Numbers
    symbol_resolution: Marks
    met: Numbers
    section_function: Numbers
    section_resolution: Marks
    calls: Calls
    prototypes: Values
    functions: Functions
    pools: LiteralPools
    stand_ins: Numbers
    outs: Outs
    out_symbols: OutSymbols
    emitted: Emitted
    fixups: Fixups
    rebuilds: Rebuilds
    out_of: Numbers
    base: Values
    shstrtab: Blob
    strtab: Blob
    prototype_offsets: Indices
    referenced: Marks
    array_align: Values

class SharedTables(Result):
    """Shared variables, their users and their layout.

    `variables`, `uses` and `extern_uses` are the input of the layout of shared memory, `offsets`
    (by variable), `kernels` and `ties` its result.
    """

    def __init__(
        self, kernel_count: int, tie_count: int, **tables: Table[object] | bytes
    ) -> None: ...
    @property
    def kernel_count(self) -> int: ...
    @property
    def tie_count(self) -> int: ...
    variables: SharedVariables
    uses: SharedUses
    extern_uses: ExternUses
    variable_entities: Numbers
    kernel_entities: Numbers
    offsets: Offsets
    kernels: SharedSizes
    ties: Offsets

class PlacedTables(Result):
    """The layout of the output.

    By entity: `values` (S in relocations), `symbol_values` and `merc_values` (st_value),
    `homes` (its OutRow), `dynamic` (address of extern arrays in a function), `lost`,
    `symbol_index`, `instance_index` (symbol of a kernel's externsharedinstance). By OutRow:
    `outs`, `places`, `section_index`, `section_symbol_index`. In file order:
    `section_order`, `symbol_order`. `blobs` and `spans` hold the contents that the link makes.
    `table_offset` is the offset of the section headers, `null_value` the value of the null symbol.
    `out_symbols` and the string tables have the final names.
    """

    def __init__(self, merged: MergedTables, **tables: Table[object] | bytes) -> None: ...
    @property
    def merged(self) -> MergedTables: ...
    def add(self, contents: bytes | Blob, spans: Spans) -> None:
        """Add contents that the link makes, with the sections they belong to."""

    outs: Outs
    values: Values
    symbol_values: Values
    merc_values: Values
    homes: Numbers
    dynamic: Values
    lost: Marks
    symbol_index: Indices
    instance_index: Indices
    places: FilePlaces
    section_index: Indices
    section_symbol_index: Indices
    section_order: Numbers
    symbol_order: Numbers
    out_symbols: OutSymbols
    phdrs: bytes
    shstrtab: Blob
    strtab: Blob
    blobs: list[Blob]
    spans: list[Spans]
    size: int
    table_offset: int
    null_value: int
