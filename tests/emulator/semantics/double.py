"""Floating-point arithmetic of double precision."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from emulator.build import Build
from emulator.lanes import Double, Flags
from emulator.machine import Fragment, Step
from emulator.semantics import rounding
from emulator.semantics.integer import put_comparison
from emulator.semantics.single import COMPARE, direction_of

Two = Callable[[Double, Double], Double]


def _add(direction: str) -> Two:
    if direction == rounding.NEAREST:
        return lambda x, y: x + y
    return _each(
        lambda x, y: rounding.directed(x + y, lambda: Fraction(x) + Fraction(y), direction)
    )


def _multiply(direction: str) -> Two:
    if direction == rounding.NEAREST:
        return lambda x, y: x * y
    return _each(
        lambda x, y: rounding.directed(x * y, lambda: Fraction(x) * Fraction(y), direction)
    )


def _each(function: Callable[[float, float], float]) -> Two:
    return lambda x, y: rounding.each(function, x, y)


def _two(make: Callable[[str], Two]) -> Callable[[Build], Step]:
    def build(b: Build) -> Step:
        apply = make(direction_of(b))
        put, x, y = b.put_wide(), b.double(), b.double()
        return lambda f: put(f, apply(x(f), y(f)).view(np.uint64))

    return build


def dfma(b: Build) -> Step:
    apply = rounding.fused(direction_of(b))
    put, x, y, z = b.put_wide(), b.double(), b.double(), b.double()
    return lambda f: put(f, rounding.each(apply, x(f), y(f), z(f)).view(np.uint64))


def dsetp(b: Build) -> Step:
    extreme = b.choose({"MIN": _is_minimum, "MAX": _is_maximum}, None)
    if extreme:
        return _dsetp_extreme(b, extreme)
    compare = b.need(COMPARE)
    put_first, put_second = b.put_flags(), b.put_flags()
    x, y = b.double(), b.double()
    write = put_comparison(b, put_first, put_second)
    return lambda f: write(f, compare(x(f), y(f)))


def _is_minimum(x: Double, y: Double) -> Flags:
    return (x < y) | ((x == y) & np.signbit(x)) | np.isnan(y)


def _is_maximum(x: Double, y: Double) -> Flags:
    return (x > y) | ((x == y) & ~np.signbit(x)) | np.isnan(y)


def _dsetp_extreme(b: Build, is_extreme: Callable[[Double, Double], Flags]) -> Step:
    """Whether the first operand is the minimum or maximum, and whether both are NaNs.

    ptxas selects by the one and makes the result a quiet NaN by the other.
    """
    if not b.take("AND"):
        raise b.unsupported("missing modifier")
    put_first, put_second, x, y, more = (
        b.put_flags(),
        b.put_flags(),
        b.double(),
        b.double(),
        b.flags(),
    )

    def run(f: Fragment) -> None:
        p, q, third = x(f), y(f), more(f)
        put_first(f, is_extreme(p, q) & ~np.isnan(p) & third)
        put_second(f, np.isnan(p) & np.isnan(q) & third)

    return run


OPCODES: dict[str, Callable[[Build], Step]] = {
    "DADD": _two(_add),
    "DMUL": _two(_multiply),
    "DFMA": dfma,
    "DSETP": dsetp,
}
