"""Tables, which own the rows that phases pass on.

A table is packed C rows of one type. Rows are numbered from 0; the number is the only reference,
and -1 is none. Tables are immutable. Python reads columns by name (`pylink.rows` has all names),
and numpy all of them at once: `numpy.frombuffer(table, table.dtype)`.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from pylink import rows

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T", bound="Table[object]")

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

class Files(Table[rows.FileRow]):
    """Input files, in command-line order."""

class Sections(Table[rows.SectionRow]):
    """Sections of all inputs, file by file."""

class Symbols(Table[rows.SymbolRow]):
    """Symbols of all inputs, file by file."""

class Faults(Table[rows.FaultRow]):
    """Reasons why an input was refused: empty, or one row."""

class Entities(Table[rows.EntityRow]):
    """Distinct symbols of the link, in creation order."""

class Calls(Table[rows.CallRow]):
    """Rows of the call graph, in input order."""

class Clashes(Table[rows.ClashRow]):
    """Contradictions between symbols of one name."""

class Functions(Table[rows.FunctionRow]):
    """Properties that each entity inherits over the call graph, such as registers."""

class LiteralPools(Table[rows.PoolRow]):
    """Pieces of pools of literals, and where each is in which pool, in order of placement."""

class Outs(Table[rows.OutRow]):
    """Sections of the output, in creation order."""

class OutSymbols(Table[rows.OutSymbolRow]):
    """Symbols of the output, in creation order."""

class Emitted(Table[rows.EmittedRow]):
    """Relocations that the output contains."""

class Fixups(Table[rows.FixupRow]):
    """Relocations that the link resolves."""

class Rebuilds(Table[rows.RebuildRow]):
    """Relocations of debug sections that the link computes again, from sm_100 on."""

class Spans(Table[rows.SpanRow]):
    """Ranges of one blob, each with the output section whose contents it is."""

    @staticmethod
    def whole(out: int, size: int) -> Spans:
        """Return one row that assigns a whole blob, of `size` bytes, to the section `out`."""

class FilePlaces(Table[rows.PlaceRow]):
    """Offset and size in the file, name and source of each output section."""

class Patches(Table[rows.PatchRow]):
    """Fields of the image that relocations patch, each with its value."""

class SharedVariables(Table[rows.VariableRow]):
    """Shared variables that are not overridden, in creation order."""

class SharedUses(Table[rows.UseRow]):
    """Pairs of a shared variable and a kernel that uses it, in any order, some more than once."""

class ExternUses(Table[rows.ExternUseRow]):
    """Kernels that use extern arrays, with the function that refers to the array."""

class SharedSizes(Table[rows.KernelRow]):
    """Shared memory of each kernel, and of `.nv_debug.shared` at the end."""

class Numbers(Table[int]):
    """Numbers of rows, i32; -1 for no row."""

class Indices(Table[int]):
    """Indices in the output of sections or symbols, or offsets in .strtab, u32; 0 if not there."""

class Values(Table[int]):
    """Addresses, sizes and offsets, u64."""

class Offsets(Table[int]):
    """Offsets, i64; -1 without an offset."""

class Marks(Table[int]):
    """Numbers of one byte: 0 or 1, or a Resolution."""

class Blob(Table[int]):
    """Bytes: a string table of the output, contents that the link makes, or packed rows."""

    def string(self, offset: int) -> bytes:
        """Return the string at an offset, without its NUL; `IndexError` if no NUL follows."""
