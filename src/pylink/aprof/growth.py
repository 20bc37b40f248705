"""The growth of every routine of a report, and which of them will matter.

The cost of a size is that of its fastest call: whatever disturbs a call makes it longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pylink.aprof.fit import Growth, fit_points
from pylink.aprof.model import Point, Report
from pylink.aprof.shapes import function

# A steep routine hurts when it will take this share of the link at ten times the size.
AHEAD = 10
# Sizes beyond a change of path reach this far before they tell how the cost goes on.
BEYOND = 4
HURTING_SHARE = 0.05


@dataclass(slots=True)
class Fit:
    """The growth of one routine; costs are in the report's unit, those of one call.

    `size` is the largest size seen and `cost` that of a call with it. `wall` is what the clock on
    the wall said of that call, and `size_unit` what sizes count, where the report knows. `share`
    compares the cost ahead with that of the costliest routine, `part` the cost now; `hurts` says
    that a steep one will dominate; without a model, that it matters already.
    """

    routine: str
    growth: Growth
    points: Sequence[Point]
    size: int
    cost: float
    wall: int | None = None
    size_unit: str = ""
    part: float = 0.0
    share: float = 0.0
    hurts: bool = False

    @property
    def model(self) -> str | None:
        """The function that the cost grows like in the end, such as `n^2`; None: no model."""
        return self.growth.model

    @property
    def error(self) -> float:
        """The root of the mean squared relative error of the fit."""
        return self.growth.error

    @property
    def formula(self) -> str:
        """The sum that was fitted, such as `a + b n + c n^2`; "" without a model."""
        if self.model is None:
            return ""
        parts = zip("abc", (name for name, _ in self.growth.terms), strict=False)
        return " + ".join(
            letter if name == "constant" else f"{letter} {name}" for letter, name in parts
        )

    def at(self, size: float) -> float:
        """The cost that the model gives for one call of this size; the last cost without one."""
        if self.model is None:
            return self.cost
        return sum(factor * function(name)(size) for name, factor in self.growth.terms)

    @property
    def twice(self) -> float:
        """How many times the cost at the largest size is that at twice it; 1 without a model."""
        return 1.0 if self.model is None else self.growth.twice

    @property
    def interval(self) -> tuple[float, float]:
        """Between which multiples `twice` is, with nine chances in ten."""
        return self.growth.low, self.growth.high


def fit_report(report: Report, cost: str = "min") -> list[Fit]:
    """The growth of every routine with points, the costliest ahead first.

    `cost` is what to take of the calls of one size: "min", "max" or "mean". ImportError without
    numpy.
    """
    points = report.points()
    walls, units, measuring = report.walls(), report.size_units(), report.measuring()
    paths = report.paths()
    fits = [
        _fit(
            routine.name,
            points[routine.id],
            cost,
            walls.get(routine.name, {}),
            units.get(routine.name, ""),
            paths.get(routine.name),
        )
        for routine in report.routines
        if points[routine.id] and routine.name not in measuring
    ]
    most = max((fit.cost for fit in fits), default=0.0)
    ahead = max((fit.at(AHEAD * fit.size) for fit in fits), default=0.0)
    for fit in fits:
        fit.part = fit.cost / most if most else 0.0
        fit.share = fit.at(AHEAD * fit.size) / ahead if ahead else 0.0
        ahead_share = fit.part if fit.model is None else fit.share
        fit.hurts = fit.growth.steep and ahead_share >= HURTING_SHARE
    fits.sort(key=lambda fit: (-fit.share, fit.routine))
    return fits


def _scatter(points: Sequence[Point]) -> float:
    """The relative error that the fastest call of a size has at least, from how calls differ.

    If n calls are disturbed at random, the fastest is about an nth of the others' distance away
    from an undisturbed one.
    """
    several = [point for point in points if point.occ > 1 and point.min]
    return median((point.mean / point.min - 1) / point.occ for point in several) if several else 0.0


def _fit(
    name: str,
    points: Sequence[Point],
    cost: str,
    walls: dict[int, int],
    unit: str,
    path: tuple[int, str] | None,
) -> Fit:
    pairs = [(float(point.rms), float(getattr(point, cost))) for point in points]
    size, last = points[-1].rms, pairs[-1][1]
    growth = _by_path(size, path)
    if growth is None:
        first = path[0] if path is not None and path[0] <= size else 0
        beyond = [pair for pair in pairs if pair[0] >= first]
        growth = fit_points(beyond, resolution=1.0, scatter=_scatter(points))
    return Fit(name, growth, points, size, last, walls.get(size), unit)


def _by_path(size: int, path: tuple[int, str] | None) -> Growth | None:
    """That there is no forecast, where a routine begins to go another way near its largest size."""
    if path is None or not size / BEYOND < path[0] <= 2 * size:
        return None
    start, way = path
    shown = "no size shows" if size < start else "too few sizes show"
    return Growth(reason=f"from {start} on it has {way}, which {shown}")
