"""What repeated measurements say, with an interval that holds the truth 19 times in 20.

Times are not normal: what disturbs a run makes it longer. So nothing here assumes a distribution,
and every interval is exact for whatever distribution the rounds have. That of a median lies between
two of the sorted values: how many of n fall below the true median is binomial. That of a change
lies between two of the sorted ratios of each time after to each time before. How many of these
exceed 1 when nothing changed follows from counting, as in the test of Mann and Whitney; the
estimate is Hodges and Lehmann's. That rounds are independent is assumed. With too few values no
interval is that certain, and it is from the least to the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import linear_regression, median
from typing import NamedTuple

MISSED = 0.05  # of true values outside of intervals


class Estimate(NamedTuple):
    """A value, the least and the largest that it may be, and whether that is 95 % certain."""

    value: float
    low: float
    high: float
    certain: bool = True


def median_of(values: Sequence[float]) -> Estimate:
    """The median of at least one value."""
    ordered = sorted(values)
    count = len(ordered)
    outside, below = -1, 0.0
    # How many values may be omitted at each end: P(at most so many of count below the median).
    for left_out in range(count // 2):
        below += math.comb(count, left_out) / 2**count
        if 2 * below > MISSED:
            break
        outside = left_out
    at = max(outside, 0)
    return Estimate(median(ordered), ordered[at], ordered[count - 1 - at], outside >= 0)


def change_of(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """How many times as long as `before` what came `after` takes; at least one time of each."""
    ratios = sorted(late / early for late in after for early in before)
    place = _critical(len(before), len(after))
    at = max(place - 1, 0)
    return Estimate(median(ratios), ratios[at], ratios[len(ratios) - 1 - at], place > 0)


def _critical(first: int, second: int) -> int:
    """The least u that two samples of one distribution have with P(U <= u) of MISSED / 2."""
    # Ways to have each U: those of Gaussian binomial coefficients, a factor at a time.
    ways = [1] + [0] * (first * second)
    for size in range(1, second + 1):
        top = first + size
        for place in range(len(ways) - 1, top - 1, -1):
            ways[place] -= ways[place - top]
        for place in range(size, len(ways)):
            ways[place] += ways[place - size]
    every, below = math.comb(first + second, first), 0
    for place, count in enumerate(ways):
        below += count
        if below / every >= MISSED / 2:
            return place
    return 0


def exponent_of(sizes: Sequence[float], rounds: Sequence[Sequence[float]]) -> Estimate:
    """The exponent e of time ~ size ** e; each of `rounds` has a time for each size.

    That of a round is the slope by least squares over the logarithms. Rounds are compared within
    themselves because what is slow at one moment is slow for all sizes.
    """
    logs = [math.log(size) for size in sizes]
    return median_of(
        [linear_regression(logs, list(map(math.log, costs))).slope for costs in rounds]
    )
