"""The tables of an index: their columns, and how Parquet files of them are read.

Numbers of files and objects have 64 bits: the number of the run that made the fragment, that of the
task (part) of the run, and that of the row. They grow with time, so of two rows for one file the
one with the larger number counts.
"""

from __future__ import annotations

from typing import Any

from pylink.packages.extras import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The number of a file or an object in an index has, from the lowest bit on: bits for the row, bits
# for the part (the task of a run that read the file), and the number of the run that indexed it.
ROW_BITS, PART_BITS = 24, 20
MOST_ROWS, MOST_RUNS = 1 << ROW_BITS, 1 << (63 - ROW_BITS - PART_BITS)

DIGEST_SIZE = 16  # bytes

# Kinds of files: a cubin, a file without device code, a removed file. The module `contents`
# has the others.
CUBIN, OTHER, GONE = "cubin", "other", "gone"


def first_number(run: int, part: int) -> int:
    """Return the number of the first row of a part, i.e. a task of an indexing run."""
    return run << (ROW_BITS + PART_BITS) | part << ROW_BITS


# Types of columns are those of pyarrow, "words" for texts that repeat, and "digest" for DIGEST_SIZE
# bytes.

# A row for each file: `path` below `root`; `name` is the path as text; `target` is the build target
# (what a build links from several files) that the directory of the file is for, or an archive
# itself. Times (ns) and `inode` are 0 if they cannot be trusted.
FILES = {
    "file": "int64",
    "root": "binary",
    "path": "binary",
    "name": "string",
    "target": "string",
    "size": "int64",
    "mtime": "int64",
    "ctime": "int64",
    "inode": "uint64",
    "kind": "string",
    "note": "string",
}
# A row for each cubin, PTX text or LTO-IR module. `member` is the archive member that contains it,
# empty for the file itself, and `entry` its number in the file. `size` is the size of the unpacked
# code, and `packed` its bytes in the file, with the header of an entry. `sections` is the number of
# sections, and `fault` says why they cannot be read.
OBJECTS = {
    "object": "int64",
    "file": "int64",
    "member": "string",
    "entry": "int32",
    "kind": "string",
    "sm": "int32",
    "linked": "bool_",
    "size": "int64",
    "packed": "int64",
    "sections": "int32",
    "fault": "string",
}
# A row for each section; its name is the family and, if there is one, a dot and the suffix.
# `stored` are its bytes in the file, `own` those that no earlier section of the file has, so that
# sums count each byte once.
SECTIONS = {
    "object": "int64",
    "number": "int32",
    "family": "words",
    "suffix": "words",
    "type": "uint32",
    "info": "uint32",
    "offset": "int64",
    "size": "uint64",
    "stored": "int64",
    "own": "int64",
    "align": "uint64",
    "digest": "digest",
}
# The tables by the name of their Parquet file.
TABLES = {"files": FILES, "objects": OBJECTS, "sections": SECTIONS}

# A row for each file of a build target, if there is a description of targets; `place` is the file's
# number among the target's inputs.
MEMBERS = {"target": "string", "root": "binary", "path": "binary", "place": "int32"}


def schema_of(columns: Mapping[str, str]) -> Any:
    """Return the Arrow schema of a table; `columns` maps each name to its type."""
    pa = need("pyarrow")
    special = {"words": pa.string(), "digest": pa.binary(DIGEST_SIZE)}
    return pa.schema(
        [(name, special.get(kind) or getattr(pa, kind)()) for name, kind in columns.items()]
    )


def as_parquet(table: Any, **options: Any) -> bytes:
    """Return a table as the bytes of a Parquet file; `options` are those of write_table."""
    pa, pq = need("pyarrow"), need("pyarrow.parquet")
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="lz4", **options)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_table(source: Any, columns: Sequence[str] | None = None) -> Any:
    """Read a table from a file or path; other readers than ParquetFile load pandas."""
    with need("pyarrow.parquet").ParquetFile(source) as file:
        return file.read(columns)


def show_bytes(name: bytes) -> str:
    """Return a name as text for a column; bytes that are not UTF-8 are escaped.

    Questions compare stored names, so these keep their control characters. `printable` escapes them
    when a name is shown.
    """
    return name.decode("utf-8", "backslashreplace")
