"""The growth of every routine of a report, and which of them will matter.

By default, the cost of a size is that of its fastest call: disturbances only make a call longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pylink.aprof.fit import Growth, fit_points, scatter_of
from pylink.aprof.model import Point, Report
from pylink.aprof.shapes import value_at

# A routine that grows faster than n log n hurts if, at AHEAD_FACTOR times its largest size, it
# takes at least HURTING_SHARE of what the costliest routine takes there.
AHEAD_FACTOR = 10
HURTING_SHARE = 0.05
# A routine may work in another way (a path) from some size on. The growth on the new path shows
# only if the largest size is PATH_REACH times that size.
PATH_REACH = 4


@dataclass(slots=True)
class Fit:
    """The growth of one routine. Costs are those of one call, in the report's unit.

    * `size`, `cost`: the largest measured size, and the cost of a call with it.
    * `wall`: the wall time of that call; None if the report does not have it.
    * `size_unit`: the unit of sizes; "" if the report does not have it.
    * `part`: `cost` as a share of the costliest routine's.
    * `share`: the cost at ten times the size as a share of the costliest routine's there. A routine
      without a model counts with `cost`.
    * `hurts`: whether the routine is steep and its `share` (its `part` if there is no model) is at
      least HURTING_SHARE.
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
        """The function that the cost grows like for large sizes, such as `n^2`; None: no model."""
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
        """Return the cost that the model gives a call of this size; without a model, `cost`."""
        if self.model is None:
            return self.cost
        return value_at(size, self.growth.terms)

    @property
    def twice(self) -> float:
        """The cost at twice the largest size, as a multiple of the cost there; 1: no model."""
        return 1.0 if self.model is None else self.growth.twice

    @property
    def interval(self) -> tuple[float, float]:
        """The bounds of `twice` with nine chances in ten; (1, 1) without a forecast."""
        return self.growth.low, self.growth.high


def fit_report(report: Report, cost: str = "min") -> list[Fit]:
    """Return the growth of every routine with points, the costliest at ten times the size first.

    Routines that measured the program, and are not part of it, are omitted.

    `cost` says which cost of the calls of one size counts: "min", "max" or "mean". ImportError
    without numpy.
    """
    points = report.points()
    walls, units, measuring = report.walls(), report.size_units(), report.measuring_routines()
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
    largest_cost = max((fit.cost for fit in fits), default=0.0)
    largest_ahead = max((fit.at(AHEAD_FACTOR * fit.size) for fit in fits), default=0.0)
    for fit in fits:
        fit.part = fit.cost / largest_cost if largest_cost else 0.0
        fit.share = fit.at(AHEAD_FACTOR * fit.size) / largest_ahead if largest_ahead else 0.0
        ahead_share = fit.part if fit.model is None else fit.share
        fit.hurts = fit.growth.steep and ahead_share >= HURTING_SHARE
    fits.sort(key=lambda fit: (-fit.share, fit.routine))
    return fits


def _fit(
    name: str,
    points: Sequence[Point],
    cost: str,
    walls: dict[int, int],
    unit: str,
    path: tuple[int, str] | None,
) -> Fit:
    """Return the growth of a routine from its points.

    `cost` is the field of a Point to use, `walls` has wall times by size, `unit` is that of sizes.
    `path` is the size from which the routine works in another way, and the name of this way.
    """
    sizes_and_costs = [(float(point.rms), float(getattr(point, cost))) for point in points]
    size, largest_cost = points[-1].rms, sizes_and_costs[-1][1]
    growth = _growth_after_path(size, path)
    if growth is None:
        first_size = path[0] if path is not None and path[0] <= size else 0
        same_path = [pair for pair in sizes_and_costs if pair[0] >= first_size]
        scatter = scatter_of((point.min, point.mean, point.occ) for point in points)
        growth = fit_points(same_path, resolution=1.0, scatter=scatter)
    return Fit(name, growth, points, size, largest_cost, walls.get(size), unit)


def _growth_after_path(size: int, path: tuple[int, str] | None) -> Growth | None:
    """Return a growth without forecast if `path` (see `_fit`) starts near the largest size `size`.

    Else return None. Near is up to twice that size, and more than 1 / PATH_REACH of it.
    """
    if path is None or not size / PATH_REACH < path[0] <= 2 * size:
        return None
    start, path_name = path
    evidence = "no size shows" if size < start else "too few sizes show"
    return Growth(reason=f"from {start} on it has {path_name}, which {evidence}")
