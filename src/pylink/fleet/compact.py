"""Fewer fragments in place of many, so that an index stays as fast as a new one.

Two rules, after each run: where the last fragments are many small ones, one takes their place;
where more rows of files have been overtaken than count, each fragment is written anew without them.
A fragment that stands for others is named after the first and the last of them, and makes them
invisible in the moment in which it gets its name; then they are removed. Rows keep their numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pylink.command.packages import need
from pylink.fleet.columns import read_table
from pylink.fleet.fragment import stored
from pylink.fleet.index import FragmentName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.fleet.index import Index

# Files of a fragment that is small, and how many such in a row become one.
SMALL = 1024
MANY = 16


def compact(index: Index, live: int) -> None:
    """Apply both rules to an index of `live` files; for who holds the lock."""
    counts = {one: _count(one) for one in index.fragments}
    if sum(counts.values()) > 2 * live + SMALL:
        counting = current(index)
        for fragment, count in counts.items():
            if len(_files(fragment, counting)) < count:
                replace(index, [fragment], counting)
        counts = {one: _count(one) for one in index.fragments}
    small: list[Path] = []
    for fragment in reversed(index.fragments):
        if counts[fragment] >= SMALL:
            break
        small.insert(0, fragment)
    if len(small) >= MANY:
        replace(index, small, current(index))


def replace(index: Index, fragments: Sequence[Path], counting: Any) -> None:
    """One fragment for some that follow each other, with the rows of files in `counting` alone."""
    index.check(fragments)
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    files = pa.concat_tables([_files(one, counting) for one in fragments])
    objects = pa.concat_tables([_read(one, "objects") for one in fragments])
    objects = objects.filter(pc.is_in(objects["file"], files["file"].combine_chunks()))
    numbers = objects["object"].combine_chunks()
    sections = []
    for one in fragments:
        table = _read(one, "sections")
        sections.append(table.filter(pc.is_in(table["object"], numbers)))
    joined = pa.concat_tables(sections).unify_dictionaries().combine_chunks()
    tables = {"files": files, "objects": objects, "sections": joined}
    names = [name for one in fragments if (name := FragmentName.of(one.name)) is not None]
    serial = max(name.serial for name in names) + 1
    name = FragmentName(names[0].first, names[-1].last, serial)
    index.publish(str(name), {table: stored(rows) for table, rows in tables.items()})
    index.clean()


def current(index: Index) -> Any:
    """The numbers of the rows that count: of each file the last, also where it says it is gone."""
    pa = need("pyarrow")
    last: dict[tuple[bytes, bytes], int] = {}
    for one in index.fragments:
        table = _read(one, "files", ["file", "root", "path"])
        columns = (table[name].to_pylist() for name in ("file", "root", "path"))
        for file, root, path in zip(*columns, strict=True):
            last[root, path] = file
    return pa.array(sorted(last.values()), pa.int64())


def _files(fragment: Path, counting: Any) -> Any:
    table = _read(fragment, "files")
    return table.filter(need("pyarrow.compute").is_in(table["file"], counting))


def _count(fragment: Path) -> int:
    count: int = need("pyarrow.parquet").read_metadata(fragment / "files.parquet").num_rows
    return count


def _read(fragment: Path, name: str, columns: Sequence[str] | None = None) -> Any:
    return read_table(fragment / f"{name}.parquet", columns)
