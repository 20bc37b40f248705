"""Estimates from repeated measurements, with intervals that hold the true value 19 times in 20.

Times are not normally distributed: disturbances only make a run longer. So nothing here assumes a
distribution, and every interval is exact for any distribution of independent rounds.

* Median: the interval is between two of the sorted values. The number of values below the true
  median is binomial.
* Change: the interval is between two of the sorted ratios of each time after to each time before.
  The distribution of their number above 1 without a change is that of the Mann-Whitney test. The
  estimate is Hodges and Lehmann's.

With too few values the interval is from the least to the largest, and not certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import linear_regression, median
from typing import NamedTuple

MISSED = 0.05  # share of true values outside of intervals


class Estimate(NamedTuple):
    """A value, the bounds of its interval, and whether these are 95 % certain."""

    value: float
    low: float
    high: float
    certain: bool = True


def median_of(values: Sequence[float]) -> Estimate:
    """The median of at least one value."""
    ordered = sorted(values)
    count = len(ordered)
    outside, below = -1, 0.0
    # The number of values to omit at each end, from P(at most that many are below the median).
    for omitted in range(count // 2):
        below += math.comb(count, omitted) / 2**count
        if 2 * below > MISSED:
            break
        outside = omitted
    index = max(outside, 0)
    return Estimate(median(ordered), ordered[index], ordered[count - 1 - index], outside >= 0)


def change_of(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """The factor from the times `before` to those `after`, each with at least one time."""
    ratios = sorted(late / early for late in after for early in before)
    place = _critical(len(before), len(after))
    index = max(place - 1, 0)
    return Estimate(median(ratios), ratios[index], ratios[len(ratios) - 1 - index], place > 0)


def _critical(first: int, second: int) -> int:
    """The least u that two samples of one distribution have with P(U <= u) of MISSED / 2."""
    # The number of ways to get each U, from Gaussian binomial coefficients, factor by factor.
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

    The exponent of a round is the slope of the logarithms by least squares. It is computed for each
    round, because a slow moment is slow for all sizes.
    """
    logs = [math.log(size) for size in sizes]
    return median_of(
        [linear_regression(logs, list(map(math.log, costs))).slope for costs in rounds]
    )
