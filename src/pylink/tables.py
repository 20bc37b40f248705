"""The packed rows of the native tables, for the few places where Python looks into one.

`rows.pxd` defines the rows; the formats here follow it field by field, which a test
compares. Names and numbers of a row come out as the diagnostics need them.
"""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

EXTENT = Struct("<QQ")
FILE = Struct("<QQ6I3Q")
SECTION = Struct("<4Q7IiHH")
SYMBOL = Struct("<4QIIiHBB")
ENTITY = Struct("<iiIIQQII")
CALL = Struct("<IIiI")
CLASH = Struct("<Iii")
FAULT = Struct("<iiqiiQQ")
FUNCTION = Struct("<IIiiiII")
OUT = Struct("<IIHHIQQII8i3IiiI")
SPAN = Struct("<iIQQ")
PATCH = Struct("<QQIHH")
REBUILD = Struct("<QqiiIIiiI")
PLACE = Struct("<QQII")
FIX = Struct("<QqI4iIii")
KEEP = Struct("<QqIiii")
POOL = Struct("<iiQQIIII")

# Column of an out row: the input section that it was born for.
OUT_SOURCE = 20

# Flags of an entity row.
KERNEL = 1
DEFINED = 2
LOCAL = 4
LIVE = 8
TAKEN = 64
UNSIZED = 512
DESELECTED = 2048

# Roles of a definition: an earlier one stayed, a later one came, it reaches the output.
LOST = 1
REPLACED = 2
WON = 3

# Kinds of an entity row.
FUNCTION_KIND = 0
CONSTANT_KIND = 2

# Blocks of a call row that are none; the callee of the last two is the number of a prototype.
DIRECT_CALL = -1
ADDRESS_TAKEN = -2
INDIRECT_CALL = -3

NO_STACK_BOUND = 0xFFFFFFFF

# In the last field of a function row: a kernel beside the only one that was selected.
KEEPS_ALL = 2


def count(table: bytes, row: Struct) -> int:
    """Number of rows."""
    return len(table) // row.size


def text(arena: bytes, start: int, size: int) -> str:
    """A name from an input; bytes that are no UTF-8 come through as surrogates."""
    return arena[start : start + size].decode("utf-8", "surrogateescape")


def string(table: bytes, start: int) -> str:
    """A name of a string table, up to its NUL."""
    return text(table, start, table.index(b"\0", start) - start)


def section_name(arena: bytes, sections: bytes, row: int) -> str:
    fields = SECTION.unpack_from(sections, row * SECTION.size)
    return text(arena, fields[0], fields[4])


def symbol_name(arena: bytes, symbols: bytes, row: int) -> str:
    fields = SYMBOL.unpack_from(symbols, row * SYMBOL.size)
    return text(arena, fields[0], fields[4])


def entity_name(arena: bytes, symbols: bytes, entities: bytes, row: int) -> str:
    return symbol_name(arena, symbols, ENTITY.unpack_from(entities, row * ENTITY.size)[0])


def symbol_file(symbols: bytes, row: int) -> int:
    """Number of the file that symbol `row` comes from."""
    number: int = SYMBOL.unpack_from(symbols, row * SYMBOL.size)[5]
    return number


def section_file(sections: bytes, row: int) -> int:
    """Number of the file that section `row` comes from."""
    number: int = SECTION.unpack_from(sections, row * SECTION.size)[10]
    return number


def file_sections(files: bytes, number: int) -> range:
    """Rows of the sections of a file, in order of their indices in it."""
    row = FILE.unpack_from(files, number * FILE.size)
    return range(row[2], row[2] + row[3])


def rows(table: bytes, row: Struct) -> Iterator[tuple[int, ...]]:
    """All rows, as tuples of their fields."""
    return row.iter_unpack(table)


def span(out: int, size: int) -> bytes:
    """A SpanRow that gives a whole blob to one output section."""
    return SPAN.pack(out, 0, 0, size)
