"""How the cost of a routine grows with the size of its input, or that the points do not tell.

A fit has to pass in four ways; docs/growth.md explains the criterion to users.

1. Of the sums in `shapes` the one with the best balance of error and number of parts is chosen:
   squares / noise**2 + `PER_PART` for each part. Noise is what the best sum of any kind leaves.
2. The interval of the forecast for twice the size holds all multiples that any sum of functions
   up to n^2 may forecast and still fit as well as noise lets one tell (95 % on each side).
3. An interval wider than the noise excuses is no forecast.
4. The sizes up to half of the largest must have foretold what the larger ones cost: a step, a cache
   that overflowed and a model that is wrong fail here.

Whatever disturbs a call makes it longer, so a point far above what all others say is left out
unless it is one of the two largest, of which nothing would confirm that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylink.aprof.shapes import NAMES, STEEP, SUMS, USUAL

if TYPE_CHECKING:
    from pylink.aprof.sums import Points, Sum

# Fewer sizes, or sizes closer together, say nothing; before the larger half, one less will do.
FEWEST_SIZES = 5
LEAST_SPAN = 4.0

# What a part of a sum must gain, in squares of the noise: two standard errors.
PER_PART = 4.0

# Relative error below which nothing is told apart: clocks and rounding.
LEAST_NOISE = 0.004
# No sum fits where the best leaves more than this.
MOST_NOISE = 0.10

# Half the width that the interval of a forecast may have: a share of the forecast, by noise.
WIDTH_PER_NOISE = 2.0
LEAST_WIDTH, MOST_WIDTH = 0.10, 0.18
# A multiple beyond all of n log n, and the width there: that a cost is steep is worth saying.
STEEPER, STEEP_WIDTH = 2.25, 0.17
# Most noise at which that may be said without a model: with more, a machine that is busy at the
# largest sizes looks like it.
CERTAIN_NOISE = 0.06
# With a steep model, a multiple from which on the steep part is more than a trace of noise.
STEEP_MODEL = 2.1

# Student's t, one-sided 95 %, by degrees of freedom; the last one for more.
STUDENT = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.7)
# By how much wider still: noise is estimated from few points and seldom normal.
SAFETY = 1.3
# Parts that are counted as fitted when noise is estimated.
PARTS = 3

# How far above the rest, in units of their noise, a point is an outlier; one in so many may be.
OUTLIER = 6.0
POINTS_PER_OUTLIER = 5


@dataclass(frozen=True, slots=True)
class Growth:
    """What points say: `model` is None where they say nothing, for a `reason` in words.

    `terms` are names and factors of the sum; `error` is the root of the mean squared relative
    error; `low` to `high` hold the multiple of the cost at twice the largest size with nine
    chances in ten; `outliers` were left out. `steep` says that the cost grows faster than n log n,
    which may be certain where the model is not.
    """

    model: str | None = None
    reason: str = ""
    terms: tuple[tuple[str, float], ...] = ()
    error: float = 0.0
    twice: float = 1.0
    low: float = 1.0
    high: float = 1.0
    outliers: tuple[float, ...] = field(default=())
    steep: bool = False


def fit_points(
    points: Sequence[tuple[float, float]], *, resolution: float = 0.0, scatter: float = 0.0
) -> Growth:
    """The growth of (size, cost) pairs; what is not positive is left out.

    `resolution` is what costs were rounded to, `scatter` the relative error that they have at
    least. ImportError without numpy.
    """
    by_size: dict[float, float] = {}
    for size, cost in points:
        if size > 0 and cost > 0:
            by_size[size] = min(cost, by_size.get(size, cost))
    sizes = sorted(by_size)
    if len(sizes) < FEWEST_SIZES:
        return Growth(reason=f"only {_count(len(sizes))}, {FEWEST_SIZES} are needed")
    if sizes[-1] < LEAST_SPAN * sizes[0]:
        return Growth(reason=f"sizes are less than {LEAST_SPAN:.0f} times apart")
    try:
        from pylink.aprof.sums import Points  # noqa: PLC0415 -- readers of reports need no numpy
    except ImportError as error:
        raise ImportError(
            "fits of growth need the numpy package: run `pip install 'pylink-cuda[report]'`",
            name=error.name,
        ) from error
    usable = Points(sizes, [by_size[size] for size in sizes], resolution)
    usable, outliers = _without_outliers(usable, resolution)
    found = _Fitted(usable, max(scatter, LEAST_NOISE))
    return found.growth(outliers, resolution)


def _count(sizes: int) -> str:
    return "1 size" if sizes == 1 else f"{sizes} sizes"


class _Fitted:
    """Points with the sums that fit them, and what all sums together say of the forecast."""

    def __init__(self, points: Points, least_noise: float) -> None:
        from pylink.aprof.sums import MULTIPLES  # noqa: PLC0415 -- as above

        self.points = points
        self.least_noise = least_noise
        sums = [found for names in SUMS if (found := points.solve(names)) is not None]
        closest = min(sums, key=lambda each: each.squares)
        profile = points.profile(len(USUAL))
        least = float(profile.min())
        # n^3 is believed where the points show it.
        if closest.names[-1] not in USUAL and closest.squares < least / 2:
            profile = points.profile(len(NAMES))
            least = float(profile.min())
        least = max(min(least, closest.squares), 0.0)
        free = max(len(points) - PARTS, 1)
        self.noise = max((least / free) ** 0.5, least_noise)
        self.best: Sum = min(
            sums, key=lambda each: each.squares / self.noise**2 + PER_PART * len(each.names)
        )
        told = SAFETY * STUDENT[min(free, len(STUDENT)) - 1] * self.noise
        inside = (profile - least <= told**2).nonzero()[0]
        low = MULTIPLES[max(int(inside[0]) - 1, 0)] if len(inside) else self.best.multiple
        high = MULTIPLES[min(int(inside[-1]) + 1, len(MULTIPLES) - 1)] if len(inside) else low
        self.low = min(float(low), self.best.multiple)
        self.high = max(float(high), self.best.multiple)
        self.told = told

    def growth(self, outliers: tuple[float, ...], resolution: float) -> Growth:
        """The growth, or why there is none."""
        best = self.best
        error = (best.squares / len(self.points)) ** 0.5
        terms = tuple(zip(best.names, best.factors, strict=True))

        def say(model: str | None, reason: str = "", *, steep: bool = False) -> Growth:
            multiples = best.multiple, self.low, self.high
            return Growth(model, reason, terms, error, *multiples, outliers, steep)

        if self.noise > MOST_NOISE:
            return say(None, f"no sum fits, the best is {self.noise:.0%} off")
        width = max(self.high / best.multiple - 1, 1 - self.low / best.multiple)
        allowed = min(max(WIDTH_PER_NOISE * self.noise, LEAST_WIDTH), MOST_WIDTH)
        if self.low > STEEPER:
            allowed = max(allowed, STEEP_WIDTH)
        foretold = self._foretold(resolution)
        if width > allowed:
            reason = f"twice the size may cost x {self.low:.1f} to x {self.high:.1f}"
            certain = foretold and self.low > STEEPER and self.noise <= CERTAIN_NOISE
            return say(None, reason, steep=certain and best.names[-1] in USUAL)
        if not foretold:
            return say(None, "smaller sizes do not foretell the larger ones")
        return say(best.names[-1], steep=best.names[-1] in STEEP and self.low > STEEP_MODEL)

    def _foretold(self, resolution: float) -> bool:
        """Whether the sizes up to half of the largest foretell what the largest one costs."""
        from pylink.aprof.sums import Points  # noqa: PLC0415 -- as above

        sizes, costs = self.points.sizes, self.points.costs
        count = int((sizes <= sizes[-1] / 2).sum())
        if count < FEWEST_SIZES - 1 or sizes[count - 1] < LEAST_SPAN / 2 * sizes[0]:
            count = len(sizes) - 1
        before = Points(sizes[:count].tolist(), costs[:count].tolist(), resolution)
        earlier = _Fitted(before, self.least_noise)
        return earlier.allows(float(sizes[-1]), float(costs[-1]), self.noise)

    def allows(self, size: float, cost: float, noise: float) -> bool:
        """Whether a later point is among what these points forecast.

        The interval is that for twice the size; for another multiple it is bent the same way.
        """
        last = float(self.points.sizes[-1])
        now, ahead = self.best.at(last), self.best.at(size)
        share = (size / last - 1) if size < 2 * last else 1.0
        slack = 2 * max(noise, self.noise)
        low = ahead * (self.low / self.best.multiple) ** share * (1 - slack)
        high = ahead * (self.high / self.best.multiple) ** share * (1 + slack)
        return bool(now > 0 and low <= cost <= high)


def _without_outliers(points: Points, resolution: float) -> tuple[Points, tuple[float, ...]]:
    """The points without those that took far longer than all others say, and the sizes of these."""
    dropped: list[float] = []
    limit = len(points) // POINTS_PER_OUTLIER
    while len(dropped) < limit and len(points) > FEWEST_SIZES:
        worst: tuple[float, int, Points] | None = None
        for at in range(len(points) - 2):
            rest = points.without(at, resolution)
            sums = [found for names in SUMS if (found := rest.solve(names)) is not None]
            best = min(sums, key=lambda each: each.squares)
            noise = max((best.squares / max(len(rest) - PARTS, 1)) ** 0.5, LEAST_NOISE)
            above = float(points.costs[at]) / best.at(float(points.sizes[at])) - 1
            if (
                above > OUTLIER * noise
                and above > MOST_NOISE
                and (worst is None or above / noise > worst[0])
            ):
                worst = above / noise, at, rest
        if worst is None:
            break
        dropped.append(float(points.sizes[worst[1]]))
        points = worst[2]
    return points, tuple(sorted(dropped))
