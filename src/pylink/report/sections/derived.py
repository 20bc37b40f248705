"""Computes derived metrics: one operator between two metrics or constants.

    expression := operand operator operand          operator := + - * /
    operand    := metric name | digits "." digits? (a double) | digits (an unsigned integer)

A metric may have a value of its own, instances, or both; see `combine`. Results have the kind of
the left operand, to which the right one is converted.
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

# Largest values of unsigned kinds.
MAX_VALUES = {ValueKind.UINT32: 2**32 - 1, ValueKind.UINT64: 2**64 - 1}

# A function that is called with a text about a value that does not fit its kind.
Warn = Callable[[str], None]


class DerivedError(ValueError):
    """An invalid expression of a derived metric."""


def parse(expression: str) -> tuple[str, str, str]:
    """Split an expression into left operand, operator and right operand, or raise DerivedError."""
    match = EXPRESSION.fullmatch(expression)
    if match is None:
        raise DerivedError(
            f"'{expression}' is not a metric or number, one of + - * /, and a metric or number"
        )
    left, sign, right = match.groups()
    return left, sign, right


def constant(text: str) -> Metric | None:
    """Return the number that an operand is, as a metric; None if it is the name of a metric."""
    if not text[0].isdigit():
        return None
    if "." in text:
        return Metric(text, float(text))
    return Metric(text, min(int(text), MAX_VALUES[ValueKind.UINT64]))


def evaluate(name: str, expression: str, metrics: Mapping[str, Metric], warn: Warn) -> Metric:
    """Compute the metric `name` from an expression; names in it are keys of `metrics`.

    DerivedError for an invalid expression, KeyError with the name of a missing metric. `warn` is
    called for values that do not fit their kind.
    """
    left, sign, right = parse(expression)
    operands = [constant(text) or metrics[text] for text in (left, right)]
    return combine(name, operands[0], sign, operands[1], warn)


def combine(name: str, left: Metric, sign: str, right: Metric, warn: Warn) -> Metric:
    """Compute `left sign right` as the metric `name`; `sign` is an operator, such as "+".

    The values of the metrics themselves are combined if both have one. Instances:

    1. no instances on either side: no instances;
    2. no ids on either side: element by element; further elements of the left are unchanged,
       further ones of the right are omitted;
    3. ids on both sides: all ids of both; a value with an id of only the left is unchanged, one of
       only the right is converted to the kind of the left;
    4. ids only on the left: every element is combined with the right metric's own value, or
       unchanged if that is None;
    5. ids only on the right: no instances; the left metric's own value is combined with one element
       of the right after the other, such as `left - a - b`.

    A metric counts as one with ids if all of its instances have one.

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
        result.instances = _join_by_id(left, right, apply)
    elif left.has_ids:
        result.instances = [
            Instance(
                instance.value
                if right.value is None
                else apply(instance.value, right.value, instance.kind),
                instance.id,
                instance.kind,
                instance.id_kind,
            )
            for instance in left.instances
        ]
    elif right.has_ids:
        if left.value is not None:
            combined: Scalar = left.value
            for instance in right.instances:
                combined = apply(combined, instance.value, left.kind)
            result.value, result.kind = combined, left.kind
    else:
        result.instances = [
            Instance(
                apply(instance.value, right.instances[number].value, instance.kind)
                if number < len(right.instances)
                else instance.value,
                kind=instance.kind,
            )
            for number, instance in enumerate(left.instances)
        ]
    return result


def _join_by_id(
    left: Metric, right: Metric, apply: Callable[[Scalar, Scalar, ValueKind], Scalar]
) -> list[Instance]:
    """Return an instance for each id of either side, ids of the left first; both must have ids.

    `apply` combines the values of an id that both have. Other values of the left are unchanged,
    those of the right are converted to the kind of the left.
    """
    right_values = right.by_id()
    joined = []
    for instance in left.instances:
        assert instance.id is not None
        value = instance.value
        if instance.id in right_values:
            value = apply(value, right_values[instance.id], instance.kind)
        joined.append(Instance(value, instance.id, instance.kind, instance.id_kind))
    left_values = left.by_id()
    kind = left.instances[0].kind
    for instance in right.instances:
        if instance.id not in left_values:
            value = convert(instance.value, kind)
            joined.append(Instance(value, instance.id, kind, instance.id_kind))
    return joined


def convert(value: Scalar, kind: ValueKind) -> Scalar:
    """Convert a value to another kind.

    As an integer, a number loses its fraction and is limited to the kind's range. Text becomes 0.
    """
    if kind is ValueKind.STRING:
        return str(value)
    number = 0 if isinstance(value, str) else value
    if kind in MAX_VALUES:
        if isinstance(number, float) and not math.isfinite(number):
            return MAX_VALUES[kind] if number > 0 else 0
        return min(max(int(number), 0), MAX_VALUES[kind])
    return _round_to_kind(float(number), kind)


def _round_to_kind(value: float, kind: ValueKind) -> float:
    """Return a number with the precision of its kind: FLOAT has 32 bits."""
    if kind is not ValueKind.FLOAT or not math.isfinite(value):
        return value
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def _apply(left: Scalar, sign: str, right: Scalar, kind: ValueKind, warn: Warn) -> Scalar:
    """Compute `left sign right` as a value of `kind`, the kind of the left.

    A division by an integer 0 returns the left value, also if the divisor, such as 0.5, is 0 only
    after its conversion to `kind`. Unsigned results are limited to the range of their kind, and
    `warn` is called with a text on that.
    """
    if isinstance(left, str):
        return left
    divisor = convert(right, kind)
    assert not isinstance(divisor, str)
    if sign == "/" and (_is_integer_zero(right) or _is_integer_zero(divisor)):
        return left
    if kind in MAX_VALUES:
        result = _INTEGER[sign](int(left), int(divisor))
        bounded = min(max(result, 0), MAX_VALUES[kind])
        if bounded != result:
            warn(f"{left} {sign} {divisor} does not fit an unsigned integer, {bounded} is used")
        return bounded
    return _round_to_kind(_DOUBLE[sign](float(left), float(divisor)), kind)


def _is_integer_zero(value: Scalar) -> bool:
    return kind_of(value) is ValueKind.UINT64 and value == 0


def _divide(left: float, right: float) -> float:
    """Divide as IEEE 754 does; Python raises an exception for a divisor of 0."""
    if right:
        return left / right
    if math.isnan(left) or left == 0:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


# Operators of integers and of floating-point numbers.
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
