"""Plots as SVG or PNG, drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

try:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator
except ImportError as error:
    raise ImportError(
        "plots need the matplotlib package: run `pip install 'pylink[plot]'`", name=error.name
    ) from error

from pylink.report.view.numbers import text

BLUE, ORANGE, GREY = "#2f6fb2", "#d9822b", "#8a8f98"


@dataclass(frozen=True, slots=True)
class Stretch:
    """One bar of a timeline; times in nanoseconds."""

    name: str
    start: float
    duration: float


Growth = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Curve:
    """Cost against size: measured points, and the fitted growth with its name."""

    title: str
    points: Sequence[tuple[float, float]]
    fit: Growth | None = None
    growth: str = ""
    size_unit: str = "count"
    cost_unit: str = "nsecond"


def timeline(stretches: Sequence[Stretch], title: str = "") -> Figure:
    """The phases of a link, one below the other."""
    figure = Figure(figsize=(8, 0.5 + 0.32 * max(1, len(stretches))), layout="constrained")
    axes = figure.add_subplot()
    places = range(len(stretches))
    axes.barh(
        list(places),
        [each.duration for each in stretches],
        left=[each.start for each in stretches],
        color=BLUE,
    )
    axes.set_yticks(list(places), [each.name for each in stretches])
    axes.invert_yaxis()
    _format(axes.xaxis, "nsecond")
    _trim(axes, title)
    return figure


def bars(names: Sequence[str], series: Sequence[tuple[str, Sequence[float]]], unit: str) -> Figure:
    """Values of several reports side by side, a group per name."""
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / max(1, len(series))
    colors = (GREY, BLUE, ORANGE)
    for at, (label, values) in enumerate(series):
        places = [place + at * width for place in range(len(names))]
        axes.bar(places, list(values), width, label=label, color=colors[at % len(colors)])
    middle = 0.4 - width / 2
    axes.set_xticks([place + middle for place in range(len(names))], list(names))
    axes.legend(frameon=False)
    _format(axes.yaxis, unit)
    _trim(axes, "")
    return figure


def curve(one: Curve) -> Figure:
    """Cost against size with the fitted growth."""
    figure = Figure(figsize=(4, 3), layout="constrained")
    _draw_curve(figure.add_subplot(), one)
    return figure


def curves(several: Sequence[Curve]) -> Figure:
    """All curves in one picture, three in a row."""
    rows = (len(several) + 2) // 3
    figure = Figure(figsize=(12, 3 * rows), layout="constrained")
    for at, one in enumerate(several, 1):
        _draw_curve(figure.add_subplot(rows, min(3, len(several)), at), one)
    return figure


def _draw_curve(axes: Axes, one: Curve) -> None:
    axes.plot([x for x, _ in one.points], [y for _, y in one.points], "o", color=BLUE, ms=4)
    if one.fit is not None and one.points:
        low, high = min(x for x, _ in one.points), max(x for x, _ in one.points)
        sizes = [low + (high - low) * step / 100 for step in range(101)]
        costs = [one.fit(size) for size in sizes]
        axes.plot(sizes, costs, color=ORANGE, lw=1.5, label=one.growth)
        axes.legend(frameon=False, loc="upper left")
    axes.set_ylim(bottom=0)
    _format(axes.xaxis, one.size_unit)
    _format(axes.yaxis, one.cost_unit)
    _trim(axes, one.title)


def svg(figure: Figure) -> str:
    """The figure as an `<svg>` element; equal figures give equal text."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    drawn = out.getvalue()
    return drawn[drawn.index("<svg") :]


def image(figure: Figure, suffix: str) -> bytes:
    """The figure as a file: suffix `svg` or `png`."""
    out = io.BytesIO()
    figure.savefig(out, format=suffix, dpi=150)
    return out.getvalue()


def _format(axis: Axis, unit: str) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value, unit)))
    axis.set_major_locator(MaxNLocator(5))


def _trim(axes: Axes, title: str) -> None:
    """No frame but the two axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    if title:
        axes.set_title(title, fontsize=9, loc="left")
