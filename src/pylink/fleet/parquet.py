"""Writes the tables of an index as Parquet files, without a library.

Loading pyarrow and numpy takes as long as indexing thousands of objects, and a run that adds a few
need not read Parquet. The files use only features that all readers have: pages of version 1, plain
or dictionary encoding (`columnpages`), and LZ4 blocks. The format is described at
https://parquet.apache.org/docs/file-format and in .../apache/parquet-format/parquet.thrift.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple

from pylink._native import columnpages
from pylink.fleet.thrift import BINARY, I32, STRUCT, binary, i32, i64, list_of, struct, zigzag
from pylink.fleet.walk import ends_of
from pylink.packages.extras import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pylink.fleet.thrift import Value


class Numbers(NamedTuple):
    """A column of values of one size (a byte for booleans).

    `valid` has a byte for each row, 0 for null; None if no row is null.
    """

    values: bytes
    valid: bytes | None = None


class Texts(NamedTuple):
    """A column of texts: text `i` is from `ends[i]` to `ends[i + 1]` (int64) of `text`.

    With `numbers`, these texts are a dictionary, and each row has the number of its text (int32),
    -1 for null.
    """

    ends: bytes
    text: bytes
    numbers: bytes | None = None


Table = dict[str, Numbers | Texts]

# Limits: rows of a row group, which readers hold in memory; bytes of a page, a signed i32.
GROUP_ROWS = 1 << 20
MOST_BYTES = (1 << 31) - 1

_MAGIC = b"PAR1"
_VERSION = 1

# Numbers of the format: physical types, converted types, a repetition type, encodings, page types,
# the codec.
_BOOLEAN, _INT32, _INT64, _BYTE_ARRAY, _FIXED = 0, 1, 2, 6, 7
_UTF8, _UINT_32, _UINT_64 = 0, 13, 14
_OPTIONAL = 1
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_LZ4_RAW = 7

# By type of a column (see the module `columns`): physical type, converted type, bytes of a value (0
# for texts).
TYPES: dict[str, tuple[int, int | None, int]] = {
    "bool_": (_BOOLEAN, None, 1),
    "int32": (_INT32, None, 4),
    "int64": (_INT64, None, 8),
    "uint32": (_INT32, _UINT_32, 4),
    "uint64": (_INT64, _UINT_64, 8),
    "string": (_BYTE_ARRAY, _UTF8, 0),
    "words": (_BYTE_ARRAY, _UTF8, 0),
    "binary": (_BYTE_ARRAY, None, 0),
    "digest": (_FIXED, None, 16),
}


# The numbers in front of fields below are those of parquet.thrift.


def pack_table(columns: Mapping[str, str], table: Table) -> bytes:
    """Pack a table into a Parquet file; `columns` has the type of each column by its name.

    OverflowError if a column is too large, ValueError if columns differ in length.
    """
    rows = {_count_rows(kind, table[name]) for name, kind in columns.items()}
    if len(rows) != 1:
        raise ValueError("columns differ in length")
    (count,) = rows
    body = [_MAGIC]
    offset = len(_MAGIC)
    groups = []
    for start in range(0, count, GROUP_ROWS):
        end = min(count, start + GROUP_ROWS)
        chunks, total = [], 0
        for name, kind in columns.items():
            part = table[name] if end - start == count else _slice(kind, table[name], start, end)
            pages, metadata, size = _pack_chunk(name, kind, part, end - start, offset)
            body += pages
            offset += sum(map(len, pages))
            chunks.append(metadata)
            total += size
        groups.append(struct((1, list_of(STRUCT, chunks)), (2, i64(total)), (3, i64(end - start))))
    footer = struct(
        (1, i32(_VERSION)),
        (2, list_of(STRUCT, _pack_schema(columns))),
        (3, i64(count)),
        (4, list_of(STRUCT, groups)),
        (6, binary(b"pylink")),
    )
    return b"".join((*body, footer, len(footer).to_bytes(4, "little"), _MAGIC))


def make_text_column(values: Sequence[bytes]) -> Texts:
    """Return a column of mostly distinct texts."""
    return Texts(ends_of(values), b"".join(values))


def make_word_column(values: Sequence[str | None]) -> Texts:
    """Return a column of texts that repeat, or None for null, with a dictionary."""
    numbers: dict[str | None, int] = {None: -1}
    rows = [numbers.setdefault(value, len(numbers) - 1) for value in values]
    del numbers[None]
    return make_numbered_column([text.encode() for text in numbers if text is not None], rows)


def make_numbered_column(dictionary: Sequence[bytes], rows: Iterable[int]) -> Texts:
    """Return a column whose rows have numbers of texts in `dictionary`, -1 for null."""
    return Texts(ends_of(dictionary), b"".join(dictionary), array("i", rows).tobytes())


def make_constant_column(value: str | None, rows: int) -> Texts:
    """Return a column with the text `value`, or null for None, in all of `rows` rows."""
    return make_numbered_column(
        [] if value is None else [value.encode()], [-(value is None)] * rows
    )


def make_integer_column(kind: str, values: Iterable[int]) -> Numbers:
    """Return a column of integers of this type."""
    return Numbers(array({"int32": "i", "int64": "q", "uint64": "Q"}[kind], values).tobytes())


def make_column(kind: str, values: Sequence[Any]) -> Numbers | Texts:
    """Return a column of the type `kind` from Python values; None becomes a null."""
    if TYPES[kind][0] == _BYTE_ARRAY:
        return make_word_column(values)
    numbers = make_integer_column(kind, [value or 0 for value in values])
    return numbers._replace(valid=bytes(value is not None for value in values))


def _count_rows(kind: str, column: Numbers | Texts) -> int:
    """Return the number of rows of a column of the type `kind`."""
    if isinstance(column, Numbers):
        return len(column.values) // TYPES[kind][2]
    return len(column.ends) // 8 - 1 if column.numbers is None else len(column.numbers) // 4


def _slice(kind: str, column: Numbers | Texts, start: int, end: int) -> Numbers | Texts:
    """Return rows `start` (included) to `end` (excluded) of a column of the type `kind`."""
    if isinstance(column, Numbers):
        width, valid = TYPES[kind][2], column.valid
        return Numbers(column.values[width * start : width * end], valid and valid[start:end])
    if column.numbers is None:
        return column._replace(ends=column.ends[8 * start : 8 * (end + 1)])
    return column._replace(numbers=column.numbers[4 * start : 4 * end])


def _pack_chunk(
    name: str, kind: str, column: Numbers | Texts, rows: int, offset: int
) -> tuple[list[bytes], bytes, int]:
    """Return the pages of a column, their metadata, and the number of unpacked bytes.

    `offset` is where the pages will be in the file.
    """
    if isinstance(column, Texts):
        dictionary, count, data = columnpages.text_pages(*column)
    elif kind == "bool_":
        dictionary, count, data = columnpages.flag_pages(column.values)
    else:
        dictionary, count, data = columnpages.number_pages(
            column.values, TYPES[kind][2], column.valid
        )
    body, first, size = [], [], 0
    encoding = _PLAIN
    if dictionary is not None:
        encoding = _RLE_DICTIONARY
        details = struct((1, i32(count)), (2, i32(_PLAIN)))
        page, size = _pack_page(_DICTIONARY_PAGE, dictionary, (7, (STRUCT, details)))
        body += page
        first = [(11, i64(offset))]
    details = struct((1, i32(rows)), (2, i32(encoding)), (3, i32(_RLE)), (4, i32(_RLE)))
    page_offset = offset + sum(map(len, body))
    page, added = _pack_page(_DATA_PAGE, data, (5, (STRUCT, details)))
    body += page
    size += added
    metadata = struct(
        (1, i32(TYPES[kind][0])),
        (2, list_of(I32, [zigzag(code) for code in sorted({_PLAIN, _RLE, encoding})])),
        (3, list_of(BINARY, [binary(name.encode())[1]])),
        (4, i32(_LZ4_RAW)),
        (5, i64(rows)),
        (6, i64(size)),
        (7, i64(sum(map(len, body)))),
        (9, i64(page_offset)),
        *first,
    )
    return body, struct((2, i64(offset)), (3, (STRUCT, metadata))), size


def _pack_page(kind: int, data: bytes, details: tuple[int, Value]) -> tuple[list[bytes], int]:
    """Return the header and the packed data of a page, and the unpacked bytes of both."""
    if len(data) > MOST_BYTES:
        raise OverflowError("one column of a fragment has more than 2 GiB")
    packed: bytes = need("lz4.block").compress(data, store_size=False)
    sizes = (2, i32(len(data))), (3, i32(len(packed)))
    header = struct((1, i32(kind)), *sizes, details)
    return [header, packed], len(header) + len(data)


def _pack_schema(columns: Mapping[str, str]) -> list[bytes]:
    """Return the elements of the schema: its root, and one for each column."""
    schema = [struct((4, binary(b"schema")), (5, i32(len(columns))))]
    for name, kind in columns.items():
        number, meaning, width = TYPES[kind]
        fields: list[tuple[int, Value]] = [(1, i32(number))]
        if number == _FIXED:
            fields.append((2, i32(width)))
        fields += [(3, i32(_OPTIONAL)), (4, binary(name.encode()))]
        if meaning is not None:
            fields.append((6, i32(meaning)))
        schema.append(struct(*fields))
    return schema
