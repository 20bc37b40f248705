"""Columns of records: their types, and their values packed as numpy and Arrow have them.

| type of a field | numpy | Arrow |
|---|---|---|
| int | u8 | uint64 |
| int, or none | i8, -1 for none | int64 with nulls |
| float | f8 | double |
| bool | ? | bool |
| str | U, as wide as the longest | dictionary of UTF-8 |
| str, or none | the same, empty for none | dictionary with nulls |
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink._native.arrow import Column as ArrowColumn

    Value = str | int | float | bool | None


class Kind(NamedTuple):
    """What a column holds: `letter` is that of module `array`, `format` Arrow's."""

    type: type
    nullable: bool
    numpy: str
    letter: str
    format: bytes


_KINDS = {
    int: Kind(int, False, "u8", "Q", b"L"),
    int | None: Kind(int, True, "i8", "q", b"l"),
    float: Kind(float, False, "f8", "d", b"g"),
    bool: Kind(bool, False, "?", "B", b"b"),
    str: Kind(str, False, "U", "", b"i"),
    str | None: Kind(str, True, "U", "", b"i"),
}


def kinds_of(row: type) -> dict[str, Kind]:
    """The kind of each field of a NamedTuple, by its name, in order."""
    hints = get_type_hints(row)
    return {name: _KINDS[hints[name]] for name in row._fields}  # type: ignore[attr-defined]


def packed(kind: Kind, values: Sequence[Value]) -> memoryview:
    """Numbers as an array of machine values, a byte for each truth value; -1 for none."""
    numbers: array[Any] = array(kind.letter, [-1 if value is None else value for value in values])
    return memoryview(numbers).toreadonly()


def arrow_column(name: str, kind: Kind, values: Sequence[Value]) -> ArrowColumn:
    """A column as `export_stream` takes it."""
    label, valid, nulls = name.encode(), None, 0
    if kind.nullable:
        valid = bits([value is not None for value in values])
        nulls = sum(value is None for value in values)
    if kind.type is str:
        codes, offsets, texts = encoded([str(value or "") for value in values])
        return label, kind.format, codes, valid, nulls, offsets, texts
    if kind.type is bool:
        return label, kind.format, bits(values), valid, nulls, None, None
    return label, kind.format, packed(kind, values).tobytes(), valid, nulls, None, None


def bits(flags: Sequence[Value]) -> bytes:
    """A bit for each flag, the first the lowest of the first byte."""
    number = sum(1 << place for place, flag in enumerate(flags) if flag)
    return number.to_bytes((len(flags) + 7) // 8, "little")


def encoded(texts: Sequence[str]) -> tuple[bytes, bytes, bytes]:
    """Each distinct text once, in order of mention: codes, offsets and bytes."""
    numbers: dict[str, int] = {}
    codes = array("i", [numbers.setdefault(text, len(numbers)) for text in texts])
    # What is no UTF-8 in a file stands as lone surrogates in its names.
    pieces = [text.encode("utf-8", "replace") for text in numbers]
    offsets = array("i", [0])
    for piece in pieces:
        offsets.append(offsets[-1] + len(piece))
    return codes.tobytes(), offsets.tobytes(), b"".join(pieces)
