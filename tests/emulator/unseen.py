"""What the kernels of `unseen_source` leave in memory: the words behind the input words.

Numbers are unsigned 32-bit unless a name says otherwise. Floating point is computed with fractions
and rounded once (`apart`), never with the arithmetic of the interpreter.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Sequence
from fractions import Fraction

from emulator.apart import FORMATS, M64, M, arithmetic, f16, f32, prmt, rounded, s32, s64

INPUTS = 64

Words = Sequence[int]
Whole = Callable[[Words], list[int]]


def each(function: Callable[[Words, int], Sequence[int]], threads: int = 32) -> Whole:
    """The words that threads write one behind the other."""
    return lambda p: [word & M for i in range(threads) for word in function(p, i)]


def pair(value: int) -> tuple[int, int]:
    return value & M, value >> 32 & M


def s16(x: int) -> int:
    return (x & 0x7FFF) - (x & 0x8000)


def s8(x: int) -> int:
    return (x & 0x7F) - (x & 0x80)


def truncated(a: int, b: int) -> int:
    """The quotient of C."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def pack(x: float, form: str = "f") -> int:
    return int.from_bytes(struct.pack("<" + form, x), "little")


def bits(p: Words, i: int) -> tuple[int, ...]:
    x, y = p[i], p[i + 32]
    masked = x & -(y | 1) & 0xFFFFF000
    by = min(y & 63, 32)
    return (
        (32 - x.bit_length()) * 1000 + y.bit_count(),
        int(f"{x ^ y:032b}"[::-1], 2),
        prmt(x, y & 0x7777, y),
        (masked & -masked).bit_length(),
        ((y << 32 | x) << (x & 31)) >> 32,
        (y << 32 | x) >> by,
    )


def quotients(p: Words, i: int) -> tuple[int, ...]:
    a, b = p[i] << 32 | p[i + 32], p[i ^ 5] | 1
    c, d = s64(a), s32(p[i ^ 9] | 1) * 7
    quotient = truncated(c, d)
    e, g = s32(p[i]), s32(p[i + 32]) >> 12 | 1
    return (
        *pair(a // b),
        *pair(quotient),
        *pair(c - quotient * d),
        p[i] // (p[i + 32] >> 20 | 1),
        e - truncated(e, g) * g,
    )


def products(p: Words, i: int) -> tuple[int, ...]:
    x, y = p[i], p[i + 32]
    a, b = x << 32 | y, y << 32 | (x ^ 0x1234567)
    return (
        x * y >> 32,
        s32(x) * s32(y) >> 32,
        *pair(a * b >> 64),
        *pair(s64(a) * s64(b) >> 64),
        abs(s32(x) - s32(y)) + 5 + abs(x - y) + 9,
        s32(x) + s32(y) >> 1 ^ x + y + 1 >> 1,
    )


def root(x: Fraction, form: str) -> int:
    """A square root rounded to nearest: of far more bits, and odd if inexact."""
    scale = 1 << 400
    whole = math.isqrt(x.numerator * scale * scale // x.denominator)
    exact = whole * whole * x.denominator == x.numerator * scale * scale
    return rounded(Fraction(2 * whole + (not exact), 2 * scale), *FORMATS[form])


def singles(p: Words, i: int) -> tuple[int, ...]:
    xs = p[i] & 0x807FFFFF | (100 + (p[i] >> 24 & 31)) << 23
    ys = p[i + 32] & 0x807FFFFF | (110 + (p[i + 32] >> 24 & 31)) << 23
    x, y = f32(xs), f32(ys)
    form = FORMATS["f32"]
    return (
        rounded(Fraction(x) / Fraction(y), *form),
        root(abs(Fraction(x)), "f32"),
        rounded(Fraction(x) * Fraction(y) - Fraction(y), *form),
        rounded(Fraction(x) + Fraction(y), *form, "RZ"),
        rounded(Fraction(x) * Fraction(y), *form, "RM"),
        rounded(1 / Fraction(y), *form),
        min((x, xs), (y, ys))[1],
        max((-x, xs ^ 1 << 31), (y, ys))[1],
    )


def doubles(p: Words, i: int) -> list[int]:
    low, high = p[i], p[i + 32]
    x = _double((low & 0x800FFFFF | (1000 + (low >> 22 & 31)) << 20) << 32 | high)
    y = _double((high & 0x800FFFFF | (1010 + (low >> 26)) << 20) << 32 | low)
    form = FORMATS["f64"]
    whole = Fraction(math.floor(x * 64) if x < y else math.trunc(y * 64))
    sign = 1 << 63 if whole == 0 and (x if x < y else y) < 0 else 0
    found = (
        rounded(x / y, *form),
        root(abs(y), "f64"),
        rounded(x * y - x, *form),
        rounded(x + y, *form, "RP"),
        rounded(x * y, *form, "RZ"),
        rounded(whole, *form) | sign,
    )
    return [word for value in found for word in pair(value)]


def _double(encoding: int) -> Fraction:
    return Fraction(struct.unpack("<d", encoding.to_bytes(8, "little"))[0])


def halves(p: Words, i: int) -> tuple[int, ...]:
    a, b = p[i] & 0xBBFFBBFF | 0x20002000, p[i + 32] & 0xBBFFBBFF | 0x24002400
    values = [(f16(a >> s), f16(b >> s), a >> s & 0xFFFF, b >> s & 0xFFFF) for s in (0, 16)]
    form = FORMATS["f16"]

    def both(function: Callable[[float, float, int, int], int]) -> int:
        return function(*values[0]) | function(*values[1]) << 16

    (x0, y0, *_), (x1, y1, *_) = values
    brain = 0
    for shift in (0, 16):
        c, d = f32((a >> shift & 0xFFFF) << 16), f32((b >> shift & 0xFFFF) << 16)
        found = arithmetic("bf16", c, d, d)
        assert found is not None
        brain |= found << shift
    return (
        both(lambda x, y, _a, _b: rounded(Fraction(x) + Fraction(y), *form)),
        both(lambda x, y, _a, _b: rounded(Fraction(x) * Fraction(y), *form)),
        both(lambda x, y, _a, _b: rounded(Fraction(x) * Fraction(y) - Fraction(y), *form)),
        both(lambda x, y, a, b: max((x, a), (y, b))[1]),
        (x0 < y0 and x1 < y1) * 2 + (x0 < y1),
        brain,
    )


def conversions(p: Words, i: int) -> tuple[int, ...]:
    x, form = p[i], FORMATS["f32"]
    f = Fraction(f32(rounded(Fraction(s32(x)), *form))) / 65536
    product = Fraction(s32(x)) * Fraction(1048577.75)
    product = Fraction(float(product))  # which rounds once, to nearest
    again = Fraction(float(Fraction(x) * Fraction(1.1)))
    return (
        round(f),
        math.ceil(f),
        max(math.floor(f), 0),
        rounded(Fraction(x), *form, "RZ"),
        rounded(Fraction(x << 20 | 1), *form),
        *pair(math.floor(product)),
        s8(x) * 3 + (x >> 3 & 0xFFFF),
        rounded(f, *FORMATS["f16"]) | (0x8000 if f == 0 and s32(x) < 0 else 0),
        rounded(again, *form),
    )


def scan(p: Words) -> list[int]:
    return [sum(p[: i + 1]) & M for i in range(64)]


def locals_(p: Words, i: int) -> list[int]:
    c = [p[i] >> k & 255 for k in range(13)]
    s = [s16(p[i + 32] >> k) for k in range(7)]
    w = [p[i] * k & M for k in range(5)]
    for x in (p[i] & 1023, i):
        for k in range(13):
            c[(k * 5 + x) % 13] ^= c[k]
        for k in range(7):
            s[k] = s16(s[k] - s[(k + x) % 7] * 3)
        w[x % 5] = w[x % 5] + c[x % 13] + s[x % 7] & M
    r = 0
    for value in (*c, *s, *w):
        r = r * 31 + value
    return [r]


def ackermann(m: int, n: int) -> int:
    return n + 1 if m == 0 else ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


def blocks(p: Words) -> list[int]:
    """A grid of 2, 3 and 1 blocks, of 3, 2 and 2 threads."""
    return [
        p[tx + 3 * (ty + 2 * tz)] + by * 100 + bx * 10 + tz * 1000 & M
        for by in range(3)
        for bx in range(2)
        for tz in range(2)
        for ty in range(2)
        for tx in range(3)
    ]


def counters(p: Words) -> list[int | None]:
    mine = p[:32]
    conjunction, alternatives, count = M, 0, 50
    for x in mine:
        conjunction, alternatives = conjunction & (x | 255), alternatives | x & 0xF0F0
        count = 20 if count == 0 or count > 20 else count - 1
    total = (50 | 50 << 32) + 3 * sum(mine)
    return [
        count,
        max([50, *map(s32, mine)]) & M,
        min([50, *(x >> 27 for x in mine)]),
        7 - sum(mine) & M,
        *pair(total),
        30,
        31,
        conjunction,
        alternatives,
        *pair(max(mine) << 8),
    ]


def halving(p: Words) -> list[int]:
    values, small, d = list(p[:64]), [x >> 7 & 255 for x in p[:64]], 32
    while d:
        values = [values[i] * 3 + values[i + d] & M if i < d else values[i] for i in range(64)]
        small = [small[i] + small[i + d] & 255 if i < d else small[i] for i in range(64)]
        d >>= 1
    return [values[i] + small[i] & M for i in range(2)]


ROWS = (
    (1, -2, 3, 4 << 40, (1.5, -2)),
    (200, 300, 1 << 31, 7, (0, 9)),
    (5, 6, 7, M64, (8, 0.25)),
    (255, -32768, 11, 12, (-13, 14)),
)
QUADS = ((1, 2, 3, 4), (5, 60, 700, 8000))


def constants(p: Words, i: int) -> list[int]:
    a, b, c, d, e = ROWS[p[i] & 3]
    quad = QUADS[p[i] & 1]
    total = a * 3 + b * 5 + c * 7 + (d >> 33) * 11 + int(e[i & 1] * 4)
    return [total + sum(value * n for n, value in enumerate(quad, 1))]


def crowds(p: Words) -> list[int | None]:
    ends, turns = [], []
    for start in p[:32]:
        x, r = start, 0
        while x >= 3 and r < 20:
            x, r = (x // 2 if x % 3 else x - x // 3), r + 1
        ends.append(x)
        turns.append(r)
    ended = sum(1 << i for i, x in enumerate(ends) if x < 3)
    # Those with bit 2 need not be one crowd: their matches are multiples of 100, of no effect.
    same = [sum(r % 10 == turns[i] % 10 for r in turns) for i in range(32)]
    return [word for i in range(32) for word in (ends[i], ended, same[i])]


def fields(x: int, size: int, *, sign: bool = False) -> list[int]:
    found = [x >> at & (1 << size) - 1 for at in range(0, 32, size)]
    return [value - (value >> size - 1 << size) for value in found] if sign else found


def joined(values: Sequence[int], size: int) -> int:
    return sum((value & (1 << size) - 1) << at * size for at, value in enumerate(values))


def packed(p: Words, i: int) -> tuple[int, ...]:
    x, y = p[i], p[i + 32]
    bytes_ = list(zip(fields(x, 8), fields(y, 8), strict=True))
    signed_bytes = list(zip(fields(x, 8, sign=True), fields(y, 8, sign=True), strict=True))
    words = list(zip(fields(x, 16), fields(y, 16), strict=True))
    signed_words = list(zip(fields(x, 16, sign=True), fields(y, 16, sign=True), strict=True))
    low, high = fields(x, 16, sign=True)
    return (
        sum(a * b for a, b in bytes_) + 77,
        sum(a * b for a, b in signed_bytes) - 9,
        low * s8(y) + high * s8(y >> 8) + 5,
        joined([a + b for a, b in bytes_], 8),
        joined([max(a, b) for a, b in signed_words], 16),
        joined([abs(a - b) for a, b in bytes_], 8),
        joined([255 * (a > b) for a, b in bytes_], 8),
        joined([max(a - b, 0) for a, b in words], 16),
    )


def diamonds(p: Words, i: int) -> list[int]:
    x = p[i]
    value: list[Callable[[int], int]] = [
        lambda x: x + 3,
        lambda x: x * 5 ^ 5,
        lambda x: x + 8,
        lambda x: x * 9 ^ 5,
    ]
    twice: list[Callable[[int], int]] = [
        lambda x: value[0](value[0](x)),
        lambda x: value[1](value[1](x) & M),
        lambda x: value[2](x) + 1,
        lambda x: (value[3](x) + 1) * 2,
    ]
    return [(twice[x & 3](x) & M) ^ (value[x >> 2 & 3](x) & M)]


def checksums(p: Words, i: int) -> list[int]:
    return [zlib.crc32(struct.pack("<64I", *p)[4 * i :][: 9 + (i & 3)])]


def wides(p: Words, i: int) -> list[int]:
    mask = (1 << 128) - 1
    a, b = (p[i] << 70) + p[i + 32] & mask, p[i + 32] - (p[i ^ 1] << 33)
    a = a * (p[i ^ 3] | 1) + (a >> 37) & mask
    b = b * 1000003 - (b >> 5) + (a & 0xFFFF) & mask
    return [*pair((a ^ a >> 64) & M64), *pair((b ^ (b >> 64) * 3) & M64)]


def groups(p: Words) -> list[int]:
    odd = [i for i in range(32) if p[i] & 1]
    found = []
    for i in range(32):
        tile = [x for x in range(32) if x >> 3 == i >> 3]
        r = p[i ^ 3] + (i >> 3) * 1000 & M
        if i in odd:
            r ^= odd.index(i) * 77 + len(odd) * 3 + p[odd[0]] & M
        ballot = sum(1 << x % 8 for x in tile if p[x] & 2)
        found.append(r + any(p[x] > 0xC0000000 for x in tile) + ballot * 16 & M)
    return found


# Threads of a block, blocks, and what is written; None is a word that need not be anything.
Size = tuple[int, int, int]
ONE: Size = (1, 1, 1)
PROGRAMS: dict[str, tuple[Size, Size, Callable[[Words], Sequence[int | None]]]] = {
    "bits": ((32, 1, 1), ONE, each(bits)),
    "quotients": ((32, 1, 1), ONE, each(quotients)),
    "products": ((32, 1, 1), ONE, each(products)),
    "singles": ((32, 1, 1), ONE, each(singles)),
    "doubles": ((32, 1, 1), ONE, each(doubles)),
    "halves": ((32, 1, 1), ONE, each(halves)),
    "conversions": ((32, 1, 1), ONE, each(conversions)),
    "sorting": ((64, 1, 1), ONE, lambda p: sorted(p[:64])),
    "scan": ((64, 1, 1), ONE, scan),
    "locals": ((32, 1, 1), ONE, each(locals_)),
    "mutual": (
        (32, 1, 1),
        ONE,
        each(lambda p, i: [(p[i] & 1 ^ 1) * 100000 + ackermann(i % 3, p[i] >> 4 & 3)]),
    ),
    "blocks": ((3, 2, 2), (2, 3, 1), blocks),
    "counters": ((32, 1, 1), ONE, counters),
    "halving": ((64, 1, 1), ONE, halving),
    "constants": ((32, 1, 1), ONE, each(constants)),
    "crowds": ((32, 1, 1), ONE, crowds),
    "packed": ((32, 1, 1), ONE, each(packed)),
    "diamonds": ((32, 1, 1), ONE, each(diamonds)),
    "checksums": ((32, 1, 1), ONE, each(checksums)),
    "wides": ((32, 1, 1), ONE, each(wides)),
    "groups": ((32, 1, 1), ONE, groups),
}
SHARED = 4 * 64 + 64  # bytes of dynamic shared memory that one of them uses
