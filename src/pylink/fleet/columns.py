"""The tables of an index: their columns, and how those of the native reader become them.

Numbers of files and objects are 64 bits wide and say where they come from: the run that made the
fragment, the part of that run, the row. They grow with time, so of two rows for one file the one
with the larger number counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylink.command.packages import need

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pylink._native.sectionindex import Columns

# Bits of a number below the part, and below the run.
ROW_BITS, PART_BITS = 24, 20
MOST_ROWS, MOST_PARTS = 1 << ROW_BITS, 1 << PART_BITS

# Rows of objects of the native readers.
OBJECT_ROW = [
    ("fault", "<u4"),
    ("section", "<u4"),
    ("sm", "<u4"),
    ("type", "<u4"),
    ("size", "<u8"),
    ("count", "<u8"),
]
DIGEST_SIZE = 16

TABLES = ("files", "objects", "sections")

# The kind of a file that is not there any more.
GONE = "gone"


def first_number(run: int, part: int) -> int:
    """The number of the first row of a part."""
    return run << (ROW_BITS + PART_BITS) | part << ROW_BITS


# A row for each file: `path` below `root`, `name` the same as text, `target` by its folder. Times
# (ns) and `inode` are 0 where they tell nothing.
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
# A row for each piece of device code. `member` is empty where it is the file itself.
OBJECTS = {
    "object": "int64",
    "file": "int64",
    "member": "string",
    "entry": "int32",
    "kind": "string",
    "sm": "int32",
    "linked": "bool_",
    "size": "int64",
    "sections": "int32",
    "fault": "string",
}
# A row for each section; its name is family, a dot and the suffix where it has one.
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
    "align": "uint64",
    "digest": "digest",
}
# A row for each file of a target, where a description says so.
MEMBERS = {"target": "string", "root": "binary", "path": "binary", "place": "int32"}


def schema_of(columns: Mapping[str, str]) -> Any:
    """The schema of a table, of names and types."""
    pa = need("pyarrow")
    special = {
        "words": pa.dictionary(pa.int32(), pa.string()),
        "digest": pa.binary(DIGEST_SIZE),
    }
    return pa.schema(
        [(name, special.get(kind) or getattr(pa, kind)()) for name, kind in columns.items()]
    )


def as_parquet(table: Any, **options: Any) -> bytes:
    """A table as the bytes of a file; `options` are those of write_table."""
    pa, pq = need("pyarrow"), need("pyarrow.parquet")
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="lz4", **options)
    made: bytes = sink.getvalue().to_pybytes()
    return made


def read_table(path: Path, columns: Sequence[str] | None = None) -> Any:
    """A table of a file; by the reader of single files, since that of data sets loads pandas."""
    with need("pyarrow.parquet").ParquetFile(path) as file:
        return file.read(columns)


def column(kind: str, values: Sequence[Any]) -> Any:
    """Values as a column of one of the tables; a list may have None.

    It is made of buffers, since pyarrow.array loads pandas where that is installed.
    """
    np, pa = need("numpy"), need("pyarrow")
    validity = None
    if isinstance(values, list) and None in values:
        validity = np.packbits([one is not None for one in values], bitorder="little")
        nothing: Any = {"string": "", "binary": b""}.get(kind, 0)
        values = [nothing if one is None else one for one in values]
    if kind in ("string", "binary"):
        parts = values if kind == "binary" else [one.encode() for one in values]
        ends = np.zeros(len(parts) + 1, "i4")
        np.cumsum([*map(len, parts)], out=ends[1:])
        data = [ends, b"".join(parts)]
    elif kind == "bool_":
        data = [np.packbits(np.asarray(values, bool), bitorder="little")]
    else:
        data = [np.asarray(values, kind)]
    buffers = [None if one is None else pa.py_buffer(bytes(one)) for one in (validity, *data)]
    return pa.Array.from_buffers(getattr(pa, kind)(), len(values), buffers)


def section_table(native: Columns) -> Any:
    """The sections of one call of a native reader."""
    pa = need("pyarrow")
    _, parts, families, suffixes = native
    schema = schema_of(SECTIONS)
    count = len(parts[0]) // 8
    words = {"family": families, "suffix": suffixes}
    arrays = []
    for field, part in zip(schema, parts, strict=True):
        named = words.get(field.name)
        kind = pa.int32() if named else field.type
        array = pa.Array.from_buffers(kind, count, [None, pa.py_buffer(part)])
        if named:
            array = pa.DictionaryArray.from_arrays(array, _words(*named))
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema)


def _words(ends: bytes, text: bytes) -> Any:
    """Names as text; those with bytes that are no UTF-8 have escapes for them."""
    pa = need("pyarrow")
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(text)]
    names = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends) // 8 - 1, buffers)
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return column("string", [show_bytes(name) for name in names.to_pylist()])


def show_bytes(name: bytes) -> str:
    """A name as text that is valid everywhere."""
    return name.decode("utf-8", "backslashreplace")
