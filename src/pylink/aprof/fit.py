"""How the cost of a routine grows with the size of its input, or that the points do not tell.

What a fit misses is compared with how far repeated measurements of one size lie apart, the
scatter. docs/growth.md explains the criterion to users.

1. A sum of functions, or a power of the size, is the model where it misses no more than the scatter
   excuses. Among these, the one with the best balance of error and number of parts is chosen:
   squares / scatter**2 + `PER_PART` for each part.
2. Where none does for all sizes, the larger ones may still have one: a cost may change its course
   where the link does something else from some size on. The widest range with a model is taken.
3. The interval of the forecast for twice the size holds all multiples that any sum of functions
   up to n^2 may forecast and still fit as well (95 % on each side). What the best sums for the
   wider ranges forecast is in it, too, as nobody knows whether the larger sizes go on as they are,
   and so is what smaller sizes failed to foretell. `BELOW` and `ABOVE` are for what caches do.
4. An interval that is too wide is not a forecast.

Whatever disturbs a call makes it longer, so a point far above what all others say is omitted
unless it is one of the two largest, of which nothing would confirm that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, hypot, log, log2
from typing import TYPE_CHECKING

from pylink.aprof.shapes import NAMES, SUMS, USUAL, is_between, is_steep

if TYPE_CHECKING:
    from pylink.aprof.sums import Points, Sum

# Fewer sizes, or sizes closer together, say nothing; two and eight inputs differ a little less than
# four times in bytes.
FEWEST_SIZES = 5
LEAST_SPAN = 3.8
# Where no sum fits, the course of the last doublings begins at these shares of the largest size.
COURSES = (1 / 4, 1 / 2)
FEWEST_OF_COURSE = 4
# By how much, as a logarithm, a forecast of smaller sizes may differ and still confirm a steep one.
CONFIRMED = 0.15
# Sizes are counts, so a range may be a little shorter than these say.
ROUNDING = 0.97

# What a part of a sum must gain, in squares of the scatter: two standard errors.
PER_PART = 4.0

# Relative error below which no difference is seen: clocks and rounding.
LEAST_NOISE = 0.004
# No sum fits where the best leaves more than this.
MOST_NOISE = 0.15
# Up to this misfit, what a sum of a wider range forecasts is worth considering.
USEFUL_MISFIT = 0.06
# What twice the size costs at least where a part that grows like n^3 is believed.
LEAST_CUBE = 3.0
# Standard deviations of the sum of squares by which a fit may miss more than the scatter.
EXCUSED = 5.0

# What one doubling may cost less or more than the sizes before it say: on real links, costs of an
# input rise by up to 20 % where tables outgrow a cache, and fall again.
BELOW, ABOVE = 0.85, 1.15
# Calls of one size that lie further apart than this say that the machine or its memory was busy.
# The larger link meets that as well: its cost may be off by so many times what is beyond.
STEADY, MEETS = 0.015, 2.0
# The least scatter with which that was seen; exact costs, such as counts, have nothing of it.
MEASURED = 0.002

# A sum that forecasts more than `LINEAR` and less than `MILD` may be a line that a cache bent.
LINEAR, MILD = 2.0, 2.5
# And so may a course up to this, which then costs so much.
STEEP_COURSE, ENDING = 2.9, 1.95

# How wide the interval of a forecast may be, upper / lower: so much up to some scatter, then more
# by so much for each percent, up to a limit. A machine that is busy allows no narrower ones.
NARROW, CALM, WIDER, WIDE = 1.5, 0.03, 0.15, 2.5
# By how much an interval may be wider and is made that narrow, from both ends: more intervals hold
# what a link costs than they claim to.
TRIMMED, ROUNDED = 1.15, 1 + 1e-9
# A multiple beyond all of n log n, and beyond what may be called harmless.
STEEPER = 2.35
# The same of a sum with a gentler part, which a line looks like where a cache bends it.
BENT = 2.6

# What doublings of routines cost mostly, as exponents of the size: this counts where the sizes
# leave the forecast open, as one measurement more.
USUAL_POWER, USUAL_SPREAD = 1.0, 0.25

# Student's t, one-sided 95 %, by degrees of freedom; the last one for more.
STUDENT = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.7)
# By how much wider still where noise is not normal; `BELOW` and `ABOVE` are room enough.
SAFETY = 1.0
# Parts that are counted as fitted when noise is estimated.
PARTS = 3

# How far above the rest, in units of their noise, a point is an outlier; one in so many may be.
OUTLIER = 6.0
POINTS_PER_OUTLIER = 5


@dataclass(frozen=True, slots=True)
class Growth:
    """What points say: `model` is None where they say nothing, for a `reason` in words.

    `terms` are names and factors of the sum; `error` is the root of the mean squared relative
    error, `scatter` how far measurements of one size lie apart; `low` to `high` hold the multiple
    of the cost at twice the largest size with nine chances in ten, and are both 1 where nothing
    does; `outliers` were omitted. `since` is the least size that the model is of. `steep` says
    that the cost grows faster than n log n, which may be certain where the model is not.
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
    scatter: float = 0.0
    since: float = 0.0


def fit_points(
    points: Sequence[tuple[float, float]], *, resolution: float = 0.0, scatter: float = 0.0
) -> Growth:
    """The growth of (size, cost) pairs; what is not positive is omitted.

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
        from pylink.aprof.sums import Points  # readers of reports need no numpy
    except ImportError as error:
        raise ImportError(
            "fits of growth need the numpy package: run `pip install 'pylink-cuda[report]'`",
            name=error.name,
        ) from error
    usable = Points(sizes, [by_size[size] for size in sizes], resolution)
    usable, outliers = _without_outliers(usable, resolution)
    return _Curve(usable, scatter, resolution).growth(outliers)


def _count(sizes: int) -> str:
    return "1 size" if sizes == 1 else f"{sizes} sizes"


class _Range:
    """Points from some size on, the best sum of them, and what all sums say of the forecast."""

    def __init__(self, points: Points, scatter: float) -> None:
        self.points = points
        sums = _sums(points)
        closest = min(sums, key=lambda each: each.squares)
        self.free = max(len(points) - PARTS, 1)
        self.misfit = max((closest.squares / self.free) ** 0.5, LEAST_NOISE)
        self.best: Sum = min(
            sums,
            key=lambda each: each.squares / scatter**2 + PER_PART * _parts(each) + _unusual(each),
        )
        excused = scatter**2 * (self.free + EXCUSED * (2 * self.free) ** 0.5)
        self.fits = closest.squares <= excused and self.best.squares <= excused * 1.5
        self.low, self.high = self._interval(closest, max(scatter, self.misfit))

    def _interval(self, closest: Sum, noise: float) -> tuple[float, float]:
        from pylink.aprof.sums import MULTIPLES, POWERS_OF_MULTIPLES

        profile = self.points.profile(len(USUAL))
        least = float(profile.min())
        # n^3 is believed where the points show it.
        if closest.multiple > 4.2 and closest.squares < least / 2:
            profile = self.points.profile(len(NAMES))
        margin = SAFETY * STUDENT[min(self.free, len(STUDENT)) - 1] * noise
        unusual = (POWERS_OF_MULTIPLES - USUAL_POWER) / USUAL_SPREAD
        profile = profile + (noise * unusual) ** 2
        inside = (profile - profile.min() <= margin**2).nonzero()[0]
        if not len(inside):
            return self.best.multiple, self.best.multiple
        low, high = max(int(inside[0]) - 1, 0), min(int(inside[-1]) + 1, len(MULTIPLES) - 1)
        return (
            min(float(MULTIPLES[low]), self.best.multiple),
            max(float(MULTIPLES[high]), self.best.multiple),
        )


class _Curve:
    """Points with what fits them: one sum for all, or their course in the last doublings."""

    def __init__(self, points: Points, scatter: float, resolution: float) -> None:
        self.points = points
        self.resolution = resolution
        whole = _Range(points, max(scatter, LEAST_NOISE))
        self.is_exact = scatter < MEASURED and whole.misfit <= LEAST_NOISE
        self.scatter = max(scatter, LEAST_NOISE, _roughness(points, whole.best))
        self.whole = _Range(points, self.scatter)
        self.earlier = self._earlier()

    def growth(self, outliers: tuple[float, ...]) -> Growth:
        """The growth, or why there is none."""
        by_sum = self.whole.fits and self._is_confirmed()
        fit = self._by_sum() if by_sum else self._by_course()
        best = fit.best
        low, high = fit.low, fit.high
        if not self.is_exact:
            low = best.multiple * exp(-hypot(log(best.multiple / low), log(BELOW)))
            high = best.multiple * exp(hypot(log(high / best.multiple), log(ABOVE)))
            low = min(low, fit.course * BELOW)
        steep = low > _alarm(best)
        busy = exp(MEETS * max(self.scatter - STEADY, 0.0))
        low, high = max(low / busy, 1.0), high * busy
        limit = min(NARROW + WIDER * max(self.scatter - CALM, 0.0) * 100, WIDE)
        if limit < high / low <= limit * TRIMMED:
            over = (high / low / limit) ** 0.5 * ROUNDED
            low, high = low * over, high / over
        model, reason = fit.model, fit.reason
        if fit.misfit > MOST_NOISE:
            low = high = 1.0
            model, reason = None, f"no sum fits, the best is {fit.misfit:.0%} off"
        elif high / low > limit:
            model, reason = None, f"twice the size may cost x {low:.1f} to x {high:.1f}"
            low = high = 1.0
        return Growth(
            model,
            reason,
            tuple(zip(best.names, best.factors, strict=True)),
            (best.squares / len(fit.points)) ** 0.5,
            best.multiple,
            low,
            high,
            outliers,
            steep and high > 1 and (model is None or is_steep(model)),
            self.scatter,
            float(fit.points.sizes[0]),
        )

    def _earlier(self) -> _Range | None:
        """The sizes up to half of the largest; None where they are too few."""
        sizes = self.points.sizes
        count = int((sizes <= sizes[-1] / 2 / ROUNDING).sum())
        if count < FEWEST_SIZES or sizes[count - 1] < LEAST_SPAN * ROUNDING * sizes[0]:
            return None
        return _Range(self.points.until(count, self.resolution), self.scatter)

    def _is_confirmed(self) -> bool:
        """Whether the smaller sizes show that the cost is as steep as all of them say."""
        whole = self.whole
        if whole.best.multiple < STEEPER and whole.high < STEEPER * ABOVE:
            return True
        if self.earlier is None:
            return False
        return abs(log(self._predict() / whole.best.multiple)) < CONFIRMED

    def _predict(self) -> float:
        """What twice the largest size costs by what half of it and less say."""
        assert self.earlier is not None
        best, last = self.earlier.best, float(self.points.sizes[-1])
        return best.at(2 * last) / best.at(last)

    def _by_sum(self) -> _Forecast:
        whole = self.whole
        low, high = whole.low, whole.high
        if len(whole.best.names) == 1 and is_between(whole.best.names[0]):
            # Sums of the functions are not a measure of a power that none of them is.
            power = _Course(self.points, self.scatter)
            low, high = power.low, power.high
        if self.earlier is not None and self.earlier.fits:
            predicted = self._predict()
            low, high = min(low, predicted), max(high, predicted)
        best = whole.best
        course = best.multiple
        if LINEAR < best.multiple < MILD:
            course = max(self._courses()[0].best.multiple, LINEAR)
        return _Forecast(self.points, best, low, high, whole.misfit, best.names[-1], course=course)

    def _courses(self) -> list[_Course]:
        """The course of the last two doublings, and of the last one."""
        sizes = self.points.sizes
        courses = []
        for share in COURSES:
            first = int((sizes < share * sizes[-1] * ROUNDING).sum())
            if len(sizes) - first >= FEWEST_OF_COURSE:
                courses.append(_Course(self.points.since(first, self.resolution), self.scatter))
        return courses or [_Course(self.points, self.scatter)]

    def _by_course(self) -> _Forecast:
        """As if the cost went on as a power of the size, which it was in the last doublings."""
        sizes = self.points.sizes
        courses = self._courses()
        widest = courses[0]
        low = min(each.low for each in courses)
        high = max(each.high for each in courses)
        for other in (self.whole, self.earlier):
            if other is not None and other.misfit <= USEFUL_MISFIT:
                last = float(sizes[-1])
                multiple = other.best.at(2 * last) / other.best.at(last)
                # That a sum bends upwards at its end is what is in doubt.
                low, high = min(low, multiple), max(high, min(multiple, widest.high))
        # A course that is a little steeper than a line may end where the caches are full.
        course = widest.best.multiple
        if LINEAR < course < STEEP_COURSE:
            course = min(course, ENDING / BELOW)
        model = widest.best.names[-1] if widest.fits else None
        off = f"the best sum is {self.whole.misfit:.1%} off, calls scatter by {self.scatter:.1%}"
        return _Forecast(
            widest.points,
            widest.best,
            low,
            high,
            widest.misfit,
            model,
            "" if model else off,
            course=course,
        )


@dataclass(frozen=True, slots=True)
class _Forecast:
    """What a curve says, before caches are thought of, and the least that its course allows."""

    points: Points
    best: Sum
    low: float
    high: float
    misfit: float
    model: str | None
    reason: str = ""
    course: float = 1.0


class _Course:
    """The power of the size that the cost was between some sizes."""

    def __init__(self, points: Points, scatter: float) -> None:
        self.points = points
        self.best = points.power(constant=False)
        free = max(len(points) - 2, 1)
        self.misfit = max((self.best.squares / free) ** 0.5, LEAST_NOISE)
        excused = scatter**2 * (free + EXCUSED * (2 * free) ** 0.5)
        self.fits = self.best.squares <= excused and len(points) >= FEWEST_SIZES
        places = [log(size) for size in points.sizes.tolist()]
        middle = sum(places) / len(places)
        spread = sum((place - middle) ** 2 for place in places) ** 0.5
        noise = max(scatter, self.misfit if len(points) >= FEWEST_SIZES else 0.0)
        margin = STUDENT[min(free, len(STUDENT)) - 1] * noise / spread * log(2)
        self.low, self.high = self.best.multiple * exp(-margin), self.best.multiple * exp(margin)


def _sums(points: Points) -> list[Sum]:
    """All that may be a model of the points."""
    sums = [found for names in SUMS if (found := points.solve(names)) is not None]
    # A trace of n^3 is noise in the largest sizes.
    sums = [found for found in sums if found.names[-1] in USUAL or found.multiple > LEAST_CUBE]
    return [*sums, points.power(constant=False), points.power(constant=True)]


def _alarm(fitted: Sum) -> float:
    """The multiple beyond which all of an interval must be, to say that a cost is steep."""
    growing = [name for name in fitted.names if name != "constant"]
    return STEEPER if len(growing) == 1 else BENT


def _unusual(fitted: Sum) -> float:
    """How unlikely a forecast is before anything is measured, in squares of the scatter."""
    return ((log2(max(fitted.multiple, 1.0)) - USUAL_POWER) / USUAL_SPREAD) ** 2


def _parts(fitted: Sum) -> int:
    """What was chosen to fit: the factors, and the exponent of a power between the classes."""
    return len(fitted.names) + (fitted.names[-1] not in NAMES)


def _roughness(points: Points, fitted: Sum) -> float:
    """How far points jump about their neighbors: what no smooth curve explains.

    The middle one of three points is compared with the line through the others.
    """
    missed = points.missed(fitted).tolist()
    places = [log(size) for size in points.sizes.tolist()]
    jumps = []
    for at in range(1, len(missed) - 1):
        share = (places[at] - places[at - 1]) / (places[at + 1] - places[at - 1])
        between = missed[at - 1] * (1 - share) + missed[at + 1] * share
        jumps.append(abs(missed[at] - between) / (1 + share**2 + (1 - share) ** 2) ** 0.5)
    jumps.sort()
    # The median of absolute values of a normal variable is 0.67 standard deviations.
    return jumps[len(jumps) // 2] / 0.6745 if jumps else 0.0


def _without_outliers(points: Points, resolution: float) -> tuple[Points, tuple[float, ...]]:
    """The points without those that took far longer than all others say, and the sizes of these."""
    dropped: list[float] = []
    closest = min(_sums(points), key=lambda each: each.squares)
    if float(points.missed(closest).min()) > -MOST_NOISE / 2 and closest.squares < MOST_NOISE**2:
        return points, ()
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
