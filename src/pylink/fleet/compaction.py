"""Merges fragments, so that an index stays as fast as a new one.

Two rules apply after each run that found changes. If the last fragments are many small ones, they
are merged. If many more rows of files are outdated than current, fragments with outdated rows are
rewritten without them. A new fragment is named after the first and the last of those that it
replaces, and hides them as soon as it has its name; then they are removed. Rows keep their numbers.
"""

from __future__ import annotations

from array import array
from typing import Any

from pylink.fleet.columns import TABLES, as_parquet, read_table, schema_of
from pylink.fleet.index import FragmentName
from pylink.packages.extras import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylink.fleet.index import Index

# A fragment (the tables that one task of a run added to an index) is small with fewer rows of files
# than SMALL_FRAGMENT. At least MANY_FRAGMENTS small ones at the end of an index are merged.
# Each fragment costs a run 50 us and a question less than 1 ms. Merging MANY_FRAGMENTS costs half a
# second, ten times as much as an ordinary run.
SMALL_FRAGMENT = 1024
MANY_FRAGMENTS = 64


def compact(index: Index, file_count: int, counts: Mapping[str, int]) -> None:
    """Merge small fragments and remove outdated rows, if there are many; the caller holds the lock.

    `file_count` is the number of existing files in the index, and `counts` are the numbers of file
    rows by the name of the fragment.
    """
    rows_of = {fragment: counts[fragment] for fragment in index.fragments}
    if sum(rows_of.values()) > 2 * file_count + SMALL_FRAGMENT:
        current_rows = find_current(index, index.fragments)
        for fragment, count in rows_of.items():
            if len(_read_current(index, fragment, current_rows)) < count:
                replace_fragments(index, [fragment], current_rows)
        rows_of = {fragment: index.count_rows(fragment) for fragment in index.fragments}
    small: list[str] = []
    for fragment in reversed(rows_of):
        if rows_of[fragment] >= SMALL_FRAGMENT:
            break
        small.insert(0, fragment)
    if len(small) >= MANY_FRAGMENTS:
        replace_fragments(index, small, find_current(index, small))


def replace_fragments(index: Index, fragments: Sequence[str], current_rows: Any) -> None:
    """Replace adjacent fragments by one, with only the file rows in `current_rows`."""
    index.check(fragments)
    pa, pc = need("pyarrow"), need("pyarrow.compute")
    files = pa.concat_tables(
        [_read_current(index, fragment, current_rows) for fragment in fragments]
    )
    objects = pa.concat_tables([_read(index, fragment, "objects") for fragment in fragments])
    objects = objects.filter(pc.is_in(objects["file"], files["file"].combine_chunks()))
    numbers = objects["object"].combine_chunks()
    sections = []
    for fragment in fragments:
        table = _read(index, fragment, "sections")
        sections.append(table.filter(pc.is_in(table["object"], numbers)))
    tables = {"files": files, "objects": objects, "sections": pa.concat_tables(sections)}
    names = [name for fragment in fragments if (name := FragmentName.of(fragment)) is not None]
    serial = max(name.serial for name in names) + 1
    name = FragmentName(names[0].first, names[-1].last, serial)
    index.publish(str(name), {table: _pack(rows) for table, rows in tables.items()})
    index.remove_leftovers()


def find_current(index: Index, fragments: Sequence[str]) -> Any:
    """Return the numbers of the current rows: the last row of each file, even if it was removed.

    `fragments` are the last ones of an index, or all, since any later fragment may replace a row.
    """
    pa = need("pyarrow")
    last: dict[tuple[bytes, bytes], int] = {}
    for fragment in fragments:
        table = _read(index, fragment, "files", ["file", "root", "path"])
        columns = (table[name].to_pylist() for name in ("file", "root", "path"))
        for file, root, path in zip(*columns, strict=True):
            last[root, path] = file
    numbers = array("q", sorted(last.values()))
    # pyarrow.array would load pandas if installed, which takes as long as everything else.
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def _read_current(index: Index, fragment: str, current_rows: Any) -> Any:
    """Read the rows of a fragment's table of files whose numbers are in `current_rows`."""
    table = _read(index, fragment, "files")
    return table.filter(need("pyarrow.compute").is_in(table["file"], current_rows))


def _read(index: Index, fragment: str, name: str, columns: Sequence[str] | None = None) -> Any:
    """Read the table `name` of a fragment, cast to the present column types."""
    kinds = (
        TABLES[name] if columns is None else {column: TABLES[name][column] for column in columns}
    )
    return read_table(index.fragment_path(fragment, f"{name}.parquet"), columns).cast(
        schema_of(kinds)
    )


def _pack(table: Any) -> bytes:
    """Return a table of a fragment as a Parquet file."""
    names = [name for name in table.column_names if name not in ("digest", "offset")]
    return as_parquet(table, use_dictionary=names, write_statistics=False)
