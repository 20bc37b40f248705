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
    first_number,
    schema_of,
    section_table,
    show_bytes,
)
from pylink.fleet.contents import FileResult, read_contents
from pylink.fleet.digests import list_hashed
from pylink.fleet.targets import folder_targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.fleet.contents import Source
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
    pa = need("pyarrow")
    first = first_number(part.run, part.number)
    results: list[FileResult] = []
    objects: list[Any] = []
    sections: list[Any] = []
    count = 0
    for batch in read_contents(part.files, results):
        native = list_hashed(batch.arena, batch.extents)
        if count + len(batch.cubins) + len(batch.others) > MOST_ROWS:
            raise OverflowError(f"one fragment holds at most {MOST_ROWS} objects")
        numbers = need("numpy").arange(first + count, first + count + len(batch.cubins))
        count += len(batch.cubins)
        objects.append(_objects(batch.cubins, native[0], first, numbers))
        sections.append(section_table(numbers, native))
        if batch.others:
            objects.append(_others(batch.others, first, first + count))
            count += len(batch.others)
    tables = {
        "files": _files(part, results, first),
        "objects": pa.concat_tables([schema_of(OBJECTS).empty_table(), *objects]),
        "sections": _joined(sections),
    }
    return {name: stored(tables[name]) for name in TABLES}


def _files(part: Part, results: Sequence[FileResult], first: int) -> Any:
    gone = [FileResult(GONE, None, file.stamp.forgotten()) for file in part.gone]
    files, results = [*part.files, *part.gone], [*results, *gone]
    stamps = [result.stamp for result in results]
    columns: dict[str, list[object]] = {
        "file": [*range(first, first + len(files))],
        "root": [file.root for file in files],
        "path": [file.path for file in files],
        "name": [show_bytes(file.path) for file in files],
        "target": [*folder_targets(file.path for file in files)],
        "size": [stamp.size for stamp in stamps],
        "mtime": [stamp.mtime for stamp in stamps],
        "ctime": [stamp.ctime for stamp in stamps],
        "inode": [stamp.inode for stamp in stamps],
        "kind": [result.kind for result in results],
        "note": [result.note for result in results],
    }
    return need("pyarrow").table(columns, schema=schema_of(FILES))


def _objects(sources: Sequence[Source], native: bytes, first: int, numbers: Any) -> Any:
    """The rows of the cubins."""
    np, pa = need("numpy"), need("pyarrow")
    rows = np.frombuffer(native, OBJECT_ROW)
    faults: list[str | None] = [None] * len(rows)
    for row in np.flatnonzero(rows["fault"]).tolist():
        faults[row] = FAULTS[int(rows["fault"][row])].format(int(rows["section"][row]))
    arrays = [
        pa.array(numbers),
        pa.array([first + source.file for source in sources], pa.int64()),
        pa.array([source.member for source in sources], pa.string()),
        pa.array([source.entry for source in sources], pa.int32()),
        pa.array(["cubin"] * len(rows), pa.string()),
        pa.array(rows["sm"].astype("i4")),
        pa.array(rows["type"] == ET_EXEC),
        pa.array(rows["size"].astype("i8")),
        pa.array(rows["count"].astype("i4")),
        pa.array(faults, pa.string()),
    ]
    return pa.Table.from_arrays(arrays, schema=schema_of(OBJECTS))


def _others(sources: Sequence[Source], first: int, number: int) -> Any:
    """The rows of what is compiled only later: no sections are known of it."""
    columns: dict[str, list[object]] = {
        "object": [*range(number, number + len(sources))],
        "file": [first + source.file for source in sources],
        "member": [source.member for source in sources],
        "entry": [source.entry for source in sources],
        "kind": [source.kind for source in sources],
        "sm": [None for _ in sources],
        "linked": [False for _ in sources],
        "size": [source.size for source in sources],
        "sections": [0 for _ in sources],
        "fault": [None for _ in sources],
    }
    return need("pyarrow").table(columns, schema=schema_of(OBJECTS))


def _joined(tables: Sequence[Any]) -> Any:
    """One table with one dictionary of names, as if all had been read at once."""
    pa = need("pyarrow")
    joined = pa.concat_tables([schema_of(SECTIONS).empty_table(), *tables])
    return joined.unify_dictionaries().combine_chunks()


def stored(table: Any) -> bytes:
    """One of the tables as a fragment has it."""
    words = [name for name in table.column_names if name not in ("digest", "offset")]
    return as_parquet(table, use_dictionary=words, write_statistics=False)
