"""Fits of growth: worked out by hand where that can be, and what is said of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylink.aprof import Fit, Point, Report, Routine, fit_report, fit_table
from pylink.aprof.fit import fit_points
from pylink.aprof.model import measuring_comment, path_comment, wall_comment
from pylink.aprof.shapes import FUNCTIONS
from pylink.aprof.sums import MULTIPLES, WEIGHT_EXPONENT, Points

SIZES = [2**k for k in range(4, 14)]


def report(**routines: Callable[[int], float]) -> Report:
    made = [
        Routine(i, name, "lib", points=[Point.of_calls(n, [round(cost(n))]) for n in SIZES])
        for i, (name, cost) in enumerate(routines.items())
    ]
    return Report(routines=made)


def by_name(fits: list[Fit]) -> dict[str, Fit]:
    return {fit.routine: fit for fit in fits}


def test_a_line_through_exact_points_is_found() -> None:
    found = fit_points([(n, 3 + 2 * n) for n in SIZES])
    assert found.model == "n"
    assert [name for name, _ in found.terms] == ["constant", "n"]
    assert [factor for _, factor in found.terms] == pytest.approx([3, 2])
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.twice == pytest.approx((3 + 2 * 16384) / (3 + 2 * 8192))
    assert found.low <= found.twice <= found.high


def test_a_sum_is_solved_for_relative_errors_by_hand() -> None:
    # Costs 1 and 2 of sizes of equal weight, and one constant c: the sum of (c / y - 1)**2 is least
    # where c (1 + 1/4) = 1 + 1/2, so c = 6/5; what is left is 1/25 + 4/25.
    points = Points([8.0, 8.0], [1.0, 2.0], 0.0)
    found = points.solve(["constant"])
    assert found is not None
    assert found.factors == pytest.approx((6 / 5,))
    assert found.squares == pytest.approx(1 / 5)
    assert found.multiple == 1


def test_a_sum_with_a_negative_part_is_none() -> None:
    points = Points([1.0, 2.0, 4.0], [5.0, 4.0, 2.0], 0.0)
    assert points.solve(["constant", "n"]) is None
    assert points.solve(["n"]) is not None


def test_the_profile_is_what_any_search_finds() -> None:
    rng = random.Random(7)
    points = Points(
        [float(n) for n in SIZES], [n * rng.uniform(0.8, 1.2) + n**1.5 for n in SIZES], 0
    )
    profile = points.profile(6)
    unscaled = [(n / SIZES[-1]) ** WEIGHT_EXPONENT for n in SIZES]
    weights = [weight * len(SIZES) / sum(unscaled) for weight in unscaled]
    names = list(FUNCTIONS)[:6]
    multiples = [FUNCTIONS[name](16384) / FUNCTIONS[name](8192) for name in names]
    for at in (20, 60, 80, 90):
        multiple = MULTIPLES[at]
        found = math.inf
        for _ in range(3000):
            low, high = rng.randrange(6), rng.randrange(6)
            if not multiples[low] <= multiple <= multiples[high] or low == high:
                continue
            share = (multiples[high] - multiple) / (multiples[high] - multiples[low])
            parts = {names[low]: share, names[high]: 1 - share}
            unit = [
                sum(p * FUNCTIONS[f](n) / FUNCTIONS[f](8192) for f, p in parts.items())
                for n in SIZES
            ]
            ratios = [u / cost for u, cost in zip(unit, points.costs.tolist(), strict=True)]
            scale = sum(w * r for w, r in zip(weights, ratios, strict=True)) / sum(
                w * r * r for w, r in zip(weights, ratios, strict=True)
            )
            found = min(
                found, sum(w * (scale * r - 1) ** 2 for w, r in zip(weights, ratios, strict=True))
            )
        assert profile[at] <= found + 1e-6
        assert profile[at] >= min(profile) - 1e-9


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_each_function_is_told_from_the_others(name: str, constant: float) -> None:
    shape = FUNCTIONS[name]
    found = fit_points([(n, constant + 2 * shape(n)) for n in SIZES])
    assert found.model == name
    assert found.error < 0.01


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(["n", "n^2", "n^3"]), st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_units_do_not_matter(name: str, per_cost: float, per_size: float) -> None:
    found = fit_points([(per_size * n, per_cost * FUNCTIONS[name](n)) for n in SIZES])
    assert found.model == name


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([], "only 0 sizes"),
        ([(1, 1)], "only 1 size,"),
        ([(1, 1), (2, 2), (3, 3), (100, 4)], "only 4 sizes"),
        ([(10, 1), (11, 2), (12, 3), (13, 4), (37, 5)], "less than 3.8 times apart"),
        ([(1, 1), (8, 1), (8, 2), (8, 3), (9, 4)], "only 3 sizes"),
        ([(0, 1), (1, 0), (2, 1), (3, 1), (9, 1), (99, 1)], "only 4 sizes"),
        ([(1, 9), (2, 5), (4, 30), (8, 7), (16, 90), (32, 20)], "no sum fits"),
        ([(2**k, 1 + 2 ** (k / 2) * (1 + k % 2)) for k in range(6)], ""),
    ],
    ids=["none", "one", "four", "close", "repeated", "zeros", "wild", "wavy"],
)
def test_what_says_nothing_has_a_reason(points: list[tuple[float, float]], reason: str) -> None:
    found = fit_points(points)
    assert found.model is None
    assert found.reason
    assert reason in found.reason


def test_a_disturbed_call_is_left_out_unless_nothing_confirms_that() -> None:
    points = [(n, 3.0 * n) for n in SIZES]
    points[4] = (points[4][0], 9.0 * points[4][0])
    found = fit_points(points)
    assert (found.model, found.outliers) == ("n", (points[4][0],))
    points = [(n, 3.0 * n) for n in SIZES]
    points[-1] = (points[-1][0], 9.0 * points[-1][0])
    assert fit_points(points).model is None


def test_the_routines_that_will_hurt_are_named() -> None:
    # At 81,920, ten times the largest size: the square costs 0.1 * 81920**2 = 671,088,640, the
    # line 1000 * 81920 = 81,920,000 and the small square 100 times less than the first: 1 %.
    fits = fit_report(
        report(
            square=lambda n: n * n / 10 + 1,
            line=lambda n: 1000 * n,
            small=lambda n: n * n / 1000 + 100,
            flat=lambda n: 50,
        )
    )
    assert [fit.routine for fit in fits] == ["square", "line", "small", "flat"]
    found = by_name(fits)
    assert found["square"].hurts
    assert found["square"].twice == pytest.approx(4, rel=0.01)
    assert found["square"].formula in ("a n^2", "a + b n^2")
    assert found["line"].share == pytest.approx(81_920_000 / 671_088_640, rel=0.01)
    assert found["small"].model == "n^2"
    assert not found["small"].hurts
    assert not found["line"].hurts
    assert found["flat"].twice == 1


def test_the_cost_of_a_size_can_be_any_of_three() -> None:
    points = [Point.of_calls(n, [100 * n, 103 * n, 106 * n]) for n in SIZES]
    report = Report(routines=[Routine(0, "f", points=points)])
    costs = {name: fit_report(report, name)[0].at(1000) for name in ("min", "mean", "max")}
    assert costs == pytest.approx({"min": 100_000, "mean": 103_000, "max": 106_000}, rel=0.01)


def test_what_measured_the_program_is_no_part_of_it() -> None:
    made = report(link=lambda n: n)
    made.comments.append(measuring_comment("replay"))
    made.routines.append(Routine(1, "replay", points=[Point.of_calls(5, [100_000])]))
    assert [fit.routine for fit in fit_report(made)] == ["link"]


def test_the_table_says_what_it_means() -> None:
    made = report(square=lambda n: n * n, line=lambda n: n)
    made.comments = ["1 input", wall_comment("square", 8192, 70_000_000)]
    lines = fit_table(made).splitlines()
    assert lines[0].split()[:3] == ["routine", "growth", "error"]
    assert "n^2" in lines[1]
    assert "x 4.0" in lines[1]
    assert " 70000000 " in lines[1]
    assert lines[1].endswith("<- will hurt")
    assert lines[-1] == "Grow faster than n log n: square."
    assert fit_table(report(line=lambda n: n)).endswith(
        "No routine that takes 2% or more grows faster than n log n over the sizes measured.\n"
    )


@pytest.mark.parametrize(
    ("cost", "sizes", "said"),
    [
        (lambda n: 3 * n, SIZES, "At twice the size the link costs x 2.0, from x 2.0 to x 2.0."),
        (
            lambda n: n * (2 if n > 3000 else 1),
            SIZES,
            "The cost of the link at twice the size is unknown: no sum fits, ",
        ),
        (lambda n: n, SIZES[:2], "The cost of the link at twice the size is unknown: "),
    ],
    ids=["line", "step", "few"],
)
def test_the_whole_link_has_an_answer(
    cost: Callable[[int], float], sizes: Sequence[int], said: str
) -> None:
    points = [Point.of_calls(n, [round(cost(n))]) for n in sizes]
    answer = fit_table(Report(routines=[Routine(0, "link", points=points)])).splitlines()[2]
    assert answer.startswith(said)


def test_a_report_without_points_has_a_table() -> None:
    assert len(fit_table(Report(routines=[Routine(0, "f")])).splitlines()) == 1


@pytest.mark.parametrize(
    ("start", "model", "reason"),
    [
        (16384, None, "from 16384 on it has two threads, which no size shows"),
        (4096, None, "from 4096 on it has two threads, which too few sizes show"),
        (16385, "n", ""),
        (256, "n", ""),
    ],
)
def test_a_change_of_path_is_known(start: int, model: str | None, reason: str) -> None:
    made = report(parse=lambda n: 3 * n + (5000 if n >= start else 0))
    made.comments.append(path_comment("parse", start, "two threads"))
    (fit,) = fit_report(made)
    assert (fit.model, fit.growth.reason) == (model, reason)
    assert (fit.interval == (1.0, 1.0)) is (model is None)
