"""Integer sums, products and comparisons, in registers and in uniform registers alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulator.build import Build, Get, GetFlags, PutFlags, _drop_flags, signs_of
from emulator.lanes import ALL, Flags, Row, Wide, high_word, low_word, wide
from emulator.machine import Fragment, Step
from emulator.operands import ZERO, Operand, Register

_32 = np.uint64(32)


def is_zero(operand: Operand) -> bool:
    """Whether an operand is RZ or URZ."""
    return isinstance(operand, Register) and operand.number == ZERO


def carry_outputs(b: Build) -> list[PutFlags]:
    """The predicates behind the destination."""
    found = []
    while b.next_is_predicate():
        found.append(b.put_flags())
    return found


def carry_inputs(b: Build) -> list[GetFlags]:
    """The predicates at the end."""
    found = []
    while b.operands:
        found.append(b.flags())
    return found


def _term(b: Build, operand: Operand) -> tuple[Get, int]:
    """A source of an addition with carry: its bits, inverted for a sign, and what is added."""
    get, signs = b.bits(operand), signs_of(operand)
    if not signs:
        return get, 0
    if signs not in ("-", "~"):
        raise b.unsupported(f"operand {operand}")
    return (lambda f: ~get(f)), int(signs == "-")


def add_with_carry(
    b: Build, operands: list[Operand], carries: list[GetFlags]
) -> Callable[[Fragment], Wide]:
    """The sum of 32-bit operands and carries; what exceeds 32 bits is the carry out."""
    terms = [_term(b, operand) for operand in operands if not is_zero(operand) or signs_of(operand)]
    extra = np.uint64(sum(more for _, more in terms))

    def total(f: Fragment) -> Wide:
        result = np.full(1, extra, np.uint64)
        for get, _ in terms:
            result = result + get(f)
        for carry in carries:
            result = result + carry(f)
        return result

    return total


def put_carries(b: Build, carries: list[PutFlags]) -> Callable[[Fragment, Wide], None]:
    """Writes the carry of a sum to one predicate, or what of it is above one to a second."""
    if all(put is _drop_flags for put in carries):
        return lambda f, value: None
    if len(carries) > 2:
        raise b.unsupported("third carry")
    limits = [np.uint64(1 << 32), np.uint64(2 << 32)]

    def put(f: Fragment, value: Wide) -> None:
        for write, limit in zip(carries, limits, strict=False):
            write(f, value >= limit)

    return put


def iadd3(b: Build) -> Step:
    extended, double = b.take("X"), b.take("64")
    target = b.next()
    outputs = carry_outputs(b)
    sources = [b.next(), b.next(), b.next()]
    inputs = carry_inputs(b)
    if double:
        if extended or inputs or not all(put is _drop_flags for put in outputs):
            raise b.unsupported("carry")
        write = b.put_wide(target)
        wides = [b.integer_wide(operand) for operand in sources]
        return lambda f: write(f, wides[0](f) + wides[1](f) + wides[2](f))
    put = b.put(0, target)
    if inputs and not extended:
        raise b.unsupported("carry")
    if not inputs and all(output is _drop_flags for output in outputs):
        x, y, z = (b.integer(operand) for operand in sources)
        if is_zero(sources[2]):
            return lambda f: put(f, x(f) + y(f))
        return lambda f: put(f, x(f) + y(f) + z(f))
    total, write_carries = add_with_carry(b, sources, inputs), put_carries(b, outputs)

    def run(f: Fragment) -> None:
        value = total(f)
        put(f, low_word(value))
        write_carries(f, value)

    return run


def add(b: Build) -> Step:
    """IADD and VIADD: two operands of 32 or 64 bits, of halves or of bytes."""
    extended = b.take("X")
    if b.take("64"):
        return _add_pairs(b, extended)
    if extended:
        raise b.unsupported("carry")
    parts = b.choose({"16x2": 16, "U16x2": 16, "U8x4": 8}, 32)
    put = b.put()
    if parts == 32:
        x, y = b.integer(), b.integer()
        return lambda f: put(f, x(f) + y(f))
    left, right = (_split_source(b, parts) for _ in range(2))
    return lambda f: put(f, _joined([p + q for p, q in zip(left(f), right(f), strict=True)], parts))


def _add_pairs(b: Build, extended: bool) -> Step:
    """The sum of two pairs of registers, with a carry out and, where it is extended, one in."""
    write, outputs = b.put_wide(), carry_outputs(b)
    first, second = b.next(), b.next()
    inputs = carry_inputs(b)
    if len(outputs) > 1 or len(inputs) > 1 or bool(inputs) != extended:
        raise b.unsupported("carry")
    if not outputs and not inputs:
        left, right = b.integer_wide(first), b.integer_wide(second)
        return lambda f: write(f, left(f) + right(f))
    x, y, negative = b.integer_wide(first), b.integer_wide(second), signs_of(second) == "-"
    if signs_of(first) not in ("", "~") or (negative and extended):
        raise b.unsupported("sign")
    unit = np.uint64(1)

    def run(f: Fragment) -> None:
        # A difference is the sum with the inverse and one: its carry says that nothing is lent.
        left, right = x(f), y(f) - unit if negative else y(f)
        total = left + right
        carry = total < left
        more = inputs[0](f).astype(np.uint64) if inputs else np.uint64(negative)
        again = total + more
        write(f, again)
        if outputs:
            outputs[0](f, carry | (again < total))

    return run


def _split_source(b: Build, parts: int) -> Callable[[Fragment], list[Row]]:
    """The fields of 8 or 16 bits, low field first; a negative sign is of each of them."""
    operand = b.next()
    get, signs = b.bits(operand), signs_of(operand)
    if signs not in ("", "-"):
        raise b.unsupported(f"operand {operand}")

    def fields(f: Fragment) -> list[Row]:
        found = _fields(get(f), parts)
        return [np.negative(field) for field in found] if signs else found

    return fields


def _fields(value: Row, parts: int) -> list[Row]:
    mask = (1 << parts) - 1
    return [value >> at & mask for at in range(0, 32, parts)]


def _joined(fields: list[Row], parts: int) -> Row:
    mask = (1 << parts) - 1
    result = fields[0] & mask
    for index, field in enumerate(fields[1:], 1):
        result = result | (field & mask) << index * parts
    return result


def imad(b: Build) -> Step:
    wide_result, high, extended = b.take("WIDE"), b.take("HI"), b.take("X")
    unsigned_factors = b.take("U32")
    b.take("MOV", "SHL", "IADD")  # what ptxas wants with it; the product is the same
    target = b.next()
    outputs = carry_outputs(b)
    first, second, third = b.next(), b.next(), b.next()
    inputs = carry_inputs(b)
    if inputs and not extended:
        raise b.unsupported("carry")
    if not wide_result and not high:
        if not all(put is _drop_flags for put in outputs):
            raise b.unsupported("carry")
        put = b.put(0, target)
        x, y, z = b.integer(first), b.integer(second), b.integer(third)
        if inputs:
            return lambda f: put(f, x(f) * y(f) + z(f) + inputs[0](f).astype(np.uint32))
        if is_zero(first) or is_zero(second):
            return lambda f: put(f, z(f))
        if is_zero(third):
            return lambda f: put(f, x(f) * y(f))
        return lambda f: put(f, x(f) * y(f) + z(f))
    x, y, added = b.integer(first), b.integer(second), b.integer_wide(third)
    carries = list(outputs)
    if len(carries) > 1 and carries[1] is not _drop_flags:
        raise b.unsupported("second carry")
    write_wide = b.put_wide(target) if wide_result else None
    write_high = None if wide_result else b.put(0, target)

    def run(f: Fragment) -> None:
        product = _product(x(f), y(f), unsigned_factors)
        summand = added(f)
        total = product + summand
        carry = total < product
        if inputs:
            more = total + inputs[0](f).astype(np.uint64)
            carry = carry | (more < total)
            total = more
        if write_wide:
            write_wide(f, total)
        elif write_high:
            write_high(f, high_word(total))
        if carries:
            carries[0](f, carry)

    return run


def _product(x: Row, y: Row, unsigned_factors: bool) -> Wide:
    if unsigned_factors:
        return x.astype(np.uint64) * y.astype(np.uint64)
    product = x.view(np.int32).astype(np.int64) * y.view(np.int32).astype(np.int64)
    return product.view(np.uint64)


def lea(b: Build) -> Step:
    high, extended, sign = b.take("HI"), b.take("X"), b.take("SX32")
    put = b.put()
    outputs = carry_outputs(b)
    first = b.next()
    second = b.next()
    upper = b.bits() if high and not sign else None
    shift = b.number()
    inputs = carry_inputs(b)
    if inputs and not extended:
        raise b.unsupported("carry")
    low, signs = b.bits(first), signs_of(first)
    rest, write_carries = add_with_carry(b, [second], inputs), put_carries(b, outputs)
    if signs not in ("", "-", "~"):
        raise b.unsupported(f"operand {first}")

    def run(f: Fragment) -> None:
        value = low(f)
        if sign:
            whole = value.view(np.int32).astype(np.int64).view(np.uint64)
        elif upper:
            whole = wide(value, upper(f))
        else:
            whole = value.astype(np.uint64)
        whole = whole << np.uint64(shift)
        if high:
            if signs:
                whole = ~whole + np.uint64(signs == "-")
            whole = whole >> _32
            total = whole + rest(f)
        elif signs:
            total = (~whole & np.uint64(ALL)) + np.uint64(signs == "-") + rest(f)
        else:
            total = (whole & np.uint64(ALL)) + rest(f)
        put(f, low_word(total))
        write_carries(f, total)

    return run


_INTEGERS = {
    "U32": (np.uint32, False),
    "S64": (np.int64, True),
    "U64": (np.uint64, True),
    "S32": (np.int32, False),
}


_COMPARE: dict[str, Callable[[Row, Row], Flags]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
    "T": lambda a, b: np.equal(a, a),
    "F": lambda a, b: np.not_equal(a, a),
}


COMBINE: dict[str, Callable[[Flags, Flags], Flags]] = {
    "AND": np.logical_and,
    "OR": np.logical_or,
    "XOR": np.logical_xor,
}


def put_comparison(
    b: Build, put_first: PutFlags, put_second: PutFlags
) -> Callable[[Fragment, Flags], None]:
    """Writes a comparison and its opposite, each combined with the next predicate."""
    combine = b.need(COMBINE)
    more = b.flags()

    def put(f: Fragment, found: Flags) -> None:
        third = more(f)
        if put_second is not _drop_flags:
            opposite = combine(~found, third)
            put_first(f, combine(found, third))
            put_second(f, opposite)
        else:
            put_first(f, combine(found, third))

    return put


def isetp(b: Build) -> Step:
    compare_name = b.need({name: name for name in _COMPARE})
    compare = _COMPARE[compare_name]
    kind, double = b.choose(_INTEGERS, (np.int32, False))
    extended = b.take("EX")
    put_first, put_second = b.put_flags(), b.put_flags()
    if double:
        left, right = b.integer_wide(), b.integer_wide()
        write = put_comparison(b, put_first, put_second)
        return lambda f: write(f, compare(left(f).view(kind), right(f).view(kind)))
    x, y = b.integer(), b.integer()
    write = put_comparison(b, put_first, put_second)
    if not extended:
        return lambda f: write(f, compare(x(f).view(kind), y(f).view(kind)))
    lower = b.flags()
    strict = {"LE": np.less, "GE": np.greater}.get(compare_name, compare)

    def run(f: Fragment) -> None:
        p, q, low = x(f).view(kind), y(f).view(kind), lower(f)
        if compare_name == "EQ":
            found = (p == q) & low
        elif compare_name == "NE":
            found = (p != q) | low
        else:
            found = strict(p, q) | (p == q) & low
        write(f, found)

    return run


_ROWS: dict[str, Callable[[Build], Step]] = {
    "IADD3": iadd3,
    "IADD": add,
    "VIADD": add,
    "IMAD": imad,
    "LEA": lea,
    "ISETP": isetp,
}
OPCODES: dict[str, Callable[[Build], Step]] = {
    **_ROWS,
    **{f"U{name}": builder for name, builder in _ROWS.items()},
}
