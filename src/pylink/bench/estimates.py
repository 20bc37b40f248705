"""Estimates from measurements, with intervals that hold the true value at least 19 times in 20.

Times are not normally distributed: disturbances only make a run longer. So nothing here assumes a
distribution, and the intervals are valid for any distribution of independent rounds.

* Median: the interval is between two of the sorted values. The number of values below the true
  median is binomial.
* Change: each time after is divided by each time before, and the interval is between two of these
  sorted ratios. If nothing changed, the number of ratios above 1 has the distribution of the
  Mann-Whitney test. The estimate, the median of the ratios, is Hodges and Lehmann's.

With too few values the interval is from the least to the largest, and not certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, median

MISSED = 0.05  # largest share of intervals that do not hold the true value


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value, the bounds of its interval, and whether these are 95 % certain."""

    value: float
    low: float
    high: float
    certain: bool = True


def median_of(values: Sequence[float]) -> Estimate:
    """Return the median of `values`, at least one, with its interval."""
    ordered = sorted(values)
    count = len(ordered)
    # The number of values to omit at each end, from P(at most that many are below the median);
    # -1 if even the least and the largest value are not certain bounds.
    omitted_at_end, below = -1, 0.0
    for omitted in range(count // 2):
        below += math.comb(count, omitted) / 2**count
        if 2 * below > MISSED:
            break
        omitted_at_end = omitted
    index = max(omitted_at_end, 0)
    return Estimate(
        median(ordered), ordered[index], ordered[count - 1 - index], omitted_at_end >= 0
    )


def change_of(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """Return the factor from the times `before` to those `after`, each with at least one time."""
    ratios = sorted(late / early for late in after for early in before)
    critical = _critical_u(len(before), len(after))
    index = max(critical - 1, 0)
    return Estimate(median(ratios), ratios[index], ratios[len(ratios) - 1 - index], critical > 0)


def _critical_u(first: int, second: int) -> int:
    """Return the least u for which two samples of one distribution have P(U <= u) >= 2.5 %.

    U is the statistic of Mann and Whitney; `first` and `second` are the sizes of the samples.
    """
    # Number of ways to get each U, from Gaussian binomial coefficients, factor by factor.
    ways = [1] + [0] * (first * second)
    for size in range(1, second + 1):
        top = first + size
        for u in range(len(ways) - 1, top - 1, -1):
            ways[u] -= ways[u - top]
        for u in range(size, len(ways)):
            ways[u] += ways[u - size]
    all_ways, below = math.comb(first + second, first), 0
    for u, count in enumerate(ways):
        below += count
        if below / all_ways >= MISSED / 2:
            return u
    return 0


def exponent_of(sizes: Sequence[float], rounds: Sequence[Sequence[float]]) -> Estimate:
    """Return the exponent e of time ~ size ** e; each of `rounds` has a time for each size.

    The exponent of a round is the slope of the logarithms by least squares. It is computed for each
    round, because a slow moment is slow for all sizes.
    """
    log_sizes = [math.log(size) for size in sizes]
    return median_of(
        [linear_regression(log_sizes, list(map(math.log, costs))).slope for costs in rounds]
    )
