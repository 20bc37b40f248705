"""Makes tables for native functions from rows with named columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import TypeVar

from pylink._native.results import MergedTables, ObjectTables
from pylink._native.tables import Files, Sections, Symbols, Table
from pylink.facts import sectionkinds

T = TypeVar("T", bound="Table[object]")

# Characters of `struct` by data type of a column.
CODES = {"<i4": "i", "<u4": "I", "<i8": "q", "<u8": "Q", "<u2": "H", "<u1": "B"}

# Columns that name a row; their default is -1, none.
NONE = {"target", "section", "entity", "twin", "merc", "rel", "rela", "source", "head", "next"}

# Kinds of sections that describe a file.
NOTES = {
    sectionkinds.TKINFO,
    sectionkinds.CUINFO,
    sectionkinds.INFO,
    sectionkinds.COMPAT,
    sectionkinds.CALLGRAPH,
    sectionkinds.PROTOTYPE,
}


def table(kind: type[T], rows: Iterable[Mapping[str, int] | int]) -> T:
    """Return a table of rows, or of numbers; a missing column is 0, or -1 if it names a row."""
    columns = kind().dtype
    if isinstance(columns, str):
        number = Struct("<" + CODES[columns])
        return kind(b"".join(map(number.pack, rows)))
    row_format = Struct("<" + "".join(CODES[code] for _, code in columns))
    empty = {name: -1 if code.startswith("<i") and name in NONE else 0 for name, code in columns}
    data = []
    for row in rows:
        assert isinstance(row, Mapping)
        assert row.keys() <= empty.keys()
        data.append(row_format.pack(*{**empty, **row}.values()))
    return kind(b"".join(data))


def objects(
    arena: bytes = b"",
    *,
    files: Iterable[Mapping[str, int]] = (),
    sections: Iterable[Mapping[str, int]] = (),
    symbols: Iterable[Mapping[str, int]] = (),
    family: int = 0,
    mode: int = 0,
) -> ObjectTables:
    """Return the tables of inputs with these rows.

    Sections of notes and code are added to the files' rows.
    """
    sections = list(sections)
    file_rows = [
        {
            **file,
            **_stretch("first_note", "note_end", NOTES, sections, number),
            **_stretch("first_code", "code_end", {sectionkinds.TEXT}, sections, number),
        }
        for number, file in enumerate(files)
    ]
    return ObjectTables(
        arena,
        table(Files, file_rows),
        table(Sections, sections),
        table(Symbols, symbols),
        family=family,
        mode=mode,
    )


def _stretch(
    first: str, end: str, kinds: set[int], sections: list[Mapping[str, int]], file: int
) -> dict[str, int]:
    """Return columns of a file's row with the first section of some kinds, and the end of these."""
    numbers = [
        number
        for number, section in enumerate(sections)
        if section.get("file", 0) == file and section.get("kind") in kinds
    ]
    return {first: numbers[0], end: numbers[-1] + 1} if numbers else {}


def merged(inputs: ObjectTables | None = None, **tables: Table[object] | bytes) -> MergedTables:
    """Return the tables of merge, as far as they are given, for phases of merge."""
    return MergedTables(inputs or objects(), **tables)
