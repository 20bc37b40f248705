"""Minimum, maximum, differences and dot products, of words and of the fields in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulator.build import Build, _drop_flags
from emulator.lanes import Flags, Row
from emulator.machine import Fragment, Step
from emulator.operands import ZERO, Register
from emulator.semantics.integer import _fields, _joined, _split_source, carry_outputs

_PARTS = {
    "S32": (32, True),
    "U32": (32, False),
    "S16x2": (16, True),
    "U16x2": (16, False),
    "S8x4": (8, True),
    "U8x4": (8, False),
}


_TYPES = {
    (32, True): np.int32,
    (32, False): np.uint32,
    (16, True): np.int16,
    (16, False): np.uint16,
    (8, True): np.int8,
    (8, False): np.uint8,
}


def extreme(parts: tuple[int, bool], least: Flags, x: Row, y: Row) -> Row:
    """The smaller of both where `least`, else the larger, field by field."""
    kind = _TYPES[parts]
    count = max(len(x), len(y), len(least))
    left, right = np.resize(x, count).view(kind), np.resize(y, count).view(kind)
    choice = np.repeat(np.resize(least, count), 32 // parts[0])
    return np.where(choice, np.minimum(left, right), np.maximum(left, right)).view(np.uint32)


def _relu(parts: tuple[int, bool], value: Row) -> Row:
    kind = _TYPES[parts]
    return np.maximum(value.view(kind), kind(0)).view(np.uint32)


def minmax(b: Build) -> Step:
    """IMNMX and VIMNMX; predicates behind the destination may only be PT."""
    if b.instruction.opcode.endswith("IMNMX") and b.take("S64"):
        return _minmax_wide(b)
    parts, relu = b.choose(_PARTS, (32, True)), b.take("RELU")
    put = b.put()
    if not all(carry_output is _drop_flags for carry_output in carry_outputs(b)):
        raise b.unsupported("predicate")
    x, y, least = b.integer(), b.integer(), b.flags()

    def run(f: Fragment) -> None:
        value = extreme(parts, least(f), x(f), y(f))
        put(f, _relu(parts, value) if relu else value)

    return run


def _minmax_wide(b: Build) -> Step:
    if not all(carry_output is _drop_flags for carry_output in carry_outputs(b)):
        raise b.unsupported("predicate")
    put, x, y, least, last = b.put_wide(), b.integer_wide(), b.integer_wide(), b.flags(), b.next()
    if not isinstance(last, Register) or last.number != ZERO or last.signs != "!":
        raise b.unsupported(f"operand {last}")

    def run(f: Fragment) -> None:
        p, q = x(f).view(np.int64), y(f).view(np.int64)
        put(f, np.where(least(f), np.minimum(p, q), np.maximum(p, q)).view(np.uint64))

    return run


def minmax3(b: Build) -> Step:
    parts, relu = b.choose(_PARTS, (32, True)), b.take("RELU")
    put, x, y, z, least = b.put(), b.integer(), b.integer(), b.integer(), b.flags()

    def run(f: Fragment) -> None:
        choice = least(f)
        value = extreme(parts, choice, extreme(parts, choice, x(f), y(f)), z(f))
        put(f, _relu(parts, value) if relu else value)

    return run


def add_minmax(b: Build) -> Step:
    parts, relu = b.choose(_PARTS, (32, True)), b.take("RELU")
    put = b.put()
    if b.next_is_predicate():
        raise b.unsupported("predicate")
    left, right = _addends(b, parts[0])
    z, least = b.integer(), b.flags()

    def run(f: Fragment) -> None:
        p, q = left(f), right(f)
        total = (
            _joined([s + t for s, t in zip(p, q, strict=True)], parts[0])
            if parts[0] < 32
            else p[0] + q[0]
        )
        value = extreme(parts, least(f), total, z(f))
        put(f, _relu(parts, value) if relu else value)

    return run


def _addends(
    b: Build, parts: int
) -> tuple[Callable[[Fragment], list[Row]], Callable[[Fragment], list[Row]]]:
    if parts == 32:
        x, y = b.integer(), b.integer()
        return (lambda f: [x(f)]), (lambda f: [y(f)])
    return _split_source(b, parts), _split_source(b, parts)


def iabs(b: Build) -> Step:
    put, x = b.put(), b.integer()
    return lambda f: put(f, np.abs(x(f).view(np.int32)).view(np.uint32))


def vabsdiff(b: Build) -> Step:
    kind = np.uint32 if b.take("U32") else np.int32
    put, x, y, z = b.put(), b.integer(), b.integer(), b.integer()

    def run(f: Fragment) -> None:
        p, q = x(f).view(kind).astype(np.int64), y(f).view(kind).astype(np.int64)
        put(f, np.abs(p - q).astype(np.uint32) + z(f))

    return run


def vabsdiff4(b: Build) -> Step:
    if not b.take("U8"):
        raise b.unsupported("missing modifier")
    accumulate = b.take("ACC")
    # Without ACC the third operand would fill the bytes that a mask leaves out, and all are in.
    put, x, y, z = b.put(), b.bits(), b.bits(), b.integer()

    def run(f: Fragment) -> None:
        pairs = zip(_fields(x(f), 8), _fields(y(f), 8), strict=True)
        found = [np.maximum(p, q) - np.minimum(p, q) for p, q in pairs]
        put(
            f, found[0] + found[1] + found[2] + found[3] + z(f) if accumulate else _joined(found, 8)
        )

    return run


_BYTES = {"S8": np.int8, "U8": np.uint8}


_HALVES = {"S16": np.int16, "U16": np.uint16}


def idp(b: Build) -> Step:
    """Dot products of four bytes with four, or of two halves with two of four bytes."""
    four = b.take("4A")
    if not four and not b.take("2A"):
        raise b.unsupported("missing modifier")
    upper = b.take("HI")
    if not four and not upper and not b.take("LO"):
        raise b.unsupported("missing modifier")
    first = b.need(_BYTES if four else _HALVES)
    second = b.need(_BYTES)
    put, x, y, z = b.put(), b.bits(), b.bits(), b.integer()

    def run(f: Fragment) -> None:
        count = max(len(x(f)), len(y(f)))
        left = np.resize(x(f), count).view(first).reshape(count, -1).astype(np.int64)
        right = np.resize(y(f), count).view(second).reshape(count, -1).astype(np.int64)
        if not four:
            right = right[:, 2:] if upper else right[:, :2]
        put(f, (left * right).sum(axis=1).astype(np.uint64).astype(np.uint32) + z(f))

    return run


_ROWS: dict[str, Callable[[Build], Step]] = {
    "IMNMX": minmax,
    "VIMNMX": minmax,
    "VIMNMX3": minmax3,
    "VIADDMNMX": add_minmax,
    "IABS": iabs,
}
OPCODES: dict[str, Callable[[Build], Step]] = {
    **_ROWS,
    **{f"U{name}": builder for name, builder in _ROWS.items()},
    "VABSDIFF": vabsdiff,
    "VABSDIFF4": vabsdiff4,
    "IDP": idp,
}
