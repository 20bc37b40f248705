"""Values of all lanes of a warp at once, as numpy arrays.

A register row is an array of uint32 with one element for each lane, or with one element that all
lanes share. Rows are never written in place: a new value is a new array. Predicates are the same
with bool. `Row` and `Flags` name the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

# The types of elements are in the names alone: numpy's stubs lose them in most operations.
Row = npt.NDArray[Any]  # uint32
Flags = npt.NDArray[Any]  # bool
Wide = npt.NDArray[Any]  # uint64
Single = npt.NDArray[Any]  # float32
Double = npt.NDArray[Any]  # float64

ALL = 0xFFFFFFFF
_SHIFT = np.uint64(32)
LOW = np.uint64(ALL)

ZERO_ROW: Row = np.zeros(1, np.uint32)
TRUE: Flags = np.ones(1, np.bool_)
FALSE: Flags = np.zeros(1, np.bool_)


def row(value: int) -> Row:
    """A row that all lanes share."""
    return np.array([value & ALL], np.uint32)


def wide(low: Row, high: Row) -> Wide:
    """The 64-bit values of a pair of registers."""
    return low.astype(np.uint64) | high.astype(np.uint64) << _SHIFT


def low_word(value: Wide) -> Row:
    return value.astype(np.uint32)


def high_word(value: Wide) -> Row:
    return (value >> _SHIFT).astype(np.uint32)


def spread(value: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """One element for each lane."""
    return value if len(value) == count else np.repeat(value, count)


def signed(value: Row) -> npt.NDArray[Any]:
    return value.view(np.int32)


def singles(value: Row) -> Single:
    return value.view(np.float32)


def doubles(value: Wide) -> Double:
    return value.view(np.float64)


def to_bits(mask: Flags) -> int:
    """A mask as an integer, lane 0 in bit 0."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


def to_mask(bits: int, count: int) -> Flags:
    """The mask of `count` lanes that an integer is."""
    data = np.frombuffer(bits.to_bytes(4, "little"), np.uint8)
    return np.unpackbits(data, count=count, bitorder="little").astype(np.bool_)
