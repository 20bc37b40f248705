"""The growth of a routine's cost with the size of its input, or why the points do not show it.

The error of a fit is compared with the scatter: how far repeated measurements of one size differ.
docs/growth.md explains the criterion to users.

1. Among sums of functions and powers of the size, the one with the least penalty is chosen: the sum
   of squared errors / scatter**2, `PART_PENALTY` for each fitted parameter, and more for an unusual
   growth. It is a model if its error does not exceed what the scatter allows.
2. If there is no model for all sizes, or smaller sizes do not confirm a steep one, the larger sizes
   may have one: the cost may grow in another way from some size on. So a power, the course, is
   fitted to the last two doublings.
3. The forecast is a multiple: the cost at twice the largest size, divided by the cost there. Its
   interval holds each multiple that some sum of functions up to n^2 forecasts, if that sum fits
   about as well as the closest one (95 % on each side). It also holds what the best sums for all
   sizes and for the smaller sizes forecast; the interval of a course takes only lower bounds from
   them. `CACHE_DIP` and `CACHE_RISE` allow for caches.
4. An interval that is too wide is not a forecast.

Disturbances only make a call longer, so a point far above a fit of all others is omitted. The
points of the two largest sizes always count: no larger size could confirm such an omission.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import exp, hypot, log, log2
from statistics import median

from pylink.aprof.shapes import NAMES, SUMS, USUAL, is_between, is_steep
from pylink.packages.extras import need
from pylink.terminal.numbers import count_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.aprof.sums import Points, Sum

# Fewer sizes do not show a growth, nor do sizes whose largest is below LEAST_SPAN times the
# smallest. Two and eight inputs should do: their bytes differ by a little less than a factor of 4.
FEWEST_SIZES = 5
LEAST_SPAN = 3.8
# A course is a power of the size that is fitted to the sizes from one of these shares of the
# largest size on: to the last two doublings, or to the last one. It needs FEWEST_COURSE_SIZES.
COURSE_STARTS = (1 / 4, 1 / 2)
FEWEST_COURSE_SIZES = 4
# Sizes up to half of the largest confirm a steep growth that all sizes show if they forecast about
# the same multiple: |log(their multiple / that of all)| is below this. A multiple is the cost at
# twice the largest size, divided by the cost there.
CONFIRM_LOG_ERROR = 0.15
# Sizes are whole numbers, so a range of them, such as the last doubling, may miss its bound by this
# factor.
SIZE_TOLERANCE = 0.97

# Each parameter of a fit must decrease the sum of squared errors by so many squares of the scatter
# (the relative error of a cost): 4 is the square of two standard errors.
PART_PENALTY = 4.0

# Relative error below which costs count as equal, because of clocks and rounding.
LEAST_NOISE = 0.004
# A fit with a larger relative error forecasts no costs. An outlier is above the fit of the other
# points by more than this share.
MOST_NOISE = 0.15
# A course is the power that fits the largest sizes. The sum for all sizes and that for the smaller
# ones lower the lower bound of its interval to what they forecast, if that is less. A sum with a
# larger relative error than this does not.
USEFUL_MISFIT = 0.06
# A sum with n^3 is tried only if it forecasts, at twice the size, more than this multiple of the
# cost.
LEAST_CUBIC_MULTIPLE = 3.0
# Standard deviations by which the sum of squared errors of a model may exceed what the scatter of
# the costs alone gives.
MAX_EXCESS_SIGMA = 5.0
# The squared errors of the chosen sum of functions may be up to this many times the limit that
# MAX_EXCESS_SIGMA gives, if those of the sum with the least errors are within it.
CHOICE_TOLERANCE = 1.5
# A larger multiple of the cost at twice the size needs n^3: n^2 gives 4.
CUBIC_MULTIPLE = 4.2

# Multiples of the forecast to which the interval of noisy costs is widened at least, before it is
# trimmed. Caches change costs: on real links the cost of an input rises by up to 20 % when tables
# outgrow a cache, and falls again.
CACHE_DIP, CACHE_RISE = 0.85, 1.15
# A larger scatter shows that the machine or its memory was busy. It may be busy for a link of twice
# the size, too, so each bound of the interval moves outward by BUSY_FACTOR times the excess.
STEADY_SCATTER, BUSY_FACTOR = 0.015, 2.0
# Measured times scatter at least this much. Exact costs, such as counts, scatter less, and no cache
# changes them.
LEAST_TIME_SCATTER = 0.002

# A sum may be linear growth that a cache disturbs if it forecasts a multiple of the cost at twice
# the size in this range: linear growth gives 2. The multiple of its course then limits the lower
# bound of the interval, see `_Forecast`.
LINE_LOW, LINE_HIGH = 2.0, 2.5
# A course (the power for the last doublings) with a multiple from LINE_LOW to BENT_COURSE_HIGH may
# be linear growth, too. The lower bound of its interval is then at most BENT_COURSE_MULTIPLE.
BENT_COURSE_HIGH, BENT_COURSE_MULTIPLE = 2.9, 1.95

# Largest quotient of the bounds of an interval: INTERVAL_RATIO, and INTERVAL_RATIO_PER_PERCENT more
# for each percent of scatter above CALM_SCATTER, but at most INTERVAL_RATIO_MAX. A busy machine
# allows no narrower intervals.
INTERVAL_RATIO, CALM_SCATTER = 1.5, 0.03
INTERVAL_RATIO_PER_PERCENT, INTERVAL_RATIO_MAX = 0.15, 2.5
# An interval whose quotient is above the limit by a factor of up to TRIM_RATIO_MAX is narrowed at
# both ends: in tests, intervals hold the cost more often than promised. TRIM_ROUNDING keeps the
# quotient of the narrowed interval below the limit.
TRIM_RATIO_MAX, TRIM_ROUNDING = 1.15, 1 + 1e-9
# A cost is steep if the lower bound of its multiple is above this. The multiple says how many times
# as much twice the size costs. That of n log n is lower at the sizes of links.
STEEP_MULTIPLE = 2.35
# This limit replaces STEEP_MULTIPLE for a sum of two growing functions. It is higher, since a cache
# may make linear growth look like such a sum.
STEEP_MULTIPLE_OF_SUM = 2.6

# Prior of the growth exponent: mean and standard deviation. It weighs as much as one measurement,
# so it decides only if several models fit.
PRIOR_EXPONENT, PRIOR_SPREAD = 1.0, 0.25

# Student's t, one-sided 95 %, for 1 to 14 degrees of freedom; the last value is for all others.
STUDENT_T_95 = (
    *(6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86),
    *(1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.7),
)
# Number of fitted parameters that is assumed for the degrees of freedom of any sum.
FITTED_PARTS = 3

# Median of the absolute values of a normal variable, in standard deviations.
MEDIAN_OF_NORMAL = 0.6745

# Least distance of an outlier above the fit of the other points, in units of their noise. One
# outlier may be omitted for each POINTS_PER_OUTLIER points.
OUTLIER_SIGMA = 6.0
POINTS_PER_OUTLIER = 5


@dataclass(frozen=True, slots=True)
class Growth:
    """The growth that points show.

    * `model`: the name of the steepest function of the sum, such as `n^2`; None without a model.
    * `reason`: why there is no model, for people.
    * `terms`: names and factors of the functions of the best sum, even if it is not a model.
    * `error`: root of the mean squared relative error of this sum.
    * `twice`: the cost at twice the largest size, as a multiple of the cost there.
    * `low`, `high`: interval that holds this multiple with nine chances in ten; both are 1 if
      there is no forecast.
    * `outliers`: the sizes of omitted points.
    * `steep`: whether the cost grows faster than n log n, which may be certain without a model.
    * `scatter`: the relative error of a cost that was assumed: the largest of what the caller
       states, LEAST_NOISE, and the scatter of the points about their neighbors.
    * `since`: the smallest size for which the model holds.
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
    """Return the growth of (size, cost) pairs; pairs with zero or negative numbers are omitted.

    The least of several costs of one size counts. `resolution` is the unit to which costs were
    rounded, `scatter` the least relative error to assume. ImportError without numpy.
    """
    by_size: dict[float, float] = {}
    for size, cost in points:
        if size > 0 and cost > 0:
            by_size[size] = min(cost, by_size.get(size, cost))
    sizes = sorted(by_size)
    if len(sizes) < FEWEST_SIZES:
        return Growth(reason=f"only {count_text(len(sizes), 'size')}, {FEWEST_SIZES} are needed")
    if sizes[-1] < LEAST_SPAN * sizes[0]:
        return Growth(reason=f"sizes are less than {LEAST_SPAN} times apart")
    need("numpy", "a fit of growth")
    from pylink.aprof.sums import Points  # readers of reports need no numpy

    usable = Points(sizes, [by_size[size] for size in sizes], resolution)
    usable, outliers = _without_outliers(usable, resolution)
    return _Curve(usable, scatter, resolution).growth(outliers)


def scatter_of(costs: Iterable[tuple[float, float, int]]) -> float:
    """Return the relative error of the least cost of a size, from sizes with several costs.

    `costs` has the least cost of each size, the mean, and how many there are. If n costs are
    disturbed at random, the least is greater than an undisturbed cost by about 1/n of the mean
    distance of all from the least. Without sizes with several costs, the error is 0.
    """
    errors = [(mean / least - 1) / count for least, mean, count in costs if count > 1 and least]
    return median(errors) if errors else 0.0


class _Range:
    """Points, the best sum for them, and the interval of what sums that fit them well forecast.

    The closest sum has the least squared errors. The best sum has the least penalty: its squared
    errors, and more for each parameter and for a growth unlike n. `misfit` is the relative error of
    the closest sum, by the degrees of freedom `freedom`. `fits` means that the best sum is a model.
    `low` and `high` bound the cost at twice the largest size, as multiples of the cost there.
    """

    def __init__(self, points: Points, scatter: float) -> None:
        self.points = points
        sums = _candidate_sums(points)
        closest = min(sums, key=lambda candidate: candidate.squares)
        self.freedom = max(len(points) - FITTED_PARTS, 1)
        self.misfit = max((closest.squares / self.freedom) ** 0.5, LEAST_NOISE)
        self.best: Sum = min(
            sums,
            key=lambda candidate: (
                candidate.squares / scatter**2
                + PART_PENALTY * _parameter_count(candidate)
                + _prior_penalty(candidate)
            ),
        )
        allowed_squares = scatter**2 * (self.freedom + MAX_EXCESS_SIGMA * (2 * self.freedom) ** 0.5)
        self.fits = (
            closest.squares <= allowed_squares
            and self.best.squares <= allowed_squares * CHOICE_TOLERANCE
        )
        self.low, self.high = self._interval(closest, max(scatter, self.misfit))

    def _interval(self, closest: Sum, noise: float) -> tuple[float, float]:
        """Return the bounds of the forecasts of all sums that fit about as well as `closest`.

        The forecast of the best sum is always within them. A forecast is the cost at twice the
        largest size, as a multiple of the cost there. `noise` is the relative error of a cost.
        """
        from pylink.aprof.sums import MULTIPLES, POWERS_OF_MULTIPLES

        profile = self.points.profile(len(USUAL))
        least_squares = float(profile.min())
        # n^3 is accepted only if the points show it.
        if closest.multiple > CUBIC_MULTIPLE and closest.squares < least_squares / 2:
            profile = self.points.profile(len(NAMES))
        margin = STUDENT_T_95[min(self.freedom, len(STUDENT_T_95)) - 1] * noise
        unusual = (POWERS_OF_MULTIPLES - PRIOR_EXPONENT) / PRIOR_SPREAD
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
    """Points and their fits: a sum for all of them, or a power for the last doublings.

    `is_exact` means costs without noise, such as counts. `full_range` is the fit of all sizes, and
    `smaller` that of the sizes up to half of the largest, None if they are too few or too close.
    """

    def __init__(self, points: Points, scatter: float, resolution: float) -> None:
        self.points = points
        self.resolution = resolution
        first_fit = _Range(points, max(scatter, LEAST_NOISE))
        self.is_exact = scatter < LEAST_TIME_SCATTER and first_fit.misfit <= LEAST_NOISE
        self.scatter = max(scatter, LEAST_NOISE, _neighbor_scatter(points, first_fit.best))
        self.full_range = _Range(points, self.scatter)
        self.smaller = self._fit_smaller_sizes()

    def growth(self, outliers: tuple[float, ...]) -> Growth:
        """Return the growth, with a reason if there is no model."""
        uses_sum = self.full_range.fits and self._is_confirmed()
        fit = self._forecast_by_sum() if uses_sum else self._forecast_by_course()
        best_sum = fit.best
        low, high = fit.low, fit.high
        if not self.is_exact:
            low = best_sum.multiple * exp(-hypot(log(best_sum.multiple / low), log(CACHE_DIP)))
            high = best_sum.multiple * exp(hypot(log(high / best_sum.multiple), log(CACHE_RISE)))
            low = min(low, fit.course * CACHE_DIP)
        steep = low > _steep_limit(best_sum)
        busy_factor = exp(BUSY_FACTOR * max(self.scatter - STEADY_SCATTER, 0.0))
        low, high = max(low / busy_factor, 1.0), high * busy_factor
        limit = min(
            INTERVAL_RATIO
            + INTERVAL_RATIO_PER_PERCENT * max(self.scatter - CALM_SCATTER, 0.0) * 100,
            INTERVAL_RATIO_MAX,
        )
        if limit < high / low <= limit * TRIM_RATIO_MAX:
            trim = (high / low / limit) ** 0.5 * TRIM_ROUNDING
            low, high = low * trim, high / trim
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
            tuple(zip(best_sum.names, best_sum.factors, strict=True)),
            (best_sum.squares / len(fit.points)) ** 0.5,
            best_sum.multiple,
            low,
            high,
            outliers,
            steep and high > 1 and (model is None or is_steep(model)),
            self.scatter,
            float(fit.points.sizes[0]),
        )

    def _fit_smaller_sizes(self) -> _Range | None:
        """Return the fit of sizes up to half of the largest; None if too few or too close."""
        sizes = self.points.sizes
        count = int((sizes <= sizes[-1] / 2 / SIZE_TOLERANCE).sum())
        if count < FEWEST_SIZES or sizes[count - 1] < LEAST_SPAN * SIZE_TOLERANCE * sizes[0]:
            return None
        return _Range(self.points.first(count, self.resolution), self.scatter)

    def _is_confirmed(self) -> bool:
        """Return whether the best sum is not steep, or smaller sizes forecast the same growth."""
        full_range = self.full_range
        if (
            full_range.best.multiple < STEEP_MULTIPLE
            and full_range.high < STEEP_MULTIPLE * CACHE_RISE
        ):
            return True
        if self.smaller is None:
            return False
        return (
            abs(log(self._multiple_by_smaller_sizes() / full_range.best.multiple))
            < CONFIRM_LOG_ERROR
        )

    def _multiple_by_smaller_sizes(self) -> float:
        """Return the multiple at twice the largest size that the smaller sizes forecast."""
        assert self.smaller is not None
        best_sum, largest_size = self.smaller.best, float(self.points.sizes[-1])
        return best_sum.at(2 * largest_size) / best_sum.at(largest_size)

    def _forecast_by_sum(self) -> _Forecast:
        """Return the forecast by the sum of functions that fits all sizes best."""
        full_range = self.full_range
        low, high = full_range.low, full_range.high
        if len(full_range.best.names) == 1 and is_between(full_range.best.names[0]):
            # The best fit is a power n^p whose exponent lies between those of two named functions.
            # But `low` and `high` are bounds of what sums of named functions forecast. So those of
            # the power are used instead.
            power = _Course(self.points, self.scatter)
            low, high = power.low, power.high
        if self.smaller is not None and self.smaller.fits:
            predicted = self._multiple_by_smaller_sizes()
            low, high = min(low, predicted), max(high, predicted)
        best_sum = full_range.best
        course = best_sum.multiple
        if LINE_LOW < best_sum.multiple < LINE_HIGH:
            course = max(self._fit_courses()[0].best.multiple, LINE_LOW)
        return _Forecast(
            self.points, best_sum, low, high, full_range.misfit, best_sum.names[-1], course=course
        )

    def _fit_courses(self) -> list[_Course]:
        """Return the powers fitted to the last two doublings and to the last one.

        One with too few points is omitted. If both have too few, return the power fitted to all.
        """
        sizes = self.points.sizes
        courses = []
        for share in COURSE_STARTS:
            first_index = int((sizes < share * sizes[-1] * SIZE_TOLERANCE).sum())
            if len(sizes) - first_index >= FEWEST_COURSE_SIZES:
                courses.append(
                    _Course(self.points.starting_at(first_index, self.resolution), self.scatter)
                )
        return courses or [_Course(self.points, self.scatter)]

    def _forecast_by_course(self) -> _Forecast:
        """Return the forecast of the power of the size that fits the last doublings."""
        sizes = self.points.sizes
        courses = self._fit_courses()
        widest = courses[0]
        low = min(course_fit.low for course_fit in courses)
        high = max(course_fit.high for course_fit in courses)
        for other in (self.full_range, self.smaller):
            if other is not None and other.misfit <= USEFUL_MISFIT:
                largest_size = float(sizes[-1])
                multiple = other.best.at(2 * largest_size) / other.best.at(largest_size)
                # `multiple` does not raise the upper bound above that of the course: whether a sum
                # really bends upward is in doubt.
                low, high = min(low, multiple), max(high, min(multiple, widest.high))
        # A course that is a little steeper than linear growth may be linear once caches are full.
        course = widest.best.multiple
        if LINE_LOW < course < BENT_COURSE_HIGH:
            course = min(course, BENT_COURSE_MULTIPLE / CACHE_DIP)
        model = widest.best.names[-1] if widest.fits else None
        misfit_text = (
            f"the best sum is {self.full_range.misfit:.1%} off, calls scatter by {self.scatter:.1%}"
        )
        return _Forecast(
            widest.points,
            widest.best,
            low,
            high,
            widest.misfit,
            model,
            "" if model else misfit_text,
            course=course,
        )


@dataclass(frozen=True, slots=True)
class _Forecast:
    """The forecast of a curve without an allowance for caches.

    `best` is the sum or power that forecasts, and `misfit` a relative error of the fit. `low` and
    `high` are the bounds of the multiple: the cost at twice the largest size, divided by the cost
    there. If costs are noisy, the lower bound becomes at most CACHE_DIP times `course`, a multiple
    by the last doublings. `model` is None if nothing fits; `reason` says why.
    """

    points: Points
    best: Sum
    low: float
    high: float
    misfit: float
    model: str | None
    reason: str = ""
    course: float = 1.0


class _Course:
    """The power of the size that fits the cost of some points, and the interval of its forecast.

    Fields are as in `_Range`; `best` is the power.
    """

    def __init__(self, points: Points, scatter: float) -> None:
        self.points = points
        self.best = points.power(constant=False)
        freedom = max(len(points) - 2, 1)
        self.misfit = max((self.best.squares / freedom) ** 0.5, LEAST_NOISE)
        allowed_squares = scatter**2 * (freedom + MAX_EXCESS_SIGMA * (2 * freedom) ** 0.5)
        self.fits = self.best.squares <= allowed_squares and len(points) >= FEWEST_SIZES
        log_sizes = [log(size) for size in points.sizes.tolist()]
        middle = sum(log_sizes) / len(log_sizes)
        spread = sum((position - middle) ** 2 for position in log_sizes) ** 0.5
        noise = max(scatter, self.misfit if len(points) >= FEWEST_SIZES else 0.0)
        margin = STUDENT_T_95[min(freedom, len(STUDENT_T_95)) - 1] * noise / spread * log(2)
        self.low, self.high = self.best.multiple * exp(-margin), self.best.multiple * exp(margin)


def _candidate_sums(points: Points) -> list[Sum]:
    """Return all sums and powers that may be a model of the points."""
    sums = [candidate for names in SUMS if (candidate := points.solve(names)) is not None]
    # A small part of n^3 is noise in the largest sizes.
    sums = [
        candidate
        for candidate in sums
        if candidate.names[-1] in USUAL or candidate.multiple > LEAST_CUBIC_MULTIPLE
    ]
    return [*sums, points.power(constant=False), points.power(constant=True)]


def _steep_limit(fitted: Sum) -> float:
    """Return the multiple of the cost at twice the size above which a growth is steep."""
    growing = [name for name in fitted.names if name != "constant"]
    return STEEP_MULTIPLE if len(growing) == 1 else STEEP_MULTIPLE_OF_SUM


def _prior_penalty(fitted: Sum) -> float:
    """Return the improbability of a forecast before any measurement, in squares of the scatter."""
    return ((log2(max(fitted.multiple, 1.0)) - PRIOR_EXPONENT) / PRIOR_SPREAD) ** 2


def _parameter_count(fitted: Sum) -> int:
    """Return the number of fitted parameters: factors, and the exponent of an unnamed power."""
    return len(fitted.names) + (fitted.names[-1] not in NAMES)


def _neighbor_scatter(points: Points, fitted: Sum) -> float:
    """Return the scatter of points about their neighbors, which no smooth curve explains.

    It is that of the errors of `fitted`: each point but the first and the last is compared with
    the line through its two neighbors.
    """
    errors = points.relative_errors(fitted).tolist()
    log_sizes = [log(size) for size in points.sizes.tolist()]
    jumps = []
    for index in range(1, len(errors) - 1):
        share = (log_sizes[index] - log_sizes[index - 1]) / (
            log_sizes[index + 1] - log_sizes[index - 1]
        )
        on_line = errors[index - 1] * (1 - share) + errors[index + 1] * share
        jumps.append(abs(errors[index] - on_line) / (1 + share**2 + (1 - share) ** 2) ** 0.5)
    jumps.sort()
    return jumps[len(jumps) // 2] / MEDIAN_OF_NORMAL if jumps else 0.0


def _without_outliers(points: Points, resolution: float) -> tuple[Points, tuple[float, ...]]:
    """Return the points without outliers, and the sizes of the outliers."""
    dropped: list[float] = []
    closest = min(_candidate_sums(points), key=lambda candidate: candidate.squares)
    if (
        float(points.relative_errors(closest).min()) > -MOST_NOISE / 2
        and closest.squares < MOST_NOISE**2
    ):
        return points, ()
    limit = len(points) // POINTS_PER_OUTLIER
    while len(dropped) < limit and len(points) > FEWEST_SIZES:
        # Excess in units of noise, index of the point, and the other points.
        worst: tuple[float, int, Points] | None = None
        for index in range(len(points) - 2):
            others = points.without(index, resolution)
            sums = [fitted for names in SUMS if (fitted := others.solve(names)) is not None]
            best_sum = min(sums, key=lambda candidate: candidate.squares)
            noise = max((best_sum.squares / max(len(others) - FITTED_PARTS, 1)) ** 0.5, LEAST_NOISE)
            excess = float(points.costs[index]) / best_sum.at(float(points.sizes[index])) - 1
            if (
                excess > OUTLIER_SIGMA * noise
                and excess > MOST_NOISE
                and (worst is None or excess / noise > worst[0])
            ):
                worst = excess / noise, index, others
        if worst is None:
            break
        dropped.append(float(points.sizes[worst[1]]))
        points = worst[2]
    return points, tuple(sorted(dropped))
