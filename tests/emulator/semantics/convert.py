"""Conversions between integers and floating-point numbers, and between the sizes of both."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from emulator.build import Build, Get, GetDouble, signs_of
from emulator.lanes import Double, Row, Single, Wide
from emulator.machine import Fragment, Step
from emulator.operands import Constant, Operand, Register
from emulator.semantics import rounding
from emulator.semantics.half import BRAIN, HALF, Format
from emulator.semantics.single import direction_of

GetWide = Callable[[Fragment], Wide]

_FIELDS = {
    "H0": (0, 16),
    "H1": (16, 16),
    "H0_H0": (0, 16),
    "H1_H1": (16, 16),
    **{f"B{i}": (8 * i, 8) for i in range(4)},
}
_INTEGERS = {f"{sign}{bits}": (bits, sign == "S") for sign in "US" for bits in (8, 16, 32, 64)}


def _field(b: Build, operand: Operand, bits: int) -> Get:
    """Bits of a register, from the place on that a suffix names."""
    suffixes = operand.suffixes if isinstance(operand, Register | Constant) else ()
    first, width = 0, bits
    if suffixes:
        if len(suffixes) > 1 or suffixes[0] not in _FIELDS:
            raise b.unsupported(f"operand {operand}")
        first, width = _FIELDS[suffixes[0]]
        if width != bits:
            raise b.unsupported(f"operand {operand}")
    get = b.bits(operand)
    mask = np.uint32((1 << bits) - 1)
    return (lambda f: get(f) >> first & mask) if first or bits < 32 else get


def integer_source(
    b: Build, bits: int, sign: bool
) -> tuple[Callable[[Fragment], Double], GetDouble]:
    """An integer as the sum of two doubles, the upper and the lower half of it."""
    operand = b.next()
    if signs_of(operand):
        raise b.unsupported(f"operand {operand}")
    if bits == 64:
        low, high = b.bits(operand), b.bits(operand, 1)
        scale = np.float64(2.0**32)
        if sign:
            return (
                lambda f: high(f).view(np.int32).astype(np.float64) * scale,
                lambda f: low(f).astype(np.float64),
            )
        return (
            lambda f: high(f).astype(np.float64) * scale,
            lambda f: low(f).astype(np.float64),
        )
    get = _field(b, operand, bits)
    zero = np.zeros(1, np.float64)
    if not sign:
        return (lambda f: get(f).astype(np.float64)), (lambda f: zero)
    shift = 32 - bits
    return (
        lambda f: ((get(f) << shift).view(np.int32) >> shift).astype(np.float64),
        lambda f: zero,
    )


def i2f(b: Build) -> Step:
    target = b.choose({"F64": "F64", "F16": "F16", "BF16": "BF16", "F32": "F32"}, "F32")
    bits, sign = b.choose(_INTEGERS, (32, True))
    direction = direction_of(b)
    operand = b.next()
    upper, lower = integer_source(b, bits, sign)
    if target == "F64":
        put_wide = b.put_wide(operand)
        if direction != rounding.NEAREST:
            raise b.unsupported("direction")
        return lambda f: put_wide(f, (upper(f) + lower(f)).view(np.uint64))
    put = b.put(0, operand)

    def exact(f: Fragment) -> Double:
        return rounding.to_odd(*rounding.sum_exactly(upper(f), lower(f)))

    if target == "F32":
        return lambda f: put(f, rounding.narrow(exact(f), direction).view(np.uint32))
    if direction != rounding.NEAREST:
        raise b.unsupported("direction")
    form = HALF if target == "F16" else BRAIN
    return lambda f: put(f, form.narrow(exact(f)))


def _nearest(value: Double) -> Double:
    return np.rint(value)


_WHOLE: dict[str, Callable[[Double], Double]] = {
    "TRUNC": np.trunc,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "ROUND": _nearest,
}


def _float_source(b: Build, kind: str, flush: bool) -> GetDouble:
    """A number of any format as a double."""
    if kind == "F64":
        return b.double()
    if kind == "F32":
        get = b.single()
        if flush:
            return lambda f: rounding.flush(get(f)).astype(np.float64)
        return lambda f: get(f).astype(np.float64)
    operand = b.next()
    signs, form = signs_of(operand), _HALVES[kind]
    if signs not in ("", "-", "|", "-|"):
        raise b.unsupported(f"operand {operand}")
    bits = _field(b, operand, 16)
    clear, flip = np.uint32(0x7FFF if "|" in signs else 0xFFFF), np.uint32(0x8000 * ("-" in signs))
    return lambda f: form.widen(bits(f) & clear ^ flip)


_HALVES: dict[str, Format] = {"F16": HALF, "BF16": BRAIN}
_FLOATS = {name: name for name in ("F64", "F32", "F16", "BF16")}


def f2i(b: Build) -> Step:
    bits, sign = b.choose({n: v for n, v in _INTEGERS.items() if v[0] >= 32}, (32, True))
    source = b.choose(_FLOATS, "F32")
    flush, nan_is_zero = b.take("FTZ"), b.take("NTZ")
    whole = b.choose(_WHOLE, _nearest)
    target = b.next()
    value = _float_source(b, source, flush)
    for_nan = 0 if nan_is_zero else 1 << bits - 1
    if bits == 32:
        put = b.put(0, target)
        least, most = (-(2.0**31), 2.0**31 - 1) if sign else (0.0, 2.0**32 - 1)

        def run(f: Fragment) -> None:
            found = whole(value(f))
            bad = np.isnan(found)
            inside = np.clip(np.where(bad, 0, found), least, most).astype(np.int64)
            put(f, np.where(bad, np.uint32(for_nan), inside.astype(np.uint32)))

        return run
    put_wide = b.put_wide(target)
    low, high = (-(1 << 63), (1 << 63) - 1) if sign else (0, (1 << 64) - 1)

    def converted(x: float) -> int:
        if math.isnan(x):
            return for_nan
        if math.isinf(x):
            x = math.copysign(2.0**70, x)
        return min(max(int(x), low), high) & (1 << 64) - 1

    return lambda f: put_wide(
        f, np.array([converted(x) for x in whole(value(f)).tolist()], np.uint64)
    )


def f2f(b: Build) -> Step:
    target, source = b.need(_FLOATS), b.need(_FLOATS)
    flush, direction = b.take("FTZ"), direction_of(b)
    operand = b.next()
    value = _float_source(b, source, flush)
    if target == "F64":
        put_wide = b.put_wide(operand)
        return lambda f: put_wide(f, value(f).view(np.uint64))
    put = b.put(0, operand)
    if target == "F32":

        def run(f: Fragment) -> None:
            found: Single = rounding.narrow(value(f), direction)
            put(f, rounding.canonical(rounding.flush(found) if flush else found))

        return run
    if direction != rounding.NEAREST:
        raise b.unsupported("direction")
    form = _HALVES[target]
    return lambda f: put(f, form.narrow(value(f)))


def f2fp(b: Build) -> Step:
    """Two floats into two halves, the first operand into the high one."""
    form = b.choose({"BF16": BRAIN, "F16": HALF}, HALF)
    b.take("F32")
    if not b.take("PACK_AB"):
        raise b.unsupported("missing modifier")
    relu = b.take("RELU")
    put, high, low = b.put(), b.single(), b.single()

    def half(value: Single) -> Row:
        bits = form.narrow(value.astype(np.float64))
        return np.where((value > 0) | np.isnan(value), bits, np.uint32(0)) if relu else bits

    return lambda f: put(f, half(low(f)) | half(high(f)) << 16)


def frnd(b: Build) -> Step:
    kind = b.choose(_FLOATS, "F32")
    flush, whole = b.take("FTZ"), b.choose(_WHOLE, _nearest)
    target = b.next()
    value = _float_source(b, kind, flush)
    if kind == "F64":
        put_wide = b.put_wide(target)
        return lambda f: put_wide(f, whole(value(f)).view(np.uint64))
    put = b.put(0, target)
    if kind == "F32":
        return lambda f: put(f, rounding.canonical(whole(value(f)).astype(np.float32)))
    form = _HALVES[kind]
    return lambda f: put(f, form.narrow(whole(value(f))))


OPCODES: dict[str, Callable[[Build], Step]] = {
    "I2F": i2f,
    "I2FP": i2f,
    "F2I": f2i,
    "F2F": f2f,
    "F2FP": f2fp,
    "FRND": frnd,
    "UI2F": i2f,
    "UI2FP": i2f,
    "UF2I": f2i,
    "UFRND": frnd,
}
