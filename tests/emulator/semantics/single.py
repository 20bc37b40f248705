"""Floating-point arithmetic of single precision."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from emulator.build import Build, Get, GetSingle
from emulator.lanes import Double, Flags, Row, Single, row, wide
from emulator.machine import Fragment, Step
from emulator.operands import Register
from emulator.semantics import rounding
from emulator.semantics.integer import put_comparison

DIRECTIONS = {"RN": "RN", "RM": "RM", "RP": "RP", "RZ": "RZ"}
ONE = np.float32(1)


def direction_of(b: Build) -> str:
    return b.choose(DIRECTIONS, "RN")


def source(b: Build, flush: bool) -> GetSingle:
    """A float, whose subnormals are zeros where the instruction has FTZ."""
    get = b.single()
    return (lambda f: rounding.flush(get(f))) if flush else get


def finish(value: Single, flush: bool, saturate: bool) -> Row:
    """The bits of a result: flushed, clamped to 0 to 1 with NaN as 0, NaNs made canonical."""
    if flush:
        value = rounding.flush(value)
    if saturate:
        value = np.where(value > 0, np.minimum(value, ONE), np.float32(0))
    return rounding.canonical(value)


def fadd(b: Build) -> Step:
    flush, saturate, direction = b.take("FTZ"), b.take("SAT"), direction_of(b)
    put, x, y = b.put(), source(b, flush), source(b, flush)
    return lambda f: put(f, finish(rounding.add32(x(f), y(f), direction), flush, saturate))


_SCALES = {"M2": 2.0, "M4": 4.0, "M8": 8.0, "D2": 0.5, "D4": 0.25, "D8": 0.125}


def fmul(b: Build) -> Step:
    flush, saturate, direction = b.take("FTZ"), b.take("SAT"), direction_of(b)
    if b.choose(_SCALES, None):
        raise b.unsupported("scale")
    put, x, y = b.put(), source(b, flush), source(b, flush)
    return lambda f: put(f, finish(rounding.mul32(x(f), y(f), direction), flush, saturate))


def ffma(b: Build) -> Step:
    flush, saturate, direction = b.take("FTZ"), b.take("SAT"), direction_of(b)
    put, x, y, z = b.put(), source(b, flush), source(b, flush), source(b, flush)
    return lambda f: put(f, finish(rounding.fma32(x(f), y(f), z(f), direction), flush, saturate))


def smaller(x: Single, y: Single) -> Single:
    """The minimum; -0 is less than +0, and a number wins against a NaN."""
    low = np.where((x < y) | ((x == y) & np.signbit(x)), x, y)
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, low))


def larger(x: Single, y: Single) -> Single:
    high = np.where((x > y) | ((x == y) & ~np.signbit(x)), x, y)
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, high))


def fmnmx(b: Build) -> Step:
    flush, spread_nan = b.take("FTZ"), b.take("NAN")
    put = b.put()
    if b.next_is_predicate():
        raise b.unsupported("predicate")
    x, y, least = source(b, flush), source(b, flush), b.flags()

    def run(f: Fragment) -> None:
        p, q = x(f), y(f)
        value = np.where(least(f), smaller(p, q), larger(p, q))
        if spread_nan:
            value = np.where(np.isnan(p) | np.isnan(q), np.float32(np.nan), value)
        put(f, finish(value, flush, False))

    return run


Compare = Callable[[Double, Double], Flags]


def _unordered(x: Double, y: Double) -> Flags:
    found: Flags = np.isnan(x) | np.isnan(y)
    return found


COMPARE: dict[str, Compare] = {
    "LT": lambda x, y: x < y,
    "EQ": lambda x, y: x == y,
    "LE": lambda x, y: x <= y,
    "GT": lambda x, y: x > y,
    "NE": lambda x, y: (x != y) & ~_unordered(x, y),
    "GE": lambda x, y: x >= y,
    "NUM": lambda x, y: ~_unordered(x, y),
    "NAN": _unordered,
    "LTU": lambda x, y: ~(x >= y),
    "EQU": lambda x, y: (x == y) | _unordered(x, y),
    "LEU": lambda x, y: ~(x > y),
    "GTU": lambda x, y: ~(x <= y),
    "NEU": lambda x, y: x != y,
    "GEU": lambda x, y: ~(x < y),
    "T": lambda x, y: np.equal(x, x) | True,
    "F": lambda x, y: np.equal(x, x) & False,
}


def fsetp(b: Build) -> Step:
    compare, flush = b.need(COMPARE), b.take("FTZ")
    put_first, put_second = b.put_flags(), b.put_flags()
    x, y = source(b, flush), source(b, flush)
    write = put_comparison(b, put_first, put_second)
    return lambda f: write(f, compare(x(f), y(f)))


def fset(b: Build) -> Step:
    """A comparison as a number: 1.0 with BF, all ones without."""
    as_float = b.take("BF")
    compare, flush = b.need(COMPARE), b.take("FTZ")
    combine = b.need(_combinations())
    put, x, y, more = b.put(), source(b, flush), source(b, flush), b.flags()
    yes = np.uint32(0x3F800000) if as_float else np.uint32(0xFFFFFFFF)

    def run(f: Fragment) -> None:
        found = combine(compare(x(f), y(f)), more(f))
        put(f, np.where(found, yes, np.uint32(0)))

    return run


def _combinations() -> dict[str, Callable[[Flags, Flags], Flags]]:
    return {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}


def fchk(b: Build) -> Step:
    """Whether a quotient needs the slow path: a guess, since both paths give the same quotient."""
    b.take("DIVIDE")
    put, x, y = b.put_flags(), b.single(), b.single()

    def run(f: Fragment) -> None:
        top, bottom = x(f), y(f)
        finite = np.isfinite(top) & np.isfinite(bottom) & (bottom != 0)
        above = np.frexp(np.where(finite, top, ONE))[1]
        below = np.frexp(np.where(finite, bottom, ONE))[1]
        hard = (below > 125) | (below < -124) | (above < -100)
        put(f, ~finite | hard | (above - below > 126) | (above - below < -125))

    return run


def _reciprocal(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1 / x


def _reciprocal_root(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return math.nan if x < 0 else (0.0 if math.isinf(x) else 1 / math.sqrt(x))


def _power(x: float) -> float:
    if x > 2000:
        return math.inf
    return 0.0 if x < -2000 else math.pow(2, x)


def _logarithm(x: float) -> float:
    if x == 0:
        return -math.inf
    return math.nan if x < 0 else math.log2(x)


def _turn(function: Callable[[float], float]) -> Callable[[float], float]:
    """Sine and cosine of an angle in radians that the program has made one of turns."""
    return lambda x: math.nan if math.isinf(x) else function(2 * math.pi * math.fmod(x, 1))


# The hardware's results differ from these in the last bits.
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "RCP": _reciprocal,
    "RSQ": _reciprocal_root,
    "SQRT": lambda x: math.nan if x < 0 else math.sqrt(x),
    "EX2": _power,
    "LG2": _logarithm,
    "SIN": _turn(math.sin),
    "COS": _turn(math.cos),
    "TANH": math.tanh,
}


def _apply(function: Callable[[float], float], values: Double) -> Double:
    found = [x if math.isnan(x) else function(x) for x in values.tolist()]
    return np.array(found, np.float64)


def mufu(b: Build) -> Step:
    """Special functions, exact but for one rounding; with 64H of the upper half of a double."""
    half = b.choose({"RCP64H": "RCP", "RSQ64H": "RSQ"}, None)
    if half:
        return _mufu_half(b, half)
    function = b.need(FUNCTIONS)
    if b.take("F16"):
        raise b.unsupported("modifier 'F16'")
    put, x = b.put(), b.single()

    def run(f: Fragment) -> None:
        put(f, rounding.canonical(_apply(function, x(f).astype(np.float64)).astype(np.float32)))

    return run


def _mufu_half(b: Build, name: str) -> Step:
    function = FUNCTIONS[name]
    put = b.put()
    get: Get = _upper_half(b)

    def run(f: Fragment) -> None:
        values = wide(row(0), get(f)).view(np.float64)
        put(f, (_apply(function, values).view(np.uint64) >> np.uint64(32)).astype(np.uint32))

    return run


def _upper_half(b: Build) -> Get:
    operand = b.next()
    get = b.bits(operand)
    signs = operand.signs if isinstance(operand, Register) else ""
    clear, flip = np.uint32(0x7FFFFFFF), np.uint32(0x80000000)
    if signs == "-":
        return lambda f: get(f) ^ flip
    if signs == "|":
        return lambda f: get(f) & clear
    if signs:
        raise b.unsupported(f"operand {operand}")
    return get


OPCODES: dict[str, Callable[[Build], Step]] = {
    "FADD": fadd,
    "FMUL": fmul,
    "FFMA": ffma,
    "FMNMX": fmnmx,
    "FSETP": fsetp,
    "FSET": fset,
    "FCHK": fchk,
    "MUFU": mufu,
}
OPCODES |= {
    f"U{name}": OPCODES[name] for name in ("FADD", "FMUL", "FFMA", "FSETP", "FSET", "FMNMX")
}
