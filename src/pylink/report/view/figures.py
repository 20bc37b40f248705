"""Draws the plots of reports: all plots of a page, or one picture.

Growth reports are reports of --profile-aprof: the cost of routines at several sizes of the input.
"""

from __future__ import annotations

from collections.abc import Sequence

from pylink import aprof
from pylink.aprof import Fit
from pylink.diagnostics.paths import shortener
from pylink.report.errors import ReportError
from pylink.report.model import Report
from pylink.report.view import plots
from pylink.report.view.blocks import Plot
from pylink.report.view.markup import Figures
from pylink.report.view.overview import phase_actions, phase_name
from pylink.report.view.pages import DURATION
from pylink.report.view.runs import sizes_and_times
from pylink.report.view.timeline import stretches
from pylink.terminal.progress import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Limit of the routines with plots: those that will cost most at ten times the size. A routine must
# have been measured with at least LEAST_POINTS sizes.
MAX_CURVES = 12
LEAST_POINTS = 3

NS_PER_US = 1000.0


def plot(
    reports: Sequence[tuple[str, Report]], growth: Sequence[tuple[str, aprof.Report]], suffix: str
) -> bytes:
    """Return the bytes of one picture, in the format `suffix`, such as "png".

    It shows the phases of several reports side by side, the timeline of a single report, or without
    reports, curves of the first growth report that has any. The reports are pairs (name, report).
    ReportError if there is nothing to draw.
    """
    if len(reports) > 1:
        return plots.image(_draw_phase_bars(reports), suffix)
    if reports:
        return plots.image(plots.timeline(stretches(reports[-1][1])), suffix)
    for _, report in growth:
        curves = _growth_curves(report)
        if curves:
            return plots.image(plots.curves(curves), suffix)
    raise ReportError("there is nothing to plot")


def draw(
    reports: Sequence[tuple[str, Report]],
    growth: Sequence[tuple[str, aprof.Report]],
    progress: Progress | None = None,
) -> Figures:
    """Return the plots of a page; `progress` advances at each growth curve."""
    figures = Figures()
    if len(reports) > 1:
        figures.comparison = plots.svg(
            _draw_phase_bars(reports), "Phases compared", "The time of each phase in each report."
        )
        points = sizes_and_times(report for _, report in reports)
        if len({size for size, _ in points}) > 1:
            run_curve = plots.Curve(
                "Time of the link",
                sorted(points),
                size_unit="byte",
                size_title="bytes read",
                cost_title="wall time",
            )
            figures.growth = plots.svg(
                plots.curve(run_curve),
                run_curve.title,
                "Time against bytes read, a point per report.",
            )
    for _, report in growth:
        for curve in _growth_curves(report):
            if progress is not None:
                progress.advance(text=curve.title)
            title, caption = (
                f"Cost of {curve.title}",
                f"Cost against size of input: {curve.caption}.",
            )
            figures.costs.append(plots.svg(plots.curve(curve), title, caption))
    return figures


def chart(plot: Plot) -> str:
    """Return a chart of a section or rule as an `<svg>` element."""
    caption = f"{plot.y_title} against {plot.x_title}".strip()
    return plots.svg(plots.chart(plot), plot.title or caption, caption)


def _draw_phase_bars(reports: Sequence[tuple[str, Report]]) -> Figure:
    """Draw bars of the phases of several reports, a group for each phase."""
    names = list(
        dict.fromkeys(
            phase_name(phase_action)
            for _, report in reports
            for phase_action in phase_actions(report)
        )
    )
    series = []
    shorten = shortener(name for name, _ in reports)
    for name, report in reports:
        times = {
            phase_name(phase_action): phase_action.number(DURATION) or 0
            for phase_action in phase_actions(report)
        }
        series.append((shorten(name), [float(times.get(phase, 0)) for phase in names]))
    return plots.bars(names, series, "nsecond")


def _growth_curves(report: aprof.Report) -> list[plots.Curve]:
    """Return the curves of the costliest routines; costs are nanoseconds, or blocks executed."""
    is_time = report.metric == aprof.TIME_USEC
    scale = NS_PER_US if is_time else 1.0
    fits = [fit for fit in aprof.fit_report(report) if len(fit.points) >= LEAST_POINTS]
    return [
        plots.Curve(
            fit.routine,
            [(float(point.rms), point.min * scale) for point in fit.points],
            None if fit.model is None else _scale_growth(fit, scale),
            _expected_range(fit, scale),
            _describe_fit(fit),
            size_unit="byte" if fit.size_unit == "bytes" else "count",
            cost_unit="nsecond" if is_time else "count",
            size_title=f"input [{fit.size_unit or 'size'}]",
            cost_title="processor time of a call" if is_time else "cost of a call [blocks]",
        )
        for fit in fits[:MAX_CURVES]
    ]


def _expected_range(fit: Fit, scale: float) -> tuple[float, float] | None:
    """Return the range of the cost at twice the largest size; None if the fit has no forecast.

    `scale` is the factor from the unit of the fit to that of the plot.
    """
    low, high = fit.interval
    return (low * fit.cost * scale, high * fit.cost * scale) if high > 1 else None


def _describe_fit(fit: Fit) -> str:
    """Return a text on the growth, its error and the cost of twice the size."""
    low, high = fit.interval
    if fit.model is None:
        return f"no model: {fit.growth.reason}"
    return (
        f"{fit.model}, {fit.error:.1%} off; twice the size costs x {fit.twice:.1f} "
        f"({low:.1f} to {high:.1f})"
    )


def _scale_growth(fit: Fit, scale: float) -> plots.Growth:
    """Return the function of a fit, with costs multiplied by `scale`."""
    return lambda size: fit.at(size) * scale
