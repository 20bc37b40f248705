"""Columns of tables: their types and units, and their values packed for numpy and Arrow.

A table's rows are NamedTuples, and each of their fields is a column.

| type of a field | numpy | Arrow |
|---|---|---|
| int | u8 | uint64 |
| int, or none | i8, -1 for none | int64 with nulls |
| float | f8 | double |
| float, or none | f8, NaN for none | double with nulls |
| bool | ? | bool |
| str | U, as wide as the longest | dictionary of UTF-8 |
| str, or none | the same, empty for none | dictionary with nulls |

The types below, such as `Size` and `SharedMilliseconds`, are numbers annotated with their unit.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink._native.arrow import Column as ArrowColumn

    Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a column; `sums` is true if the sum of its values means something."""

    name: str
    sums: bool = False


Size = Annotated[int, Unit("bytes", sums=True)]
# Offsets, alignments and peaks of memory, in bytes: their sum means nothing.
Place = Annotated[int, Unit("bytes")]
Milliseconds = Annotated[float, Unit("ms", sums=True)]
# Milliseconds that may also be counted in other rows, so that their sum means nothing.
SharedMilliseconds = Annotated[float, Unit("ms")]
Seconds = Annotated[float, Unit("s")]
# A quotient of two quantities.
Ratio = Annotated[float, Unit("ratio")]


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a column, as the table at the head of this file lists it.

    `numpy` is numpy's name of the type, `letter` its type code in the module `array` ("" for text),
    and `format` its code in Arrow. `absent` is the number that stands for None in arrays.
    """

    type: type
    nullable: bool
    numpy: str
    letter: str
    format: bytes
    absent: float = -1


_KINDS = {
    int: Kind(int, False, "u8", "Q", b"L"),
    int | None: Kind(int, True, "i8", "q", b"l"),
    float: Kind(float, False, "f8", "d", b"g"),
    float | None: Kind(float, True, "f8", "d", b"g", float("nan")),
    bool: Kind(bool, False, "?", "B", b"b"),
    str: Kind(str, False, "U", "", b"i"),
    str | None: Kind(str, True, "U", "", b"i"),
}


@cache
def kinds_of(row: type) -> dict[str, Kind]:
    """Return the kind of each field of a NamedTuple, by its name, in order."""
    hints = get_type_hints(row)
    return {name: _KINDS[hints[name]] for name in row._fields}  # type: ignore[attr-defined]


@cache
def units_of(row: type) -> dict[str, Unit]:
    """Return the unit of each field of a NamedTuple that has a unit, by its name."""
    hints = get_type_hints(row, include_extras=True)
    units = {}
    for name in row._fields:  # type: ignore[attr-defined]
        for part in (
            hints[name],
            *get_args(hints[name]),
        ):  # `Size | None` has the unit in an argument
            if get_origin(part) is Annotated:
                units[name] = part.__metadata__[0]
    return units


def pack_values(kind: Kind, values: Sequence[Value]) -> memoryview:
    """Pack the numbers of a column into an array, as `kind.letter` says; a bool takes one byte."""
    numbers: array[Any] = array(
        kind.letter, [kind.absent if value is None else value for value in values]
    )
    return memoryview(numbers).toreadonly()


def arrow_column(name: str, kind: Kind, values: Sequence[Value]) -> ArrowColumn:
    """Return a column as the tuple that `export_stream` of `_native/arrow.pyi` takes."""
    label, valid_bits, null_count = name.encode(), None, 0
    if kind.nullable:
        valid_bits = _pack_bits([value is not None for value in values])
        null_count = sum(value is None for value in values)
    if kind.type is str:
        codes, offsets, texts = _encode_texts([str(value or "") for value in values])
        return label, kind.format, codes, valid_bits, null_count, offsets, texts
    if kind.type is bool:
        return label, kind.format, _pack_bits(values), valid_bits, null_count, None, None
    return (
        label,
        kind.format,
        pack_values(kind, values).tobytes(),
        valid_bits,
        null_count,
        None,
        None,
    )


def _pack_bits(flags: Sequence[Value]) -> bytes:
    """Pack flags into bits; the first flag is the lowest bit of the first byte."""
    number = sum(1 << bit for bit, flag in enumerate(flags) if flag)
    return number.to_bytes((len(flags) + 7) // 8, "little")


def _encode_texts(texts: Sequence[str]) -> tuple[bytes, bytes, bytes]:
    """Encode texts as a dictionary, i.e. each distinct text once, in order of first use.

    Return three buffers: the number of each text in the dictionary (int32); the offset of each text
    of the dictionary, and the end of the last (int32); and the bytes of these texts, one after the
    other.
    """
    numbers: dict[str, int] = {}
    codes = array("i", [numbers.setdefault(text, len(numbers)) for text in texts])
    # Names of inputs that are not UTF-8 contain lone surrogates, which become question marks.
    pieces = [text.encode("utf-8", "replace") for text in numbers]
    offsets = array("i", [0])
    for piece in pieces:
        offsets.append(offsets[-1] + len(piece))
    return codes.tobytes(), offsets.tobytes(), b"".join(pieces)
