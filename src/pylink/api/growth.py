"""Fits of `pylink.aprof` on columns of any table: the growth of a cost with a size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean
from typing import Protocol

from pylink.api.tables import GrowthRow
from pylink.aprof.fit import fit_points, scatter_of
from pylink.aprof.shapes import is_between, value_at
from pylink.tabular.table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    class Columns(Protocol):
        """An object with columns by name: a mapping, a data frame, an Arrow table."""

        def __getitem__(self, name: str, /) -> Any: ...


@dataclass(frozen=True, slots=True, repr=False)
class Growth:
    """The growth of a cost with a size, or the reason why the points do not show it."""

    model: str | None
    """The growth for large sizes, such as `n log n`, `n^2` or `n^1.1`; None: no model."""
    reason: str
    """Why there is no model; empty with a model."""
    terms: tuple[tuple[str, float], ...]
    """The functions of the fitted sum with their factors; empty without a model."""
    error: float
    """The root of the mean squared relative error of the fit."""
    scatter: float
    """The relative error of a cost that the fit assumes; a model's error is compared with it."""
    twice: float | None
    """The cost at twice the largest size, as a multiple of the cost there; None without a model."""
    interval: tuple[float, float] | None
    """The interval that holds `twice` with nine chances in ten; None without a forecast."""
    since: float
    """The smallest size for which the model holds."""
    steep: bool
    """Whether the cost certainly grows faster than n log n."""
    table: Table[GrowthRow]
    """A row for each size, with the cost of the model."""
    names: tuple[str, str] = ("size", "cost")
    """The names of sizes and costs, with their units."""

    @property
    def formula(self) -> str:
        """The sum that was fitted, such as `2.1 + 0.34 n`; empty without a model."""
        return " + ".join(
            f"{factor:.4g}" if name == "constant" else f"{factor:.4g} {name}"
            for name, factor in self.terms
        )

    def at(self, size: float) -> float:
        """Return the model's cost for a size; ValueError without a model."""
        if self.model is None:
            raise ValueError(f"there is no model: {self.reason}")
        return value_at(size, self.terms)

    def __str__(self) -> str:
        """Return the growth as a sentence."""
        size, cost = self.names
        between = ""
        if self.interval is not None:
            low, high = self.interval
            between = f", between x {low:.2f} and x {high:.2f}"
        if self.model is None:
            text = f"No model of {cost} over {size}: {self.reason}"
            return f"{text}; twice the size costs{between[1:]}" if between else text
        about = "about " if is_between(self.model) else ""
        since = f" from {self.since:g} on" if self.since > self.table[0].size else ""
        return (
            f"{cost} grows like {about}{self.model}, n being {size}{since}: "
            f"twice the size costs x {self.twice:.2f}{between}"
        )

    def __repr__(self) -> str:
        fit = "" if self.model is None else f"; error {self.error:.1%}, scatter {self.scatter:.1%}"
        return f"<Growth: {self}{fit}; {len(self.table)} sizes>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the sentence, points with the curve, the rows."""
        from pylink.api.growthpage import STEPS, growth_html

        curve = []
        fit = ""
        if self.model is not None:
            first, last = max(self.table[0].size, self.since), self.table[-1].size
            sizes = [first * (last / first) ** (step / STEPS) for step in range(STEPS + 1)]
            curve = [(size, self.at(size)) for size in sizes]
            fit = (
                f"{self.formula}: {self.error:.1%} off; "
                f"costs of one size lie {self.scatter:.1%} apart"
            )
        return growth_html(str(self), fit, self.table, curve, self.names)


def growth(
    sizes: Iterable[float] | Table[Any] | Columns,
    costs: Iterable[float] | None = None,
    *,
    size: str | None = None,
    cost: str | None = None,
    scatter: float | None = None,
    resolution: float = 0.0,
) -> Growth:
    """Fit the growth of costs with sizes, or find that the points do not show it.

        pylink.growth([1000, 2000, 4000, 8000, 16000], [1.1, 2.0, 4.1, 8.0, 16.3])
        pylink.growth(results.table, size="inputs", cost="seconds")

    Takes two sequences of equal length, or a table and the names of two columns: a `Table`, a
    mapping, a data frame, an Arrow table. Values that are not positive are ignored. The least of
    several costs of a size counts, because disturbances only make a measurement longer. `scatter`
    is the relative error of costs (default: from several costs of one size); `resolution` is the
    unit to which costs were rounded. docs/growth.md explains when there is a model: it needs at
    least five sizes, the largest 3.8 times the smallest.

    Raises ImportError without numpy, TypeError for other arguments, ValueError for a missing column
    and for sequences of different lengths.
    """
    if costs is None:
        if size is None or cost is None:
            raise TypeError("growth takes sizes and costs, or a table with size= and cost=")
        names = _column_title(sizes, size), _column_title(sizes, cost)
        sizes, costs = _column(sizes, size), _column(sizes, cost)
    elif size is not None or cost is not None:
        raise TypeError("size= and cost= name columns of a table; two sequences have none")
    else:
        names = "size", "cost"
    if not isinstance(sizes, Iterable):
        raise TypeError(f"sizes is a sequence of numbers, not {type(sizes).__name__}")
    by_size = _group_costs(list(map(float, sizes)), list(map(float, costs)))
    if scatter is None:
        scatter = scatter_of((min(group), mean(group), len(group)) for group in by_size.values())
    points = [
        (point_size, min(costs_of_size)) for point_size, costs_of_size in sorted(by_size.items())
    ]
    fit = fit_points(points, resolution=resolution, scatter=scatter)
    terms = tuple((name, float(factor)) for name, factor in fit.terms) if fit.model else ()
    rows = []
    for point_size, least in points:
        fitted = value_at(point_size, terms) if fit.model else None
        rows.append(
            GrowthRow(
                point_size,
                least,
                len(by_size[point_size]),
                fitted,
                None if not fitted else least / fitted - 1,
                fit.model is not None
                and point_size >= fit.since
                and point_size not in fit.outliers,
            )
        )
    return Growth(
        fit.model,
        fit.reason,
        terms,
        float(fit.error) if fit.model else 0.0,
        float(fit.scatter),
        float(fit.twice) if fit.model else None,
        (float(fit.low), float(fit.high)) if fit.high > 1 else None,
        float(fit.since),
        bool(fit.steep),
        Table(GrowthRow, rows),
        names,
    )


def _column(table: Any, name: str) -> list[float]:
    """Return the numbers of a column; None becomes 0, which fits ignore."""
    try:
        column = table.column(name) if isinstance(table, Table) else table[name]
    except (KeyError, IndexError) as error:
        raise ValueError(f"the table has no column {name!r}") from error
    values = column.to_pylist() if hasattr(column, "to_pylist") else column
    return [0.0 if value is None else float(value) for value in values]


def _column_title(table: object, name: str) -> str:
    """Return a column's name with its unit."""
    unit = table.units.get(name) if isinstance(table, Table) else None
    return name if unit is None or unit == name else f"{name} ({unit})"


def _group_costs(sizes: list[float], costs: list[float]) -> dict[float, list[float]]:
    """Return the costs by size, without pairs in which the size or the cost is not positive."""
    if len(sizes) != len(costs):
        raise ValueError(f"there are {len(sizes)} sizes and {len(costs)} costs")
    groups: dict[float, list[float]] = {}
    for size, cost in zip(sizes, costs, strict=True):
        if size > 0 and cost > 0:
            groups.setdefault(size, []).append(cost)
    return groups
