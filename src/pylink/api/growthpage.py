"""A growth as HTML for notebooks: points and curve, drawn without any package."""

from __future__ import annotations

from html import escape
from math import log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.api.tables import GrowthRow
    from pylink.tabular.table import Table

    Curve = Sequence[tuple[float, float]]

# Pixels: width and height of the drawing, and width of its margin, where the captions stand.
WIDTH, HEIGHT, MARGIN = 420, 220, 28
# Number of straight segments of the curve.
STEPS = 60
# Largest number of points that are drawn.
MOST_POINTS = 500


def growth_html(
    caption: str, fit: str, table: Table[GrowthRow], curve: Curve, names: tuple[str, str]
) -> str:
    """Return HTML of the sentence `caption`, a drawing, the text `fit` on the model, and the rows.

    `curve` has pairs of a size and the model's cost for it. `names` are the names of sizes and of
    costs, with their units. Without rows the result is only the sentence.
    """
    if not table:
        return f"<p>{escape(caption)}</p>"
    return (
        f"<p>{escape(caption)}</p>{_drawing(table[:MOST_POINTS], curve, names)}"
        f"<p>{escape(fit)}</p>{table._repr_html_()}"
    )


def _drawing(rows: Table[GrowthRow], curve: Curve, names: tuple[str, str]) -> str:
    """Return an SVG drawing of costs over sizes, both logarithmic, with the curve of the model."""
    sizes = [row.size for row in rows] + [size for size, _ in curve]
    costs = [row.cost for row in rows] + [cost for _, cost in curve]
    horizontal = _Axis(sizes, MARGIN, WIDTH - MARGIN)
    vertical = _Axis(costs, HEIGHT - MARGIN, MARGIN)
    points = "".join(
        f"<circle cx='{horizontal.at(row.size):.1f}' cy='{vertical.at(row.cost):.1f}' r='3' "
        f"fill='{'currentColor' if row.used else 'none'}' stroke='currentColor'/>"
        for row in rows
    )
    line = " ".join(f"{horizontal.at(size):.1f},{vertical.at(cost):.1f}" for size, cost in curve)
    size, cost = map(escape, names)
    caption = (
        (MARGIN, HEIGHT - 8, "start", f"{size} {min(sizes):g}"),
        (WIDTH - MARGIN, HEIGHT - 8, "end", f"{max(sizes):g}"),
        (MARGIN, 14, "start", f"{cost} {min(costs):.3g} to {max(costs):.3g}"),
    )
    texts = "".join(
        f"<text x='{x}' y='{y}' text-anchor='{anchor}' font-size='11' fill='currentColor'>"
        f"{text}</text>"
        for x, y, anchor, text in caption
    )
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' role='img'>"
        f"<title>{cost} over {size}</title>"
        f"<polyline points='{line}' fill='none' stroke='#4a90d9' stroke-width='2'/>"
        f"{points}{texts}</svg>"
    )


class _Axis:
    """A logarithmic axis of `values` from pixel `start` to pixel `end`."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        self._least = log(min(values))
        self._span = log(max(values)) - self._least or 1.0
        self._start, self._end = start, end

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        return self._start + (self._end - self._start) * (log(value) - self._least) / self._span
