"""What `make growth` counts as good: each planted fault of forecasts is named, and no other."""

from __future__ import annotations

from collections import Counter

import pytest
from helpers.planted import GROWING, make_report

from benchmarks.check_growth import count_forecast, faults_of, least_held
from pylink.aprof import Fit, fit_report

GOOD = {"forecasts": 100, "changed path": 10, "intervals": 80, "held": 75}


def linear() -> Fit:
    """A forecast with an interval: twice the size costs about twice as much."""
    (fit,) = fit_report(make_report(GROWING[1], 0.01, 0))
    assert 1 < fit.interval[0] < fit.interval[1]
    return fit


def test_a_good_set_has_no_fault() -> None:
    assert faults_of("links", Counter(GOOD)) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"held": 66}, "links: 66 of 80 intervals hold, which are fewer than chance"),
        (
            {"intervals": 71, "held": 70},
            "links: 71 of 90 have an interval, 80% are wanted",
        ),
        # Without the change of path that is their reason, as many intervals are too few.
        ({"changed path": 0, "intervals": 79}, "links: 79 of 100 have an interval"),
        ({"too wide": 1}, "links: 1 too wide"),
        ({"false alarms": 2}, "links: 2 false alarms"),
    ],
)
def test_a_planted_fault_is_named_and_nothing_else(changed: dict[str, int], said: str) -> None:
    (fault,) = faults_of("links", Counter(GOOD | changed))
    assert fault.startswith(said)


def test_the_limits_themselves_are_good() -> None:
    assert faults_of("links", Counter(GOOD | {"held": 67})) == []
    assert faults_of("links", Counter(GOOD | {"intervals": 72, "held": 72})) == []


def test_chance_excuses_less_of_many() -> None:
    """Figures of a table of the binomial distribution: 5 % quantiles for nine in ten."""
    assert [least_held(given) for given in (1, 10, 20, 100, 1000)] == [0, 7, 16, 85, 884]


def test_a_measured_factor_in_the_interval_counts_as_held() -> None:
    fit = linear()
    low, high = fit.interval
    for factor, held in ((low, 1), (high, 1), (low * 0.99, 0), (high * 1.01, 0)):
        counts: Counter[str] = Counter()
        count_forecast(counts, fit, factor)
        expected = {"forecasts": 1, "intervals": 1, "held": held}
        assert {name: counts[name] for name in expected} == expected
        assert not counts["false alarms"]


def test_a_forecast_that_hurts_is_false_where_doubling_is_harmless() -> None:
    (steep,) = fit_report(make_report(GROWING[4], 0.01, 0))
    assert steep.hurts
    for factor, alarms in ((2.2, 1), (2.3, 0), (4.0, 0)):
        counts: Counter[str] = Counter()
        count_forecast(counts, steep, factor)
        assert counts["false alarms"] == alarms
