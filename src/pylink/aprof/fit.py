"""How the cost of each routine grows with the size of its input.

Each model is cost = a + b * f(size) with a and b not negative; f is 1, log2 n, n, n log2 n, n**2
or n**3. Sizes and costs are divided by their largest, so that numbers stay near 1. Least squares of
relative errors decide a and b: times of computers differ in percent, and a fit of absolute errors
would see the largest size alone. The error of a fit is the root of the mean squared relative error.

The simplest model is taken unless a steeper one halves its error, or lowers it by `NOISE`; an
error below `GOOD` is not improved on. A slightly better fit proves nothing: times are noisy. More
is asked of n**2 and n**3, since a constant and a steep curve also fit a step or an outlier: half
the error of every gentler model, an error of at most `STEEP_ERROR`, and costs that do grow like
size ** `STEEP_EXPONENT` over the larger half of the sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pylink.aprof.model import TIME_USEC, Point, Report
from pylink.diagnostics.stream import printable

# From simple to steep: the order in which models are preferred.
MODELS: dict[str, Callable[[float], float]] = {
    "constant": lambda n: 0.0,
    "log n": lambda n: math.log2(n + 1),
    "n": lambda n: n,
    "n log n": lambda n: n * math.log2(n + 1),
    "n^2": lambda n: n * n,
    "n^3": lambda n: n**3,
}
STEEP = ("n^2", "n^3")

# A fit through fewer sizes, or sizes closer together, says nothing.
FEWEST_SIZES = 4
LEAST_SPAN = 4.0

# Relative error that measurements of the same work have anyway.
NOISE = 0.05
GOOD = 0.01

# What it takes to call a growth steep.
STEEP_ERROR = 0.1
STEEP_EXPONENT = 1.5

# A steep routine hurts when it will take this share of the link at ten times the size.
AHEAD = 10
HURTING_SHARE = 0.05


@dataclass(slots=True)
class Fit:
    """The growth of one routine: cost(n) = `constant` + `factor` * f(n) in the report's unit.

    `model` names f, None when the `points`, of one size each, say nothing; `error` is relative.
    `size` is the largest size seen and `cost` that of a call with it; `share` compares the cost
    ahead with that of the costliest routine, `hurts` says that a steep one will dominate.
    """

    routine: str
    model: str | None
    constant: float
    factor: float
    error: float
    points: Sequence[Point]
    size: int
    cost: float
    share: float = 0.0
    hurts: bool = False

    def at(self, size: float) -> float:
        """The cost that the model gives for one call of this size."""
        if self.model is None:
            return self.cost
        return self.constant + self.factor * MODELS[self.model](size)

    @property
    def twice(self) -> float:
        """How many times the cost at the largest size is that at twice it; 1 without a model."""
        now = self.at(self.size)
        return self.at(2 * self.size) / now if now else 1.0


def fit_points(points: Sequence[tuple[float, float]]) -> tuple[str, float, float, float] | None:
    """(model, constant, factor, error) for (size, cost) pairs; None when they say nothing."""
    usable = sorted((size, cost) for size, cost in points if size > 0 and cost > 0)
    sizes = {size for size, _ in usable}
    if len(sizes) < FEWEST_SIZES or max(sizes) < LEAST_SPAN * min(sizes):
        return None
    grows = _exponent(usable) >= STEEP_EXPONENT
    best: tuple[str, float, float, float] | None = None
    least = math.inf  # of the errors so far
    for name, shape in MODELS.items():
        constant, factor, error = _solve(usable, shape)
        if best is None:
            better = True
        elif name in STEEP:
            better = grows and best[3] > GOOD and error < min(least / 2, STEEP_ERROR)
        else:
            better = best[3] > GOOD and error < max(best[3] / 2, best[3] - NOISE)
        if better:
            best = name, constant, factor, error
        least = min(least, error)
    return best


def _exponent(points: Sequence[tuple[float, float]]) -> float:
    """The p of cost = size ** p between the middle and the largest of sorted sizes."""
    size, cost = points[len(points) // 2]
    largest, most = points[-1]
    return math.log(most / cost) / math.log(largest / size) if largest > size else 0.0


def _solve(
    points: Sequence[tuple[float, float]], shape: Callable[[float], float]
) -> tuple[float, float, float]:
    """The constant and factor with the least squared relative error, and its root mean."""
    scale = max(shape(size) for size, _ in points)
    top = max(cost for _, cost in points)
    # Row i is (1 / y, f / y) against 1, for a cost y.
    rows = [
        (top / cost, (shape(size) / scale if scale else 0.0) * top / cost) for size, cost in points
    ]
    aa = sum(one * one for one, _ in rows)
    ab = sum(one * other for one, other in rows)
    bb = sum(other * other for _, other in rows)
    a_right = sum(one for one, _ in rows)
    b_right = sum(other for _, other in rows)
    options = [(a_right / aa, 0.0)]
    if bb > 0:
        options.append((0.0, b_right / bb))
        determinant = aa * bb - ab * ab
        if determinant > 1e-12 * aa * bb:
            a = (a_right * bb - b_right * ab) / determinant
            b = (b_right * aa - a_right * ab) / determinant
            if a >= 0 and b >= 0:
                options.append((a, b))

    def error(option: tuple[float, float]) -> float:
        a, b = option
        return sum((a * one + b * other - 1) ** 2 for one, other in rows)

    a, b = min(options, key=error)
    return a * top, b * top / scale if scale else 0.0, math.sqrt(error((a, b)) / len(rows))


def fit_report(report: Report, cost: str = "min") -> list[Fit]:
    """The growth of every routine with points, the costliest ahead first.

    `cost` is what to take of the calls of one size: "min", for what disturbs a call makes it longer
    only, "max" or "mean".
    """
    points = report.points()
    fits = [
        _fit(routine.name, points[routine.id], cost)
        for routine in report.routines
        if points[routine.id]
    ]
    ahead = max((fit.at(AHEAD * fit.size) for fit in fits), default=0.0)
    for fit in fits:
        fit.share = fit.at(AHEAD * fit.size) / ahead if ahead else 0.0
        fit.hurts = fit.model in STEEP and fit.share >= HURTING_SHARE
    fits.sort(key=lambda fit: (-fit.share, fit.routine))
    return fits


def _fit(name: str, points: Sequence[Point], cost: str) -> Fit:
    pairs = [(float(point.rms), float(getattr(point, cost))) for point in points]
    found = fit_points(pairs)
    size, last = points[-1].rms, pairs[-1][1]
    if found is None:
        return Fit(name, None, last, 0.0, 0.0, points, size, last)
    return Fit(name, *found, points, size, last)


def fit_table(report: Report, fits: Sequence[Fit] | None = None) -> str:
    """The fits as text, one line a routine, and what they mean."""
    rows = fit_report(report) if fits is None else fits
    unit = "us" if report.metric == TIME_USEC else "blocks"
    names = [printable(fit.routine) for fit in rows]
    width = max(map(len, names), default=0)
    width = max(width, len("routine"))
    lines = [
        f"{'routine':{width}}  {'growth':8}  {'error':>6}  {'sizes':>5}  {'largest':>12}  "
        f"{'cost ' + unit:>12}  {'at twice':>8}"
    ]
    for name, fit in zip(names, rows, strict=True):
        growth = fit.model or "?"
        error = f"{fit.error:6.1%}" if fit.model else f"{'-':>6}"
        twice = f"x {fit.twice:.1f}" if fit.model else "-"
        mark = "  <- will hurt" if fit.hurts else ""
        lines.append(
            f"{name:{width}}  {growth:8}  {error}  {len(fit.points):5}  {fit.size:12}  "
            f"{fit.cost:12.0f}  {twice:>8}{mark}"
        )
    hurting = [name for name, fit in zip(names, rows, strict=True) if fit.hurts]
    if hurting:
        lines.append(f"Grow faster than the link: {', '.join(hurting)}.")
    elif any(fit.model for fit in rows):
        lines.append("No routine that matters grows faster than n log n.")
    else:
        lines.append(f"Too few sizes for fits: at least {FEWEST_SIZES} are needed.")
    return "\n".join(lines) + "\n"
