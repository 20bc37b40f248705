"""Sums and products rounded as IEEE 754 says, in the four directions of SASS.

Single precision is computed in double precision, where products are exact. A sum in double
precision is made odd in its last bit when it is not exact, so that rounding it again to single
precision is right ("round to odd"). Double precision in other directions than to nearest, and
fused, is computed by the C library or with fractions, lane by lane.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from emulator.lanes import Double, Single

NAN32 = np.uint32(0x7FFFFFFF)
TINY32 = np.float32(2.0**-126)
NEAREST, DOWN, UP, ZERO = "RN", "RM", "RP", "RZ"

_LIBRARY = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
_FMA = _LIBRARY.fma
_FMA.restype = ctypes.c_double
_FMA.argtypes = [ctypes.c_double] * 3

Fused = Callable[[float, float, float], float]


def flush(value: Single) -> Single:
    """Subnormal values become zeros of their sign."""
    return np.where(np.abs(value) < TINY32, np.copysign(np.float32(0), value), value)


def canonical(value: Single) -> npt.NDArray[np.uint32]:
    """The bits of floats, all NaNs as the one that arithmetic makes."""
    bits = value.view(np.uint32)
    bad = np.isnan(value)
    return np.where(bad, NAN32, bits) if bad.any() else bits


def sum_exactly(x: Double, y: Double) -> tuple[Double, Double]:
    """The sum of two doubles and what rounding took from it (Knuth's TwoSum)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def to_odd(total: Double, rest: Double) -> Double:
    """A rounded sum whose last bit is made odd where something was lost.

    Where the last bit is even, the neighbour on the side of what was lost is odd. All places
    beyond the sum count, so that a later rounding to fewer bits sees on which side of a tie it is.
    """
    lost = (rest != 0) & np.isfinite(total) & np.isfinite(rest)
    if not lost.any():
        return total
    bits = total.view(np.int64)
    away = (rest > 0) == (total > 0)
    moved = np.where(away, bits + 1, bits - 1)
    moved = np.where(total == 0, rest.view(np.int64), moved)
    return np.where(lost & (bits & 1 == 0), moved, bits).view(np.float64)


def narrow(exact: Double, direction: str) -> Single:
    """Doubles rounded to singles; `exact` is exact, or odd where it is not."""
    nearest = exact.astype(np.float32)
    if direction == NEAREST:
        return nearest
    return _adjust(nearest, exact, direction)


def _adjust(nearest: Single, exact: Double, direction: str) -> Single:
    back = nearest.astype(np.float64)
    if direction == DOWN:
        wrong = back > exact
        return np.where(wrong, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    if direction == UP:
        wrong = back < exact
        return np.where(wrong, np.nextafter(nearest, np.float32(np.inf)), nearest)
    wrong = np.abs(back) > np.abs(exact)
    return np.where(wrong, np.nextafter(nearest, np.float32(0)), nearest)


def add32(x: Single, y: Single, direction: str) -> Single:
    if direction == NEAREST:
        return x + y
    total, rest = sum_exactly(x.astype(np.float64), y.astype(np.float64))
    return _signed_zero(narrow(to_odd(total, rest), direction), x, y, direction)


def mul32(x: Single, y: Single, direction: str) -> Single:
    if direction == NEAREST:
        return x * y
    return narrow(x.astype(np.float64) * y.astype(np.float64), direction)


def fma32(x: Single, y: Single, z: Single, direction: str) -> Single:
    product = x.astype(np.float64) * y.astype(np.float64)
    total, rest = sum_exactly(product, z.astype(np.float64))
    result = narrow(to_odd(total, rest), direction)
    if direction == DOWN:
        exact_zero = (total == 0) & (rest == 0)
        opposite = np.signbit(product) != np.signbit(z)
        return np.where(exact_zero & opposite, np.float32(-0.0), result)
    return result


def _signed_zero(result: Single, x: Single, y: Single, direction: str) -> Single:
    """A sum of opposites is -0 where rounding is downward, +0 elsewhere."""
    if direction != DOWN:
        return result
    return np.where((result == 0) & (np.signbit(x) != np.signbit(y)), np.float32(-0.0), result)


def each(function: Callable[..., float], *values: Double) -> Double:
    """A function of each lane's doubles."""
    count = max(len(value) for value in values)
    columns = [np.resize(value, count).tolist() for value in values]
    return np.array([function(*lane) for lane in zip(*columns, strict=True)], np.float64)


def fused(direction: str) -> Fused:
    """x * y + z, rounded once."""
    if direction == NEAREST:
        return lambda x, y, z: float(_FMA(x, y, z))
    return lambda x, y, z: directed(
        _FMA(x, y, z), lambda: Fraction(x) * Fraction(y) + Fraction(z), direction
    )


def directed(nearest: float, exact: Callable[[], Fraction], direction: str) -> float:
    """The double on the right side of an exact result, given the nearest one."""
    if math.isnan(nearest):
        return nearest
    if math.isinf(nearest):
        try:
            value = exact()
        except (OverflowError, ValueError):
            return nearest  # an operand was infinite
        towards_zero = direction in (ZERO, DOWN if value > 0 else UP)
        return math.copysign(math.nextafter(math.inf, 0), nearest) if towards_zero else nearest
    value = exact()
    if value == Fraction(nearest):
        return -0.0 if value == 0 and direction == DOWN and nearest == 0 else nearest
    if direction == DOWN or (direction == ZERO and value > 0):
        wrong, way = Fraction(nearest) > value, -math.inf
    else:
        wrong, way = Fraction(nearest) < value, math.inf
    return math.nextafter(nearest, way) if wrong else nearest
