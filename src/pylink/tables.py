"""Names and extents in the native tables, decoded for the few places where Python reads one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink._native.results import MergedTables, ObjectTables
    from pylink._native.tables import Blob

# Bytes of an extent: offset and size of a file in an arena, 8 bytes each. Modules of a plain link
# pack integers without `struct`, whose import takes half a millisecond.
EXTENT_SIZE = 16


def extent(offset: int, size: int) -> bytes:
    """Pack the extent of a file."""
    return (size << 64 | offset).to_bytes(EXTENT_SIZE, "little")


def extent_at(extents: bytes | bytearray, number: int) -> tuple[int, int]:
    """Unpack the offset and size of file `number`."""
    start = number * EXTENT_SIZE
    row = int.from_bytes(extents[start : start + EXTENT_SIZE], "little")
    return row & (1 << 64) - 1, row >> 64


def text(arena: bytes, start: int, size: int) -> str:
    """Return a name in the arena, the bytes of all inputs; invalid UTF-8 becomes surrogates."""
    return arena[start : start + size].decode("utf-8", "surrogateescape")


def string(table: Blob, start: int) -> str:
    """Return a name from a string table of the output.

    Bytes that are not UTF-8 become surrogates.
    """
    return table.string(start).decode("utf-8", "surrogateescape")


def section_name(objects: ObjectTables, number: int) -> str:
    """Return the name of an input section, by its row number."""
    row = objects.sections[number]
    return text(objects.arena, row.name, row.name_size)


def symbol_name(objects: ObjectTables, number: int) -> str:
    """Return the name of an input symbol, by its row number."""
    row = objects.symbols[number]
    return text(objects.arena, row.name, row.name_size)


def entity_name(merged: MergedTables, number: int) -> str:
    """Return the name of an entity, a distinct symbol of the link, by its row number."""
    return symbol_name(merged.objects, merged.entities[number].first)


def file_sections(objects: ObjectTables, number: int) -> range:
    """Return the row numbers of a file's sections, in order of their indices in the file."""
    row = objects.files[number]
    return range(row.first_section, row.first_section + row.section_count)
