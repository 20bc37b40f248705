"""Arithmetic of one lane in plain Python integers and fractions, apart from `semantics`."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

M = 0xFFFFFFFF
M64 = (1 << 64) - 1
Registers = list[int]
Predicates = list[bool]
Result = dict[str, int | bool]
Reference = Callable[[Registers, Predicates], Result]


def s32(x: int) -> int:
    return x - (1 << 32) if x >> 31 & 1 else x


def s64(x: int) -> int:
    return x - (1 << 64) if x >> 63 & 1 else x


def pair(r: Registers, n: int) -> int:
    return r[n] | r[n + 1] << 32


def two(name: int, value: int) -> Result:
    """A 64-bit result in a pair of registers."""
    return {f"R{name}": value & M, f"R{name + 1}": value >> 32 & M}


def f32(x: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", x))[0]
    return value


def f64(x: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<Q", x))[0]
    return value


def f16(x: int) -> float:
    value: float = struct.unpack("<e", struct.pack("<H", x & 0xFFFF))[0]
    return value


def bf16(x: int) -> float:
    return f32((x & 0xFFFF) << 16)


def rounded(value: Fraction, bits: int, least: int, most: int, way: str = "RN") -> int:
    """A fraction as a float with `bits` of precision and exponents from `least` to `most`."""
    if value == 0:
        return 0
    sign, value = int(value < 0), abs(value)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    exponent = max(exponent, least)
    scaled = value / Fraction(2) ** (exponent - bits + 1)
    whole, rest = divmod(scaled.numerator, scaled.denominator)
    left = Fraction(rest, scaled.denominator)
    up = {
        "RN": left > Fraction(1, 2) or (left == Fraction(1, 2) and whole & 1 == 1),
        "RZ": False,
        "RP": left > 0 and not sign,
        "RM": left > 0 and bool(sign),
    }[way]
    whole += up
    if whole >> bits:
        whole >>= 1
        exponent += 1
    width = (most - least + 2).bit_length()
    if exponent > most:
        infinite = way == "RN" or (way == "RP" and not sign) or (way == "RM" and sign)
        field = (most - least + 2) << bits - 1 if infinite else ((most - least + 2) << bits - 1) - 1
    else:
        hidden = 1 << bits - 1
        biased = exponent - least + 1 if whole & hidden else 0
        field = biased << bits - 1 | whole & hidden - 1
    return sign << bits - 1 + width | field


FORMATS = {
    "f32": (24, -126, 127),
    "f16": (11, -14, 15),
    "bf16": (8, -126, 127),
    "f64": (53, -1022, 1023),
}
NANS = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF}
INFINITE = {"f32": 0x7F800000, "f16": 0x7C00, "bf16": 0x7F80, "f64": 0x7FF << 52}
SIGN = {"f32": 1 << 31, "f16": 1 << 15, "bf16": 1 << 15, "f64": 1 << 63}


def arithmetic(form: str, x: float, y: float, z: float | None, way: str = "RN") -> int | None:
    """x * y + z, or x * y where z is None, rounded once; None for a NaN."""
    if any(math.isnan(v) for v in (x, y, z or 0.0)):
        return None
    product_sign = math.copysign(1, x) * math.copysign(1, y) < 0
    if math.isinf(x) or math.isinf(y):
        if x == 0 or y == 0:
            return None
        if z is not None and math.isinf(z) and (z < 0) != product_sign:
            return None
        return INFINITE[form] | (SIGN[form] if product_sign else 0)
    if z is not None and math.isinf(z):
        return INFINITE[form] | (SIGN[form] if z < 0 else 0)
    exact = Fraction(x) * Fraction(y) + (Fraction(z) if z is not None else 0)
    if exact == 0:
        if z is None:
            negative = product_sign
        else:
            zero_sign = math.copysign(1, z) < 0
            both_zero = (x == 0 or y == 0) and z == 0
            negative = product_sign if both_zero and product_sign == zero_sign else way == "RM"
            if both_zero and product_sign == zero_sign:
                negative = zero_sign
        return SIGN[form] if negative else 0
    bits = rounded(exact, *FORMATS[form], way)
    return bits


def single(x: float, y: float, z: float | None, way: str = "RN") -> Result:
    found = arithmetic("f32", x, y, z, way)
    return {"R0": NANS["f32"] if found is None else found}


def halves(form: str, r: Registers, count: int, function: Callable[..., int | None]) -> Result:
    widen = f16 if form == "f16" else bf16
    total = 0
    for shift in (0, 16):
        found = function(*(widen(r[i + 1] >> shift) for i in range(count)))
        total |= (NANS[form] if found is None else found) << shift
    return {"R0": total}


def lut(t: int, a: int, b: int, c: int) -> int:
    return sum(
        (t >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32)
    )


def shift64(value: int, by: int, right: bool, sign: bool = False) -> int:
    if right:
        return (s64(value) if sign else value) >> min(by, 64) & M64
    return value << min(by, 64) & M64


def prmt(a: int, selector: int, c: int) -> int:
    data, result = a | c << 32, 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = data >> 8 * (nibble & 7) & 255
        if nibble & 8:
            byte = 255 * (byte >> 7)
        result |= byte << 8 * i
    return result


def to_integer(x: float, low: int, high: int, how: Callable[[float], int], nan: int) -> int:
    if math.isnan(x):
        return nan
    if math.isinf(x):
        return high if x > 0 else low
    return min(max(how(x), low), high)


def extend(value: int, bits: int, sign: bool) -> int:
    bits = min(bits, 32)
    value &= (1 << bits) - 1
    if sign and bits and value >> bits - 1:
        value -= 1 << bits
    return value & M


def halfwords(r: Registers, function: Callable[..., int], count: int = 2) -> Result:
    """A function of the signed 16-bit halves."""

    def half(x: int) -> int:
        return (x & 0xFFFF) - (0x10000 if x & 0x8000 else 0)

    low = function(*(half(r[i + 1]) for i in range(count))) & 0xFFFF
    high = function(*(half(r[i + 1] >> 16) for i in range(count))) & 0xFFFF
    return {"R0": high << 16 | low}


def extend_byte(x: int) -> int:
    return (x & 255) - (256 if x & 128 else 0)


def double(x: float, y: float, z: float | None, way: str = "RN") -> Result:
    found = arithmetic("f64", x, y, z, way)
    return {"NaN": True} if found is None else two(0, found)
