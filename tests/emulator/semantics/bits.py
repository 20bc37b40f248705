"""Logic, shifts and permutations of bits, in registers and in uniform registers alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulator.build import Build, Get, Put, _drop_flags
from emulator.lanes import ALL, Flags, Row, Wide, high_word, low_word, wide
from emulator.machine import Fragment, Step
from emulator.operands import Immediate

_63 = np.uint64(63)

_TWO_INPUTS: dict[int, Callable[[Row, Row, Row], Row]] = {
    0xC0: lambda a, b, c: a & b,
    0xFC: lambda a, b, c: a | b,
    0x3C: lambda a, b, c: a ^ b,
    0x30: lambda a, b, c: a & ~b,
    0x0C: lambda a, b, c: ~a & b,
    0x33: lambda a, b, c: ~b,
    0x0F: lambda a, b, c: ~a,
    0x80: lambda a, b, c: a & b & c,
    0xFE: lambda a, b, c: a | b | c,
    0x96: lambda a, b, c: a ^ b ^ c,
    0xF8: lambda a, b, c: a | b & c,
    0xEA: lambda a, b, c: a & b | c,
}


def logic(table: int) -> Callable[[Row, Row, Row], Row]:
    """The function of three inputs whose value for a, b, c is bit 4a + 2b + c of `table`."""
    if table in _TWO_INPUTS:
        return _TWO_INPUTS[table]

    def apply(a: Row, b: Row, c: Row) -> Row:
        result = np.zeros(1, a.dtype)
        for index in range(8):
            if table >> index & 1:
                left = a if index & 4 else ~a
                middle = b if index & 2 else ~b
                right = c if index & 1 else ~c
                result = result | left & middle & right
        return result

    return apply


def lop3(b: Build) -> Step:
    if not b.take("LUT"):
        raise b.unsupported("missing modifier")
    both = b.take("PAND")
    put_flag = b.put_flags() if b.next_is_predicate() else None
    put = b.put()
    x, y, z = b.integer(), b.integer(), b.integer()
    apply = logic(b.number())
    more = b.flags()
    if put_flag is None:
        return lambda f: put(f, apply(x(f), y(f), z(f)))
    write_flag = put_flag

    def run(f: Fragment) -> None:
        value = apply(x(f), y(f), z(f))
        flag: Flags = value != 0
        put(f, value)
        write_flag(f, flag & more(f) if both else flag | more(f))

    return run


def plop3(b: Build) -> Step:
    if not b.take("LUT"):
        raise b.unsupported("missing modifier")
    put_first, put_second = b.put_flags(), b.put_flags()
    x, y, z = b.flags(), b.flags(), b.flags()
    first, second = b.number(), b.number()

    def run(f: Fragment) -> None:
        index = x(f) * 4 + y(f) * 2 + z(f)
        put_first(f, (first >> index & 1).astype(np.bool_))
        put_second(f, (second >> index & 1).astype(np.bool_))

    return run


def shf(b: Build) -> Step:
    right, left = b.take("R"), b.take("L")
    high, wrap = b.take("HI"), b.take("W")
    kind = b.need({"U32": (32, False), "S32": (32, True), "U64": (64, False), "S64": (64, True)})
    if right == left:
        raise b.unsupported("direction")
    bits, sign = kind
    put, low, amount = b.put(), b.integer(), b.operands[0]
    fixed = amount.value if isinstance(amount, Immediate) else 0
    if bits == 32 and 0 < fixed < 32 and high == right:
        # One word alone decides: the upper one of a right shift, the lower one of a left shift.
        b.next()
        upper, count = b.integer(), np.uint32(fixed)
        if not right:
            return lambda f: put(f, low(f) << count)
        if sign:
            return lambda f: put(f, (upper(f).view(np.int32) >> np.int32(fixed)).view(np.uint32))
        return lambda f: put(f, upper(f) >> count)
    return _funnel(b, put, low, kind, (right, high, wrap))


def _funnel(
    b: Build, put: Put, low: Get, kind: tuple[int, bool], ways: tuple[bool, bool, bool]
) -> Step:
    """A shift of two words of which one is the result."""
    (bits, sign), (right, high, wrap) = kind, ways
    amount, upper = b.integer(), b.integer()

    def run(f: Fragment) -> None:
        value = wide(low(f), upper(f))
        shift = amount(f)
        shift = shift & (bits - 1) if wrap else np.minimum(shift, bits)
        value = shifted(value, shift.astype(np.uint64), right, sign)
        put(f, high_word(value) if high else low_word(value))

    return run


def shifted(value: Wide, shift: Wide, right: bool, sign: bool) -> Wide:
    """64-bit values shifted by 0 to 64 bits."""
    within = np.minimum(shift, _63)
    if right and sign:
        return (value.view(np.int64) >> within.view(np.int64)).view(np.uint64)
    result = value >> within if right else value << within
    return np.where(shift > _63, np.uint64(0), result)


def popc(b: Build) -> Step:
    put, x = b.put(), b.integer()
    return lambda f: put(f, np.bitwise_count(x(f)).astype(np.uint32))


def flo(b: Build) -> Step:
    unsigned_value, shift = b.take("U32"), b.take("SH")
    put = b.put()
    if b.next_is_predicate() and b.put_flags() is not _drop_flags:
        raise b.unsupported("predicate")
    x = b.integer()

    def run(f: Fragment) -> None:
        value = x(f)
        if not unsigned_value:
            value = np.where(value >> 31, ~value, value)
        place = (np.frexp(value.astype(np.float64))[1] - 1).astype(np.int32).view(np.uint32)
        place = np.where(value == 0, np.uint32(ALL), 31 - place if shift else place)
        put(f, place)

    return run


def brev(b: Build) -> Step:
    put, x = b.put(), b.integer()

    def run(f: Fragment) -> None:
        value = x(f).astype(">u4", copy=True)
        bits = np.unpackbits(value.view(np.uint8), bitorder="little")
        put(f, np.packbits(bits).view("<u4").astype(np.uint32))

    return run


def prmt(b: Build) -> Step:
    put, low, selector, high = b.put(), b.bits(), b.bits(), b.bits()

    def run(f: Fragment) -> None:
        value, chosen = wide(low(f), high(f)), selector(f)
        result = np.zeros(1, np.uint32)
        for index in range(4):
            nibble = chosen >> 4 * index & 15
            byte = (value >> ((nibble & 7) * 8).astype(np.uint64) & np.uint64(255)).astype(
                np.uint32
            )
            sign = np.where(byte > 127, np.uint32(255), np.uint32(0))
            result = result | np.where(nibble > 7, sign, byte) << 8 * index
        put(f, result)

    return run


def sgxt(b: Build) -> Step:
    zeros, wrap = b.take("U32"), b.take("W")
    put, x, amount = b.put(), b.integer(), b.integer()

    def run(f: Fragment) -> None:
        value, bits = x(f), amount(f)
        bits = (bits & 31 if wrap else np.minimum(bits, 32)).astype(np.uint64)
        up = np.uint64(64) - bits
        moved = shifted(value.astype(np.uint64), up, right=False, sign=False)
        put(f, low_word(shifted(moved, up, right=True, sign=not zeros)))

    return run


def bmsk(b: Build) -> Step:
    wrap = b.take("W")
    put, start, count = b.put(), b.integer(), b.integer()

    def run(f: Fragment) -> None:
        first, bits = start(f), count(f)
        first = first & 31 if wrap else np.minimum(first, 32)
        bits = bits & 31 if wrap else np.minimum(bits, 32)
        ones = (np.uint64(1) << bits.astype(np.uint64)) - np.uint64(1)
        put(f, low_word(ones << first.astype(np.uint64)))

    return run


_ROWS: dict[str, Callable[[Build], Step]] = {
    "LOP3": lop3,
    "PLOP3": plop3,
    "SHF": shf,
    "POPC": popc,
    "FLO": flo,
    "BREV": brev,
    "PRMT": prmt,
    "SGXT": sgxt,
    "BMSK": bmsk,
}
OPCODES: dict[str, Callable[[Build], Step]] = {
    **_ROWS,
    **{f"U{name}": builder for name, builder in _ROWS.items()},
}
