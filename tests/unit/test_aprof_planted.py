"""Planted growth: what a fit says is true, whatever the clock does, or it says it has no model.

Truths are measured with noise, several times; the seeds are fixed. Intervals claim to hold the
truth in nine of ten cases.
"""

from __future__ import annotations

from collections import Counter

import pytest
from helpers.planted import GROWING, LARGEST, OUTSIDE, SQUARES, STEPS, Truth, make_report

from pylink.aprof import Fit, Report, fit_report, fit_table

SEEDS = range(20)
# What doubling may cost without any harm.
HARMLESS = 2.2


def fits(truth: Truth, noise: float, *, calls: int = 3, outliers: float = 0.0) -> list[Fit]:
    found = []
    for seed in SEEDS:
        (fit,) = fit_report(make_report(truth, noise, seed, calls=calls, outliers=outliers))
        found.append(fit)
    return found


def counted(truth: Truth, found: list[Fit]) -> Counter[str]:
    """How many forecasts there are, how many hold the truth, and what else is said."""
    counts: Counter[str] = Counter()
    for fit in found:
        low, high = fit.interval
        counts["forecasts"] += high > 1
        counts["held"] += high > 1 and low - 1e-9 <= truth.twice <= high
        counts["wide"] += fit.growth.scatter < 0.03 and high / low > 1.5
        counts["found"] += fit.model is not None and fit.model == truth.model
        counts["hurts"] += fit.hurts
    return counts


@pytest.mark.parametrize("truth", [*GROWING, *SQUARES], ids=lambda truth: truth.name)
def test_without_noise_class_and_forecast_are_exact(truth: Truth) -> None:
    (fit,) = fit_report(make_report(truth, 0.0, 0, calls=1))
    assert fit.model == truth.model
    assert fit.twice == pytest.approx(truth.twice, rel=0.02)


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.1, 0.2])
@pytest.mark.parametrize(
    "truth", [*GROWING, *SQUARES, *STEPS, *OUTSIDE], ids=lambda truth: truth.name
)
def test_an_interval_holds_the_truth_in_nine_of_ten_cases(truth: Truth, noise: float) -> None:
    counts = counted(truth, fits(truth, noise))
    # Of twenty, nine in ten may be seventeen. Much noise is told from few calls, and so less well.
    assert counts["forecasts"] - counts["held"] <= (3 if noise <= 0.03 else 5)
    assert counts["wide"] == 0
    if truth.twice <= HARMLESS:
        assert counts["hurts"] == 0


@pytest.mark.parametrize("noise", [0.01, 0.03])
@pytest.mark.parametrize("truth", [*GROWING[1:], *SQUARES[4:]], ids=lambda truth: truth.name)
def test_with_a_little_noise_the_class_is_found(truth: Truth, noise: float) -> None:
    counts = counted(truth, fits(truth, noise))
    assert counts["found"] >= 0.7 * len(SEEDS)
    assert counts["forecasts"] >= 0.8 * len(SEEDS)


@pytest.mark.parametrize("truth", OUTSIDE[:2], ids=lambda truth: truth.name)
def test_a_cost_that_changes_its_course_is_fitted_on_one_side(truth: Truth) -> None:
    found = fits(truth, 0.01)
    assert counted(truth, found)["found"] >= 0.8 * len(SEEDS)
    for fit in found:
        if fit.model == truth.model:
            assert fit.growth.since >= 0.12 * LARGEST
            assert f"from {fit.growth.since:.0f} on" in fit_table(Report(), [fit])


@pytest.mark.parametrize(
    ("truth", "power"),
    [(OUTSIDE[4], 0.7), (OUTSIDE[6], 1.25), (OUTSIDE[7], 1.8)],
    ids=lambda each: each.name if isinstance(each, Truth) else None,
)
def test_powers_between_the_classes_have_their_own_name(truth: Truth, power: float) -> None:
    found = fits(truth, 0.01)
    near = {f"n^{power + step:g}" for step in (-0.05, 0, 0.05)}
    assert sum(fit.model in near for fit in found) >= 0.8 * len(SEEDS)
    said = [fit_table(Report(), [fit]) for fit in found if fit.model in near]
    assert all("about n^" in each for each in said)


@pytest.mark.parametrize(
    "truth", [GROWING[3], GROWING[4], SQUARES[-1]], ids=lambda truth: truth.name
)
def test_steep_growth_shows_through_noise(truth: Truth) -> None:
    assert counted(truth, fits(truth, 0.1))["hurts"] >= 0.6 * len(SEEDS)


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.1])
@pytest.mark.parametrize("truth", [*GROWING[3:], *SQUARES[5:]], ids=lambda truth: truth.name)
def test_what_grows_steeply_is_named(truth: Truth, noise: float) -> None:
    named = sum("Grow faster than n log n" in fit_table(Report(), [f]) for f in fits(truth, noise))
    assert named >= (0.8 if noise <= 0.03 else 0.2) * len(SEEDS)


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize(
    "truth", [GROWING[1], GROWING[4], SQUARES[4]], ids=lambda truth: truth.name
)
def test_outliers_are_seen_through_or_there_is_no_model(truth: Truth, calls: int) -> None:
    counts = counted(truth, fits(truth, 0.03, calls=calls, outliers=0.1))
    assert counts["forecasts"] - counts["held"] <= 2
    assert counts["found"] >= (0.3 if calls == 1 else 0.7) * len(SEEDS)


@pytest.mark.parametrize("truth", STEPS[:2], ids=lambda truth: truth.name)
def test_nothing_reassuring_is_said_where_there_is_no_model(truth: Truth) -> None:
    text = fit_table(make_report(truth, 0.0, 0))
    assert "no model" in text
    assert "No routine" not in text
    assert "does not show at these sizes" in text


def test_a_square_that_takes_most_is_never_called_linear() -> None:
    text = fit_table(make_report(SQUARES[-1], 0.0, 0))
    assert " n^2 " in text
    assert "x 3.9" in text
    assert "will hurt" in text
    assert "No routine" not in text


def test_an_interval_a_little_too_wide_is_trimmed_from_both_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    truths = [*SQUARES, *OUTSIDE]
    trimmed = [(truth, fit) for truth in truths for fit in fits(truth, 0.02)]
    monkeypatch.setattr("pylink.aprof.fit.TRIM_RATIO_MAX", 1.0)
    untrimmed = [fit for truth in truths for fit in fits(truth, 0.02)]
    more = [
        (truth, fit)
        for (truth, fit), other in zip(trimmed, untrimmed, strict=True)
        if fit.interval[1] > 1 and other.interval[1] <= 1
    ]
    # They exist, are as wide as is allowed, and hold the truth as often as all intervals claim to.
    assert len(more) >= 10
    for _, fit in more:
        low, high = fit.interval
        if fit.growth.scatter < 0.03:
            assert high / low == pytest.approx(1.5)
    held = sum(fit.interval[0] <= truth.twice <= fit.interval[1] for truth, fit in more)
    assert held >= 0.9 * len(more)
