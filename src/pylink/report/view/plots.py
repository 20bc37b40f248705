"""Plots as SVG or PNG, drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from warnings import catch_warnings, filterwarnings

from pylink.packages.extras import MissingPackage, install_advice

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
except ImportError as error:
    raise MissingPackage(install_advice("matplotlib", "a plot")) from error

from pylink.report.view.blocks import Plot
from pylink.report.view.numbers import format_value
from pylink.report.view.timeline import Stretch

# Colors of bars and lines. SERIES are the colors of the lines of one chart, in order.
BLUE, PALE, ORANGE, GREY = "#2f6fb2", "#8fb8e0", "#d9822b", "#8a8f98"
SERIES = (BLUE, ORANGE, "#3f9b6b", "#a05fb4", "#c2554d")


# A function from the size of the input to the cost, which was fitted to measurements.
Growth = Callable[[float], float]

# Color of text and axes. On pages, `svg` replaces it by the color of the page's text.
INK = "#010203"

# Number of curves in a row of one picture.
IN_A_ROW = 3

# Limit of the bars in a picture of several reports whose values are shown as text.
MAX_VALUES = 24

# Axes are logarithmic if sizes span more than this factor.
LOGARITHMIC_SPAN = 100.0


@dataclass(frozen=True, slots=True)
class Curve:
    """Cost against size: measured points and the model of their growth.

    `interval` is the expected range of the cost at twice the largest size; `caption` is text on the
    growth, its error and the forecast. `size_title` and `cost_title` are the titles of the axes.
    """

    title: str
    points: Sequence[tuple[float, float]]
    fit: Growth | None = None
    interval: tuple[float, float] | None = None
    caption: str = ""
    size_unit: str = "count"
    cost_unit: str = "nsecond"
    size_title: str = "size of the input"
    cost_title: str = "cost"


def timeline(stretches: Sequence[Stretch], title: str = "") -> Figure:
    """Draw the phases of a link and their steps, one below the other."""
    figure = Figure(figsize=(8, 0.5 + 0.24 * max(1, len(stretches))), layout="constrained")
    axes = figure.add_subplot()
    positions = range(len(stretches))
    axes.barh(
        list(positions),
        [stretch.duration for stretch in stretches],
        left=[stretch.start for stretch in stretches],
        height=[0.5 if stretch.is_step else 0.8 for stretch in stretches],
        color=[PALE if stretch.is_step else BLUE for stretch in stretches],
    )
    for position, stretch in enumerate(stretches):
        end = stretch.start + stretch.duration
        axes.annotate(
            format_value(stretch.duration, "nsecond"),
            (end, position),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=INK,
        )
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.set_yticks(list(positions), [stretch.name for stretch in stretches])
    axes.invert_yaxis()
    axes.set_xlabel("time since the link began", fontsize=8)
    _label_ticks(axes.xaxis, "nsecond")
    _style(axes, title)
    return figure


def bars(names: Sequence[str], series: Sequence[tuple[str, Sequence[float]]], unit: str) -> Figure:
    """Draw the values of several reports side by side.

    Each entry of `series` is a report's name and its values, one for each of `names`.
    """
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / max(1, len(series))
    colors = (GREY, BLUE, ORANGE)
    for number, (label, values) in enumerate(series):
        positions = [position + number * width for position in range(len(names))]
        drawn_bars = axes.bar(
            positions, list(values), width, label=label, color=colors[number % len(colors)]
        )
        if len(series) * len(names) <= MAX_VALUES:
            value_texts = [format_value(value, unit) for value in values]
            axes.bar_label(drawn_bars, value_texts, fontsize=6, color=INK, padding=1)
    middle = 0.4 - width / 2  # from the first bar of a group to its center
    axes.set_xticks([position + middle for position in range(len(names))], list(names))
    axes.legend(frameon=False, labelcolor=INK)
    axes.set_ylabel("wall time", fontsize=8)
    _label_ticks(axes.yaxis, unit)
    _style(axes, "")
    return figure


def ranking(
    bars: Sequence[tuple[str, float]], title: str, axis: str, unit: str = "count"
) -> Figure:
    """Draw bars, one below the other; `bars` are names and values, `axis` names the values."""
    figure = Figure(figsize=(8, 1.2 + 0.3 * max(1, len(bars))), layout="constrained")
    axes = figure.add_subplot()
    drawn_bars = axes.barh(range(len(bars)), [value for _, value in bars], color=BLUE)
    axes.bar_label(
        drawn_bars, [format_value(value, unit) for _, value in bars], fontsize=8, padding=3
    )
    axes.margins(x=0.12)
    axes.set_yticks(range(len(bars)), [name for name, _ in bars], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(axis)
    _label_ticks(axes.xaxis, unit)
    axes.set_title(title, loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def chart(plot: Plot) -> Figure:
    """Draw a chart that a section or a rule defines: lines, points and walls (vertical lines)."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    if plot.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    for number, (name, points) in enumerate(plot.lines):
        style = "-" if plot.logarithmic else "o-"
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, ys, style, color=SERIES[number % len(SERIES)], label=name, ms=4)
    for number, (name, x, y) in enumerate(plot.points):
        axes.plot([x], [y], "D", color=SERIES[-1 - number % len(SERIES)], label=name)
    for name, x in plot.walls:
        axes.axvline(x, color=GREY, ls="--", label=name or None)
    axes.set_xlabel(plot.x_title, fontsize=8)
    axes.set_ylabel(plot.y_title, fontsize=8)
    _label_ticks(axes.xaxis, plot.x_unit, logarithmic=plot.logarithmic)
    _label_ticks(axes.yaxis, plot.y_unit, logarithmic=plot.logarithmic)
    _style(axes, "")
    axes.legend(frameon=False, labelcolor=INK, fontsize=8)
    return figure


def curve(data: Curve) -> Figure:
    """Draw cost against size with the fitted growth."""
    figure = Figure(figsize=(4.4, 3.3), layout="constrained")
    _draw_curve(figure.add_subplot(), data)
    return figure


def curves(all_curves: Sequence[Curve]) -> Figure:
    """Draw all curves in one picture, three in a row."""
    rows = (len(all_curves) + IN_A_ROW - 1) // IN_A_ROW
    figure = Figure(figsize=(13, 3.3 * rows), layout="constrained")
    for number, curve in enumerate(all_curves, 1):
        _draw_curve(figure.add_subplot(rows, min(IN_A_ROW, len(all_curves)), number), curve)
    return figure


def _draw_curve(axes: Axes, curve: Curve) -> None:
    """Draw points, the fit up to twice the largest size, and the interval of the forecast."""
    points = list(curve.points)
    least_size, largest_size = min(x for x, _ in points), max(x for x, _ in points)
    logarithmic = least_size > 0 and largest_size > LOGARITHMIC_SPAN * least_size
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.plot([x for x, _ in points], [y for _, y in points], "o", color=BLUE, ms=4)
    if curve.fit is not None:
        fit = curve.fit
        sizes = [
            least_size * (2 * largest_size / least_size) ** (step / 100)
            if logarithmic
            else least_size + (2 * largest_size - least_size) * step / 100
            for step in range(101)
        ]
        measured_sizes = [size for size in sizes if size <= largest_size]
        forecast_sizes = [largest_size, *(size for size in sizes if size > largest_size)]
        axes.plot(measured_sizes, [fit(size) for size in measured_sizes], color=ORANGE, lw=1.5)
        axes.plot(
            forecast_sizes, [fit(size) for size in forecast_sizes], color=ORANGE, lw=1.5, ls=":"
        )
    if curve.interval is not None:
        axes.plot(
            [2 * largest_size, 2 * largest_size], curve.interval, color=ORANGE, lw=3, alpha=0.5
        )
    if not logarithmic:
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
    axes.set_xlabel(curve.size_title, fontsize=8)
    axes.set_ylabel(curve.cost_title, fontsize=8)
    _label_ticks(axes.xaxis, curve.size_unit, logarithmic=logarithmic)
    _label_ticks(axes.yaxis, curve.cost_unit, logarithmic=logarithmic)
    _style(axes, f"{curve.title}\n{curve.caption}" if curve.caption else curve.title)


def svg(figure: Figure, title: str, description: str) -> str:
    """Return a figure as an `<svg>` element in the page's colors, titled for screen readers.

    Equal figures give equal text.
    """
    stream = io.StringIO()
    with rc_context({"svg.hashsalt": title}):
        figure.savefig(
            stream, format="svg", metadata={"Date": None, "Creator": None}, transparent=True
        )
    document = stream.getvalue()
    element = document[document.index("<svg") :].replace(INK, "currentColor")
    start, inside = element.split(">", 1)
    labels = f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>"
    return f'{start} role="img" aria-label="{escape(title)}">\n{labels}{inside}'


def image(figure: Figure, suffix: str) -> bytes:
    """Return the bytes of the figure as `svg`, `png` or `pdf`. Equal figures give equal bytes."""
    stream = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with rc_context({"svg.hashsalt": "pylink", "svg.fonttype": "none"}), catch_warnings():
        filterwarnings("ignore", "Glyph ")  # missing glyphs are drawn as empty boxes
        figure.savefig(stream, format=suffix, dpi=150, metadata=dates.get(suffix))
    return stream.getvalue()


def _label_ticks(axis: Axis, unit: str, *, logarithmic: bool = False) -> None:
    """Label the ticks of an axis with values of a unit."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value, unit)))
    axis.set_major_locator(LogLocator(numticks=5) if logarithmic else MaxNLocator(4))
    axis.set_minor_formatter(NullFormatter())


def _style(axes: Axes, title: str) -> None:
    """Remove the frame except for the two axes, color axes and their text, and add the title."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(INK)
    axes.tick_params(labelsize=8, colors=INK)
    axes.tick_params(which="minor", colors=INK)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    if title:
        axes.set_title(title, fontsize=9, loc="left", color=INK)
