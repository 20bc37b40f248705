"""One fragment of an index: some files, the device code in them, and the sections of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylink.command.packages import need
from pylink.facts.elf import ET_EXEC
from pylink.fleet.columns import (
    FILES,
    GONE,
    MOST_ROWS,
    OBJECT_ROW,
    OBJECTS,
    SECTIONS,
    TABLES,
    as_parquet,
    column,
    first_number,
    schema_of,
    section_table,
    show_bytes,
)
from pylink.fleet.contents import FATES, read_contents, read_directly
from pylink.fleet.digests import hasher, list_hashed
from pylink.fleet.targets import folder_targets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylink._native.sectionindex import Columns
    from pylink.fleet.contents import FileResult, Source
    from pylink.fleet.parts import Part

FAULTS = {
    1: "it has no ELF header of a cubin",
    2: "its section headers do not lie in the file",
    3: "it has no section with the names of sections",
    4: "section {}: its name does not lie in the section with names",
    5: "section {}: its bytes do not lie in the file",
    6: "sections up to number {} have more than four times the bytes of the file",
    7: "names of sections up to number {} have more bytes than the file",
}


def make_fragment(part: Part) -> dict[str, bytes]:
    """Parquet files by the names of their tables; the same bytes wherever and whenever made."""
    first = first_number(part.run, part.number)
    fates = bytes([FATES.index("")]) * len(part.files)
    objects: list[Any] = []
    sections: list[Any] = []
    count = 0

    def take(rows: Sequence[int], members: Sequence[Source] | None, native: Columns) -> None:
        nonlocal count
        objects.append(_objects([first + row for row in rows], members, native[0], first + count))
        sections.append(section_table(native))
        count += len(rows)

    def check(more: int) -> None:
        if count + more > MOST_ROWS:
            raise OverflowError(f"one fragment holds at most {MOST_ROWS} objects")

    if hasher():
        check(len(part.files))
        fates, native = read_directly(part.files, first, hasher())
        take([row for row, fate in enumerate(fates) if FATES[fate] == FATES[0]], None, native)
    results: dict[int, FileResult] = {}
    closely = [row for row, fate in enumerate(fates) if not FATES[fate]]
    for batch in read_contents(closely, part.files, results):
        check(len(batch.cubins) + len(batch.others))
        native = list_hashed(batch.arena, batch.extents, first + count)
        take([source.file for source in batch.cubins], batch.cubins, native)
        if batch.others:
            objects.append(_others(batch.others, first, first + count))
            count += len(batch.others)
    tables = {
        "files": _files(part, fates, results, first),
        "objects": _joined(OBJECTS, objects),
        "sections": _joined(SECTIONS, sections),
    }
    return {name: stored(tables[name]) for name in TABLES}


def _files(part: Part, fates: bytes, results: dict[int, FileResult], first: int) -> Any:
    files = [*part.files, *part.gone]
    kinds = [FATES[fate] for fate in fates] + [GONE] * len(part.gone)
    notes: list[str | None] = [None] * len(files)
    stamps = [file.stamp for file in part.files] + [file.stamp.forgotten() for file in part.gone]
    for row, result in results.items():
        kinds[row], notes[row], stamps[row] = result.kind, result.note, result.stamp
    paths = [file.path for file in files]
    return _table(
        FILES,
        {
            "file": range(first, first + len(files)),
            "root": [file.root for file in files],
            "path": paths,
            "name": [show_bytes(path) for path in paths],
            "target": [*folder_targets(paths)],
            "size": [stamp.size for stamp in stamps],
            "mtime": [stamp.mtime for stamp in stamps],
            "ctime": [stamp.ctime for stamp in stamps],
            "inode": [stamp.inode for stamp in stamps],
            "kind": kinds,
            "note": notes,
        },
    )


def _objects(
    files: Sequence[int], members: Sequence[Source] | None, native: bytes, number: int
) -> Any:
    """The rows of cubins of these files, the first of this number."""
    np = need("numpy")
    rows = np.frombuffer(native, OBJECT_ROW)
    faults: list[str | None] = [None] * len(rows)
    for row in np.flatnonzero(rows["fault"]).tolist():
        faults[row] = FAULTS[int(rows["fault"][row])].format(int(rows["section"][row]))
    nothing = [0] * len(rows)
    return _table(
        OBJECTS,
        {
            "object": range(number, number + len(rows)),
            "file": files,
            "member": [one.member for one in members] if members else [""] * len(rows),
            "entry": [one.entry for one in members] if members else nothing,
            "kind": ["cubin"] * len(rows),
            "sm": rows["sm"],
            "linked": rows["type"] == ET_EXEC,
            "size": rows["size"],
            "sections": rows["count"],
            "fault": faults,
        },
    )


def _others(sources: Sequence[Source], first: int, number: int) -> Any:
    """The rows of what is compiled only later: no sections are known of it."""
    nothing = [0] * len(sources)
    return _table(
        OBJECTS,
        {
            "object": range(number, number + len(sources)),
            "file": [first + source.file for source in sources],
            "member": [source.member for source in sources],
            "entry": [source.entry for source in sources],
            "kind": [source.kind for source in sources],
            "sm": [None] * len(sources),
            "linked": nothing,
            "size": [source.size for source in sources],
            "sections": nothing,
            "fault": [None] * len(sources),
        },
    )


def _table(columns: Mapping[str, str], values: Mapping[str, Sequence[Any]]) -> Any:
    arrays = [column(kind, values[name]) for name, kind in columns.items()]
    return need("pyarrow").Table.from_arrays(arrays, schema=schema_of(columns))


def _joined(columns: Mapping[str, str], tables: Sequence[Any]) -> Any:
    """One table with one dictionary of names, as if all had been read at once."""
    if len(tables) == 1:
        return tables[0]
    joined = need("pyarrow").concat_tables(tables or [schema_of(columns).empty_table()])
    return joined.unify_dictionaries().combine_chunks()


def stored(table: Any) -> bytes:
    """One of the tables as a fragment has it."""
    words = [name for name in table.column_names if name not in ("digest", "offset")]
    return as_parquet(table, use_dictionary=words, write_statistics=False)
