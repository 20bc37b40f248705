"""Derived metrics: the grammar, the kinds, and every way that instances combine."""

from __future__ import annotations

import math

import pytest

from pylink.report.model import Metric, Scalar, ValueKind
from pylink.report.sections.derived import DerivedError, evaluate, parse


def derive(expression: str, *metrics: Metric) -> Metric:
    def fail(problem: str) -> None:
        pytest.fail(problem)

    return evaluate("result", expression, {each.name: each for each in metrics}, fail)


def a(value: Scalar | None, instances: object = ()) -> Metric:
    return Metric.of_instances("a", instances, value)  # type: ignore[arg-type]  # ids or none


def b(value: Scalar | None, instances: object = ()) -> Metric:
    return Metric.of_instances("b", instances, value)  # type: ignore[arg-type]  # ids or none


@pytest.mark.parametrize(
    ("expression", "parts"),
    [
        ("a + b", ("a", "+", "b")),
        ("a/b", ("a", "/", "b")),
        ("  sm__x.sum.per_second * 2 ", ("sm__x.sum.per_second", "*", "2")),
        ("65536. / pmsampling:y.avg", ("65536.", "/", "pmsampling:y.avg")),
        ("0.3109 - l2__z", ("0.3109", "-", "l2__z")),
    ],
)
def test_expressions(expression: str, parts: tuple[str, str, str]) -> None:
    assert parse(expression) == parts


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "a",
        "a +",
        "+ b",
        "a + b + c",
        "(a + b)",
        "a % b",
        "-1 + a",
        "1e3 * a",
        ".5 * a",
        "2a * b",
    ],
)
def test_what_is_no_expression(expression: str) -> None:
    with pytest.raises(DerivedError, match="is not a metric or number, one of"):
        parse(expression)


def test_a_missing_metric_is_named() -> None:
    with pytest.raises(KeyError, match="nope"):
        derive("a + nope", a(1))


@pytest.mark.parametrize(
    ("expression", "left", "right", "result"),
    [
        ("a + b", 12, 5, 17),
        ("a - b", 12, 5, 7),
        ("a * b", 12, 5, 60),
        ("a / b", 12, 5, 2),
        ("a / b", 40894464, 1376256, 29),
        ("a / b", 12.0, 5, 2.4),
        ("a / b", 12, 5.9, 2),  # the right one becomes 5
        ("a / 0", 12, 0, 12),
        ("a / 0.", 12, 0, 12),
        ("a / b", 12, 0.5, 12),  # 0.5 becomes 0
        ("a / 0", 12.0, 0, 12.0),
        ("65536. / b", 0, 655360, 0.1),
        ("a + b", 12, "text", 12),
    ],
)
def test_regular_values(expression: str, left: Scalar, right: Scalar, result: Scalar) -> None:
    derived = derive(expression, a(left), b(right))
    assert (derived.name, derived.value, type(derived.value)) == ("result", result, type(result))
    assert derived.instances == []


def test_division_of_doubles_by_a_double_zero_is_ieee() -> None:
    assert derive("a / 0.", a(3.0)).value == math.inf
    assert derive("a / 0.", a(-3.0)).value == -math.inf
    zero = derive("a / 0.", a(0.0)).value
    assert isinstance(zero, float)
    assert math.isnan(zero)


def test_a_string_on_the_left_stays() -> None:
    derived = derive("a + b", a("sm_80"), b(5))
    assert (derived.value, derived.kind) == ("sm_80", ValueKind.STRING)
    derived = derive("a + b", a("sm_80", {"x": "first"}), b(5))
    assert derived.by_id() == {"x": "first"}


def test_single_precision_stays_single() -> None:
    third = derive("a / 3", Metric("a", 1.0, ValueKind.FLOAT))
    assert (third.value, third.kind) == (0.3333333432674408, ValueKind.FLOAT)
    assert derive("a * a", Metric("a", 1e30, ValueKind.FLOAT)).value == math.inf


def test_unsigned_results_stay_unsigned() -> None:
    problems: list[str] = []
    metrics = {"a": a(3), "b": b(5)}
    assert evaluate("d", "a - b", metrics, problems.append).value == 0
    assert problems == ["3 - 5 does not fit an unsigned integer, 0 is used"]
    problems.clear()
    assert evaluate("d", "a * b", {"a": a(2**63), "b": b(2)}, problems.append).value == 2**64 - 1
    assert len(problems) == 1


def test_neither_has_ids() -> None:
    assert derive("a + b", a(None, [1, 2, 3, 4]), b(None, [10, 20])) == Metric.of_instances(
        "result", [11, 22, 3, 4]
    )
    assert derive("a + b", a(None, [1]), b(None, [10, 20])) == Metric.of_instances("result", [11])


def test_both_have_ids() -> None:
    left = a(None, {"a": 1, "c": 2, "e": 4})
    right = b(None, {"a": 10, "d": 20, "e": 30})
    assert derive("a + b", left, right).by_id() == {"a": 11, "c": 2, "d": 20, "e": 34}
    right = b(None, {"a": 10, "d": 20.7, "e": 0})
    assert derive("a / b", left, right).by_id() == {"a": 0, "c": 2, "d": 20, "e": 4}


def test_only_the_left_has_ids() -> None:
    derived = derive("a * b", a(60, {"a": 10, "b": 20, "c": 30}), b(5))
    assert derived.by_id() == {"a": 50, "b": 100, "c": 150}
    assert derived.value == 300
    assert derive("a * b", a(60, {"a": 10}), b(5, [1, 2])).by_id() == {"a": 50}


def test_only_the_right_has_ids() -> None:
    derived = derive("a - b", a(100), b(None, {"a": 1, "b": 2, "c": 3}))
    assert (derived.value, derived.instances) == (94, [])
    derived = derive("a - b", a(100, [7]), b(50, {"a": 1, "b": 2}))
    assert (derived.value, derived.instances) == (97, [])


def test_no_regular_value_without_two() -> None:
    derived = derive("a + b", a(None, {"a": 1}), b(5))
    assert (derived.value, derived.by_id()) == (None, {"a": 6})
