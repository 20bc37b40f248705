"""Pairs of half-precision numbers, in either format, in one register.

Sums and products are computed in double precision and rounded once. `Pair` has the values of the
low and of the high half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from emulator.build import Build, signs_of
from emulator.lanes import Double, Flags, Row
from emulator.machine import Fragment, Step
from emulator.operands import Constant, Float, Immediate, Register
from emulator.semantics import rounding
from emulator.semantics.integer import COMBINE
from emulator.semantics.single import COMPARE

Pair = tuple[Double, Double]
GetPair = Callable[[Fragment], Pair]


@dataclass(frozen=True)
class Format:
    """How a half is made of a double, and back; `unit` are the bits of 1.0, `nan` of a NaN."""

    widen: Callable[[Row], Double]
    narrow: Callable[[Double], Row]
    unit: int
    nan: int = 0x7FFF


def widen_half(bits: Row) -> Double:
    return bits.astype(np.uint16).view(np.float16).astype(np.float64)


def narrow_half(value: Double) -> Row:
    """The nearest half; `value` is exact, or odd where it is not."""
    found = value.astype(np.float16).view(np.uint16).astype(np.uint32)
    return np.where(np.isnan(value), np.uint32(0x7FFF), found)


def widen_brain(bits: Row) -> Double:
    return (bits << 16).view(np.float32).astype(np.float64)


def narrow_brain(value: Double) -> Row:
    """The nearest bfloat16; `value` is exact, or odd where it is not."""
    single = rounding.narrow(value, rounding.ZERO)
    lost = np.isfinite(value) & (single.astype(np.float64) != value)
    bits = single.view(np.uint32) | lost.astype(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(value), np.uint32(0x7FFF), rounded)


HALF = Format(widen_half, narrow_half, 0x3C00)
BRAIN = Format(widen_brain, narrow_brain, 0x3F80)
_FORMATS = {"BF16_V2": BRAIN, "BF16": BRAIN}
_SELECT = {"H0_H0": (0, 0), "H1_H1": (1, 1), "H1_H0": (0, 1), "H0_H1": (1, 0)}


def pair(b: Build, form: Format) -> GetPair:
    """The next operand as two halves; an immediate is printed as two numbers, high half first."""
    operand = b.next()
    if isinstance(operand, Float | Immediate):
        if not b.operands or not isinstance(b.operands[0], Float | Immediate):
            raise b.unsupported(f"operand {operand}")
        b.next()
        bits = np.array([b.instruction.encoding >> 32 & 0xFFFFFFFF], np.uint32)
        value = (form.widen(bits & 0xFFFF), form.widen(bits >> 16))
        return lambda f: value
    get, signs = b.bits(operand), signs_of(operand)
    suffixes = operand.suffixes if isinstance(operand, Register | Constant) else ()
    if len(suffixes) > 1 or (suffixes and suffixes[0] not in _SELECT):
        raise b.unsupported(f"operand {operand}")
    low, high = _SELECT[suffixes[0]] if suffixes else (0, 1)
    if signs not in ("", "-", "|", "-|"):
        raise b.unsupported(f"operand {operand}")
    clear = np.uint32(0x7FFF if "|" in signs else 0xFFFF)
    flip = np.uint32(0x8000 if "-" in signs else 0)

    def halves(f: Fragment) -> Pair:
        word = get(f)
        parts = (word & 0xFFFF, word >> 16)
        return (
            form.widen(parts[low] & clear ^ flip),
            form.widen(parts[high] & clear ^ flip),
        )

    return halves


def _finish(form: Format, value: Double, saturate: bool, relu: bool) -> Row:
    bits = form.narrow(value)
    if saturate:
        bits = np.where(value > 0, np.minimum(bits, np.uint32(form.unit)), np.uint32(0))
    if relu:
        bits = np.where((value > 0) | np.isnan(value), bits, np.uint32(0))
    return bits


def _arithmetic(count: int, apply: Callable[..., Double]) -> Callable[[Build], Step]:
    def build(b: Build) -> Step:
        form = b.choose(_FORMATS, HALF)
        b.take("MMA")  # another unit, the same result
        saturate, relu = b.take("SAT"), b.take("RELU")
        put = b.put()
        sources = [pair(b, form) for _ in range(count)]

        def run(f: Fragment) -> None:
            values = [source(f) for source in sources]
            low = _finish(form, apply(*(value[0] for value in values)), saturate, relu)
            high = _finish(form, apply(*(value[1] for value in values)), saturate, relu)
            put(f, low | high << 16)

        return run

    return build


def _sum(x: Double, y: Double) -> Double:
    return rounding.to_odd(*rounding.sum_exactly(x, y))


def _fused(x: Double, y: Double, z: Double) -> Double:
    return _sum(x * y, z)


_add_pairs = _arithmetic(2, _sum)


def hadd2(b: Build) -> Step:
    """With F32, the sum of the low halves as a float: ptxas widens halves by it."""
    if not b.take("F32"):
        return _add_pairs(b)
    form = b.choose(_FORMATS, HALF)
    put, x, y = b.put(), pair(b, form), pair(b, form)

    def run(f: Fragment) -> None:
        put(f, rounding.canonical(rounding.narrow(_sum(x(f)[0], y(f)[0]), rounding.NEAREST)))

    return run


def hmnmx2(b: Build) -> Step:
    form, spread_nan = b.choose(_FORMATS, HALF), b.take("NAN")
    put, x, y, least = b.put(), pair(b, form), pair(b, form), b.flags()

    def compared(p: Double, q: Double, choice: Flags) -> Row:
        low = np.where((p < q) | ((p == q) & np.signbit(p)), p, q)
        high = np.where((p > q) | ((p == q) & ~np.signbit(p)), p, q)
        value = np.where(choice, low, high)
        value = np.where(np.isnan(p), q, np.where(np.isnan(q), p, value))
        if spread_nan:
            value = np.where(np.isnan(p) | np.isnan(q), np.nan, value)
        return form.narrow(value)

    def run(f: Fragment) -> None:
        p, q, choice = x(f), y(f), least(f)
        put(f, compared(p[0], q[0], choice) | compared(p[1], q[1], choice) << 16)

    return run


def hset2(b: Build) -> Step:
    form, as_float = b.choose(_FORMATS, HALF), b.take("BF")
    compare, combine = b.need(COMPARE), b.need(COMBINE)
    put, x, y, more = b.put(), pair(b, form), pair(b, form), b.flags()
    yes = np.uint32(form.unit if as_float else 0xFFFF)

    def run(f: Fragment) -> None:
        p, q, third = x(f), y(f), more(f)
        low = np.where(combine(compare(p[0], q[0]), third), yes, np.uint32(0))
        high = np.where(combine(compare(p[1], q[1]), third), yes, np.uint32(0))
        put(f, low | high << 16)

    return run


def hsetp2(b: Build) -> Step:
    form, both = b.choose(_FORMATS, HALF), b.take("H_AND")
    compare, combine = b.need(COMPARE), b.need(COMBINE)
    put_first, put_second = b.put_flags(), b.put_flags()
    x, y, more = pair(b, form), pair(b, form), b.flags()

    def run(f: Fragment) -> None:
        p, q, third = x(f), y(f), more(f)
        low, high = compare(p[0], q[0]), compare(p[1], q[1])
        if both:
            put_first(f, combine(low & high, third))
            put_second(f, combine(~(low & high), third))
        else:
            first, second = combine(low, third), combine(high, third)
            put_first(f, first)
            put_second(f, second)

    return run


OPCODES: dict[str, Callable[[Build], Step]] = {
    "HADD2": hadd2,
    "HMUL2": _arithmetic(2, lambda x, y: x * y),
    "HFMA2": _arithmetic(3, _fused),
    "HMNMX2": hmnmx2,
    "HSET2": hset2,
    "HSETP2": hsetp2,
}
