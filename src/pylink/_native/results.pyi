"""Results of phases, which own the tables that phases pass on.

Native functions take results, so that no two tables can be swapped, and fill the columns that
their stubs name. `seal` checks the sizes of tables against each other when the phase returns;
afterwards none can be set.
"""

from typing import TypeVar

from pylink._native.tables import (
    Blob,
    Calls,
    Emitted,
    Entities,
    ExternUses,
    FilePlaces,
    Files,
    Fixups,
    Functions,
    Indices,
    LiteralPools,
    Marks,
    Numbers,
    Offsets,
    Outs,
    OutSymbols,
    Rebuilds,
    Sections,
    SharedSizes,
    SharedUses,
    SharedVariables,
    Spans,
    Symbols,
    Table,
    Values,
)

ResultT = TypeVar("ResultT", bound="Result")

class Result:
    """The tables of a phase. Bytes that are assigned become a table of the column's type."""

    def seal(self: ResultT) -> ResultT:
        """Check that the tables have consistent sizes, let none be set any more, return itself."""

class ObjectTables(Result):
    """The inputs, and the options that native functions need.

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

    By input symbol: `symbol_entity`, its entity, and `symbol_resolution`, what became of its
    definition (a Resolution). `met` are the symbols with an entity, in the order in which the link
    meets them. By entity: `functions`, `referenced` (any code refers to it), `array_align` (with
    -r: the largest alignment stated by extern arrays that a kernel's own code names, 1 if not
    stated, 0 without arrays). By input section: `section_function`, the function to whose copy it
    belongs, or -1, and `section_resolution`, what became of that copy; `stand_ins`, the section
    that replaces it, or -1 (the column is empty if nothing folds); `out_of`, its output section, or
    -1; `base`, its offset there. Prototypes are strings: `prototypes` are their arena offsets,
    `prototype_offsets` their offsets in .strtab.
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
    are `offsets`, the address of each variable; `kernels`, the sizes of each kernel; and `ties`, by
    entity of a device function (with -g of an array) the address of its extern arrays.
    `variable_entities` and `kernel_entities` have the entity of each variable and kernel.
    `kernel_count` is the number of kernels, `tie_count` that of the rows of `ties`, one for each
    entity.
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
    and in .nv.merc.symtab); `homes`, the OutRow that it is in, or -1; `dynamic`, the address of
    extern arrays in a function; `lost`, 1 for a shared variable without a place; `symbol_index` in
    .symtab, and `instance_index`, that of a kernel's externsharedinstance. By OutRow: `outs`,
    `places`, `section_index` (in the file), `section_symbol_index` (in .symtab). In the order of
    the file: `section_order` (OutRow) and `symbol_order` (OutSymbolRow). `blobs` are the contents
    that the link makes, with the sections of each in `spans`. `size` is that of the file in bytes,
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
