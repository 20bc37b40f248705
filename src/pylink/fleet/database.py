"""An index as tables of DuckDB, with the current rows only.

| table | a row for each |
|---|---|
| files | file that was found: `file`, `path`, `root`, `size`, `kind`, `note` |
| objects | cubin, PTX or LTO-IR in a file: `object`, `file`, `path`, `member`, `sm`, `fault` |
| sections | section of a cubin: `object`, `name`, `family`, `function`, `stored`, `own`, `digest` |
| members | file of a target: `target`, `file`, `place` (its number among the inputs) |
| functions | mangled name that sections have: `function`, `name`, `template` |
| saving | target and architecture with Mercury debug sections: see `folding` |
| blockers | reason against folding, by target and architecture: see `folding` |
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

from pylink.demangle.templates import describe
from pylink.files.atomic import write_whole
from pylink.fleet.columns import GONE, TABLES, read_table
from pylink.fleet.index import REMAKE_ADVICE, BrokenIndex
from pylink.fleet.locks import Reading
from pylink.fleet.parquet import make_column, pack_table
from pylink.packages.extras import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pylink.fleet.index import Index

# Rows of a long answer that are fetched at once.
_ROWS_PER_FETCH = 1 << 14

# Families (stems of section names) after which the rest of the name is not that of a function.
_NOT_FUNCTIONS = "('.nv_debug_ptx_txt', '.nv.merc.nv_debug_ptx_txt')"

# Columns of the table of functions.
_FUNCTIONS = ("function", "name", "template")

_TABLES = """
CREATE TABLE {s}.files AS
    SELECT file, name AS path, CAST(root AS VARCHAR) AS root, size, kind, note,
           root AS raw_root, path AS raw_path, target AS folder_target, mtime, ctime, inode
    FROM (SELECT *, row_number() OVER (PARTITION BY root, path ORDER BY file DESC) AS place
          FROM read_parquet({files}))
    WHERE place = 1 AND kind <> '{gone}';
CREATE TABLE {s}.objects AS
    SELECT one.object, one.file, files.path, one.member, one.entry, one.kind, one.sm, one.linked,
           one.size, one.packed, one.sections, one.fault
    FROM read_parquet({objects}) AS one JOIN {s}.files AS files USING (file);
CREATE TABLE {s}.members AS {members};
CREATE VIEW {s}.sections AS
    SELECT object, number, family || CASE WHEN suffix = '' THEN '' ELSE '.' || suffix END AS name,
           family, suffix,
           CASE WHEN suffix <> '' AND family NOT IN {not_functions} THEN suffix END AS function,
           size, stored, own, align, info, "offset", digest
    FROM read_parquet({sections}) WHERE object IN (SELECT object FROM {s}.objects);
"""


# Queries for the files of each target: from a description of targets, or from directories.
_DESCRIBED = """
    SELECT one.target, files.file, one.place
    FROM read_parquet({targets}) AS one
    JOIN {s}.files AS files ON one.root = files.raw_root AND one.path = files.raw_path"""
_BY_DIRECTORY = """
    SELECT folder_target AS target, file,
           row_number() OVER (PARTITION BY folder_target ORDER BY raw_root, raw_path) - 1 AS place
    FROM {s}.files"""


# In DuckDB's messages, the number of the line of a query that is wrong.
_LINE = re.compile(r"LINE (\d+):")


class BadQuery(ValueError):
    """DuckDB refuses a query; the text is its reason."""


class Answer:
    """The answer to a query: column names and rows."""

    def __init__(self, columns: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
        self.columns = list(columns)
        self.rows = rows


class Database:
    """A database in memory with the tables of one index, or of several, each in its own schema."""

    def __init__(self) -> None:
        self._duckdb = need("duckdb")
        self._connection = self._duckdb.connect(":memory:")
        self._indexes: dict[str, Index] = {}
        self._readings: list[Reading] = []

    def add(self, index: Index, schema: str = "main") -> None:
        """Make the tables of an index; BrokenIndex if it cannot be read."""
        self._readings.append(Reading(index.fragment_path()))
        fragments = index.fragments  # once: a run may add some meanwhile
        if not fragments:
            raise BrokenIndex(f"{index.directory}: nothing is indexed: run `pylink dedup index`")
        index.check(fragments)
        self._indexes[schema] = index
        try:
            if schema != "main":
                self._connection.execute(f"CREATE SCHEMA {schema}")
            members = _DESCRIBED if index.settings.get("targets") else _BY_DIRECTORY
            text = _TABLES.format(
                s=schema,
                gone=GONE,
                not_functions=_NOT_FUNCTIONS,
                **{
                    name: _sql_files(
                        index.fragment_path(fragment, f"{name}.parquet") for fragment in fragments
                    )
                    for name in TABLES
                },
                members=members.format(
                    s=schema, targets=_sql_files([os.path.join(index.directory, "targets.parquet")])
                ),
            )
            self._connection.execute(text)
        except self._duckdb.Error as error:
            raise BrokenIndex(
                f"{index.directory}: {str(error).splitlines()[0]}: {REMAKE_ADVICE}"
            ) from error

    def ask(self, text: str, values: Sequence[object] = ()) -> Answer:
        """Run a query, with `values` for its parameters; BadQuery if DuckDB refuses it."""
        try:
            cursor = self._connection.execute(text, list(values))
            columns = [column[0] for column in cursor.description or ()]
            return Answer(columns, cursor.fetchall() if columns else [])
        except self._duckdb.Error as error:
            raise BadQuery(_shorten_message(error)) from error

    def check_query(self, text: str) -> None:
        """Check that a text is one query; BadQuery if not, since other statements could write."""
        try:
            kinds = [statement.type.name for statement in self._connection.extract_statements(text)]
        except self._duckdb.Error as error:
            raise BadQuery(_shorten_message(error)) from error
        if kinds != ["SELECT"]:
            listed = ", ".join(kinds) or "nothing"
            raise BadQuery(f"a query is one SELECT or the like; this is {listed}")

    def stream(self, text: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a long answer; no other query may run meanwhile."""
        cursor = self._connection.execute(text)
        while rows := cursor.fetchmany(_ROWS_PER_FETCH):
            yield from rows

    def protect(self) -> None:
        """Keep queries from reading and writing files other than the index's."""
        directories = [os.path.abspath(index.directory) + "/" for index in self._indexes.values()]
        self._connection.execute(f"SET allowed_directories = {_sql_list(directories)}")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def add_functions(self, schema: str = "main") -> None:
        """Make the table of functions; demangled names are cached in the index."""
        pa = need("pyarrow")
        index = self._indexes[schema]
        cache = os.path.join(index.directory, "functions.parquet")
        names: dict[str, tuple[str, str | None]] = {}
        with contextlib.suppress(OSError, pa.ArrowException, KeyError):
            table = read_table(cache)
            columns = [table[name].to_pylist() for name in _FUNCTIONS]
            names = {
                function: (name, template)
                for function, name, template in zip(*columns, strict=True)
            }
        query = f"SELECT DISTINCT function FROM {schema}.sections WHERE function IS NOT NULL"
        functions = sorted(row[0] for row in self.ask(query).rows)
        rows = [(function, *(names.get(function) or describe(function))) for function in functions]
        data = self.add_table("functions", dict.fromkeys(_FUNCTIONS, "words"), rows, schema)
        if len(names) != len(functions):
            with contextlib.suppress(OSError):  # an index that may only be read
                write_whole(cache, data)

    def add_table(
        self,
        name: str,
        kinds: Mapping[str, str],
        rows: Sequence[Sequence[Any]],
        schema: str = "main",
    ) -> bytes:
        """Make a table from columns (name to type) and rows; return it as a Parquet file.

        The rows are packed here, since conversions by pyarrow and DuckDB would load pandas if it is
        installed.
        """
        columns = list(zip(*rows, strict=True)) or [()] * len(kinds)
        data = pack_table(
            kinds, dict(zip(kinds, map(make_column, kinds.values(), columns), strict=True))
        )
        table = read_table(need("pyarrow").BufferReader(data))
        self._connection.register("taken", table)
        self._connection.execute(f"CREATE OR REPLACE TABLE {schema}.{name} AS FROM taken")
        self._connection.unregister("taken")
        return data


def _shorten_message(error: Exception) -> str:
    """Return DuckDB's message without the query below it and hints on similar spellings.

    A line number other than 1 is kept; a missing pytz becomes advice.
    """
    first, *rest = str(error).splitlines() or [type(error).__name__]
    if "'pytz'" in first:
        return (
            "times with a zone need the package pytz: pip install pytz, or cast them to TIMESTAMP"
        )
    line = next((match[1] for text in rest if (match := _LINE.match(text))), "1")
    return first if line == "1" else f"{first}, in line {line} of the query"


def _sql_files(paths: Iterable[str]) -> str:
    """Return files as an SQL list, with absolute names, which `protect` allows."""
    return _sql_list(map(os.path.abspath, paths))


def _sql_list(paths: Iterable[str]) -> str:
    """Return texts as an SQL list."""
    return "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in paths) + "]"
