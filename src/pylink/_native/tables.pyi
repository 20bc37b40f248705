"""The data passed between phases: tables that own their rows, and results that own tables.

A table is packed C rows of one type. Rows are numbered from 0; the number is the only reference,
and -1 is none. Tables are immutable. Python reads columns by name (`pylink.rows` has all names),
and numpy all of them at once: `numpy.frombuffer(table, table.dtype)`.

A result owns the tables of a phase. Native functions take results, so that no two tables can be
swapped, and fill the columns that their stubs name. `seal` checks the sizes of tables against each
other when the phase returns; afterwards none can be set.
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
        """The packed rows; of a large table a copy."""

    @property
    def row_size(self) -> int:
        """Bytes of a row."""

    @property
    def dtype(self) -> str | list[tuple[str, str]]:
        """The argument for `numpy.dtype`: a type of numbers, or (name, type) of each column."""

    def __len__(self) -> int: ...
    def __getitem__(self, number: int, /) -> R_co: ...
    def __iter__(self) -> Iterator[R_co]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def column(self, name: str) -> list[int]:
        """Return a column as a list."""

    def first(self: T, count: int) -> T:
        """Return a table of the first `count` rows."""

class Files(Table[FileRow]):
    """Input files, in command-line order."""

class Sections(Table[SectionRow]):
    """Sections of all inputs, file by file."""

class Symbols(Table[SymbolRow]):
    """Symbols of all inputs, file by file."""

class Faults(Table[FaultRow]):
    """Reasons why an input was refused: empty, or one row."""

class Entities(Table[EntityRow]):
    """Distinct symbols of the link, in order of first mention."""

class Calls(Table[CallRow]):
    """Rows of the call graph, in input order."""

class Clashes(Table[ClashRow]):
    """Conflicting definitions of one name."""

class Functions(Table[FunctionRow]):
    """Properties that each entity inherits over the call graph, such as registers."""

class LiteralPools(Table[PoolRow]):
    """Pieces of literal pools that go to kernels, in order of placement."""

class Outs(Table[OutRow]):
    """Sections of the output, in creation order."""

class OutSymbols(Table[OutSymbolRow]):
    """Symbols of the output, in creation order."""

class Emitted(Table[EmittedRow]):
    """Relocations that the output contains."""

class Fixups(Table[FixupRow]):
    """Relocations that the link resolves."""

class Rebuilds(Table[RebuildRow]):
    """Relocations of debug sections that the link computes again, from sm_100 on."""

class Spans(Table[SpanRow]):
    """The output sections whose contents are in one blob."""

    @staticmethod
    def whole(out: int, size: int) -> Spans:
        """Return one row that assigns a whole blob, of `size` bytes, to the section `out`."""

class FilePlaces(Table[PlaceRow]):
    """The place of each output section in the file."""

class Patches(Table[PatchRow]):
    """Fields of the image with their values."""

class SharedVariables(Table[VariableRow]):
    """Shared variables that are not overridden, in creation order."""

class SharedUses(Table[UseRow]):
    """Pairs of a shared variable and a kernel that uses it, in any order, some more than once."""

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
    """Numbers of one byte: 0 or 1, or a Resolution."""

class Blob(Table[int]):
    """Bytes of the output: a string table, or contents of sections that the link makes."""

    def string(self, offset: int) -> bytes:
        """Return the string at an offset, without its NUL; `IndexError` if no NUL follows."""

class Result:
    """The tables of a phase. Bytes that are assigned become a table of the column's type."""

    def seal(self: ResultT) -> ResultT:
        """Check that the tables have consistent sizes, let none be set any more, return itself."""

class ObjectTables(Result):
    """The inputs, and the options that kernels need.

    `arena` holds all input bytes. `family` is 0 for sm_75 to sm_89, 1 for sm_90, 2 from sm_100
    on. `mode` has LinkMode bits, `traits` the TRAIT_ bits of the family and of the release that
    the link follows. `executable` is the opposite of -r.
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

    By input symbol: `symbol_entity`, its entity, and `symbol_resolution`, what became of the
    definition in it. `met` are the symbols with an entity, in the order in which the link meets
    them. By entity: `functions`, `referenced` (any code refers to it), `array_align` (with -r: the
    largest alignment stated by extern arrays that a kernel's own code names, 1 if not stated, 0
    without arrays). By input section: `section_function`, the function to whose copy it belongs,
    and `section_resolution`, what became of that copy; `stand_ins`, the section that replaces it
    (empty if nothing folds); `out_of`, its output section, and `base`, its offset there.
    Prototypes are strings: `prototypes` are their arena offsets, `prototype_offsets` their offsets
    in .strtab.
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

    `variables`, `uses` and `extern_uses` are the input of the layout of shared memory. Its result
    are `offsets`, the address of each variable; `kernels`; and `ties`, by device function (with -g
    by array) the address of extern arrays there. `variable_entities` and `kernel_entities` have
    the entity of each variable and kernel.
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

    By entity: `values` (S in relocations), `symbol_values` and `merc_values` (st_value in .symtab
    and in .nv.merc.symtab); `homes`, its OutRow; `dynamic`, the address of extern arrays in a
    function; `lost`, 1 for a shared variable without a place; `symbol_index` in .symtab, and
    `instance_index`, that of a kernel's externsharedinstance. By OutRow: `outs`, `places`,
    `section_index` (in the file), `section_symbol_index` (in .symtab). In the order of the file:
    `section_order` (OutRow) and `symbol_order` (OutSymbolRow). `blobs` are the contents that the
    link makes, with the sections of each in `spans`. `size` is that of the file in bytes,
    `table_offset` the offset of its section headers, `null_value` the value of the null symbol.
    `out_symbols` and the string tables have the final names.
    """

    def __init__(self, merged: MergedTables, **tables: Table[object] | bytes) -> None: ...
    @property
    def merged(self) -> MergedTables: ...
    def add(self, contents: bytes | Blob, spans: Spans) -> None:
        """Add contents that the link makes, and the sections that they belong to."""

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
