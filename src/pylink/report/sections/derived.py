"""Derived metrics: one operator between two metrics or constants.

    expression := operand operator operand          operator := + - * /
    operand    := metric name | digits "." digits? (a double) | digits (an unsigned integer)

A metric may have a regular value, instances, or both; `combine` says what becomes of which. The
left operand decides the kind of the result, and the right one is converted to it.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable, Mapping

from pylink.report.model import Instance, Metric, Scalar, ValueKind, kind_of

OPERAND = r"[0-9]+(?:\.[0-9]*)?(?![\w.:])|[A-Za-z_][\w.:]*"
EXPRESSION = re.compile(rf"\s*({OPERAND})\s*([-+*/])\s*({OPERAND})\s*")

LARGEST = {ValueKind.UINT32: 2**32 - 1, ValueKind.UINT64: 2**64 - 1}

Warn = Callable[[str], None]


class DerivedError(ValueError):
    """An expression that is none."""


def parse(expression: str) -> tuple[str, str, str]:
    """Left operand, operator and right operand; DerivedError unless there are just these."""
    match = EXPRESSION.fullmatch(expression)
    if match is None:
        raise DerivedError(
            f"'{expression}' is not a metric or number, one of + - * /, and a metric or number"
        )
    left, sign, right = match.groups()
    return left, sign, right


def constant(text: str) -> Metric | None:
    """The metric that a number stands for; None for the name of a metric."""
    if not text[0].isdigit():
        return None
    if "." in text:
        return Metric(text, float(text))
    return Metric(text, min(int(text), LARGEST[ValueKind.UINT64]))


def evaluate(name: str, expression: str, metrics: Mapping[str, Metric], warn: Warn) -> Metric:
    """The metric `name` of an expression over `metrics`.

    DerivedError for a malformed expression, KeyError with the name of a metric that is missing.
    `warn` hears of values that do not fit their kind.
    """
    left, sign, right = parse(expression)
    operands = [constant(text) or metrics[text] for text in (left, right)]
    return combine(name, operands[0], sign, operands[1], warn)


def combine(name: str, left: Metric, sign: str, right: Metric, warn: Warn) -> Metric:
    """`left sign right` as the metric `name`.

    Regular values are combined where both operands have one. Instances:

    1. neither has any: none;
    2. neither has ids: element by element, what the left has more stays as it is;
    3. both have ids: all ids of both; an id of one side alone keeps its value;
    4. only the left has ids: every element with the right's regular value;
    5. only the right has ids: no instances, and the left's regular value is combined with one
       element of the right after the other.

    A left operand that is a string is returned unchanged.
    """
    if left.kind is ValueKind.STRING:
        return Metric(name, left.value, left.kind, list(left.instances))

    def apply(a: Scalar, b: Scalar, kind: ValueKind) -> Scalar:
        return _apply(a, sign, b, kind, warn)

    value: Scalar | None = None
    if left.value is not None and right.value is not None:
        value = apply(left.value, right.value, left.kind)
    result = Metric(name, value, left.kind if value is not None else ValueKind.UNKNOWN)
    if left.has_ids and right.has_ids:
        result.instances = _joined(left, right, apply)
    elif left.has_ids:
        result.instances = [
            Instance(
                each.value if right.value is None else apply(each.value, right.value, each.kind),
                each.id,
                each.kind,
                each.id_kind,
            )
            for each in left.instances
        ]
    elif right.has_ids:
        if left.value is not None:
            total: Scalar = left.value
            for each in right.instances:
                total = apply(total, each.value, left.kind)
            result.value, result.kind = total, left.kind
    else:
        result.instances = [
            Instance(
                apply(each.value, right.instances[at].value, each.kind)
                if at < len(right.instances)
                else each.value,
                kind=each.kind,
            )
            for at, each in enumerate(left.instances)
        ]
    return result


def _joined(
    left: Metric, right: Metric, apply: Callable[[Scalar, Scalar, ValueKind], Scalar]
) -> list[Instance]:
    """All ids of both, those of the left first."""
    others = right.by_id()
    joined = []
    for each in left.instances:
        assert each.id is not None
        value = each.value
        if each.id in others:
            value = apply(value, others[each.id], each.kind)
        joined.append(Instance(value, each.id, each.kind, each.id_kind))
    known = left.by_id()
    kind = left.instances[0].kind
    for each in right.instances:
        if each.id not in known:
            joined.append(Instance(convert(each.value, kind), each.id, kind, each.id_kind))
    return joined


def convert(value: Scalar, kind: ValueKind) -> Scalar:
    """A value as another kind has it: integers drop the fraction, text counts as 0."""
    if kind is ValueKind.STRING:
        return str(value)
    number = 0 if isinstance(value, str) else value
    if kind in LARGEST:
        if isinstance(number, float) and not math.isfinite(number):
            return LARGEST[kind] if number > 0 else 0
        return min(max(int(number), 0), LARGEST[kind])
    return _rounded(float(number), kind)


def _rounded(value: float, kind: ValueKind) -> float:
    if kind is not ValueKind.FLOAT or not math.isfinite(value):
        return value
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _apply(left: Scalar, sign: str, right: Scalar, kind: ValueKind, warn: Warn) -> Scalar:
    """`left sign right` in `kind`, that of the left.

    A division by an integer zero gives the left value, also where the divisor is 0 only after its
    conversion. Unsigned results stay within their kind.
    """
    if isinstance(left, str):
        return left
    divisor = convert(right, kind)
    assert not isinstance(divisor, str)
    if sign == "/" and (_is_integer_zero(right) or _is_integer_zero(divisor)):
        return left
    if kind in LARGEST:
        result = _INTEGER[sign](int(left), int(divisor))
        bounded = min(max(result, 0), LARGEST[kind])
        if bounded != result:
            warn(f"{left} {sign} {divisor} does not fit an unsigned integer, {bounded} is used")
        return bounded
    return _rounded(_DOUBLE[sign](float(left), float(divisor)), kind)


def _is_integer_zero(value: Scalar) -> bool:
    return kind_of(value) is ValueKind.UINT64 and value == 0


def _divide(left: float, right: float) -> float:
    """IEEE arithmetic, which Python leaves where a divisor is 0."""
    if right:
        return left / right
    if math.isnan(left) or left == 0:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


_INTEGER: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
}
_DOUBLE: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
}
