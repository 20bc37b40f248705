"""Creates blocks of charts other than bars: lines, histograms, rooflines, instructions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pylink.report.model import (
    Action,
    HistogramChart,
    LineChart,
    RooflineChart,
    RooflineValue,
    Section,
    SectionMetric,
    SourceMetricTable,
)
from pylink.report.sections.filters import Target, choose_metric
from pylink.report.view.blocks import Bars, Block, Plot, Row, largest
from pylink.report.view.numbers import format_value, scale_value
from pylink.terminal.numbers import share_text

# Default numbers of bins of a histogram, and of instructions for each metric of a source table.
BINS, LINES = 10, 5

# A roof, the limit of work for each intensity (work divided by traffic), bends at its ridge. It is
# drawn from LEFT_OF_RIDGE to RIGHT_OF_RIDGE times the intensity of the ridge.
LEFT_OF_RIDGE, RIGHT_OF_RIDGE = 0.01, 100.0


def line(chart: LineChart, rows: Sequence[Row], marked: Sequence[Row], title: str) -> Block:
    """Return the block of a line chart: a line per row through its instances.

    The ids of instances are on the x axis if they are numbers, else their positions. `marked` are
    values on that axis to highlight.
    """
    lines, bars = [], []
    for row in rows:
        points = sorted(_points(row))
        lines.append((row.label, tuple(points)))
        if points:
            named_points = tuple((f"{x:g}", y, row.unit) for x, y in points)
            bars.append(Bars(row.label, named_points))
    x_title = (chart.axis_x.label if chart.axis_x else None) or "instance"
    y_title = (chart.axis_y.label if chart.axis_y else None) or ""
    walls = tuple((row.label, row.number) for row in marked if row.number is not None)
    units = {row.unit for row in rows}
    plot = Plot(
        title,
        x_title,
        y_title,
        tuple(line for line in lines if line[1]),
        walls=walls,
        y_unit=units.pop() if len(units) == 1 else "count",
    )
    return Block(
        title,
        tuple(rows),
        tuple(bars),
        axes=(x_title, y_title),
        description=chart.description or "",
        plot=plot if plot.lines else None,
    )


def _points(row: Row) -> list[tuple[float, float]]:
    """Return pairs (id, value) of a row's instances; (position, value) unless ids are numbers."""
    numbers = [(name, float(value)) for name, value in row.instances if not isinstance(value, str)]
    try:
        return [(float(name), value) for name, value in numbers]
    except ValueError:
        return [(float(position), value) for position, (_, value) in enumerate(numbers)]


def histogram(chart: HistogramChart, rows: Sequence[Row], title: str) -> Block:
    """Return the block of a histogram, with bars for each row.

    If all ids are whole numbers, a bin is a range of ids and shows the sum of their values.
    Otherwise a bin is a range of values and shows the number of instances in it.
    """
    axis = chart.histogram_axis
    bin_count = max(int((axis.bin_count if axis else None) or BINS), 1)
    axes = (
        (axis.label if axis else None) or "",
        (chart.value_axis.label if chart.value_axis else None) or "",
    )
    bars = []
    for row in rows:
        values = [float(value) for _, value in row.instances if not isinstance(value, str)]
        if not values:
            continue
        if all(name.removeprefix("-").isdigit() for name, _ in row.instances):
            binned = _bin_points(_points(row), bin_count, "", row.unit)
        else:
            binned = _bin_points([(value, 1.0) for value in values], bin_count, row.unit, "count")
        bars.append(Bars(row.label, binned))
    return Block(title, tuple(rows), tuple(bars), axes=axes, description=chart.description or "")


def _bin_points(
    points: Sequence[tuple[float, float]], bin_count: int, unit: str, sum_unit: str
) -> tuple[tuple[str, float, str], ...]:
    """Return the bars for the sum of amounts in each bin; `points` are (position, amount).

    `unit` is that of positions, and `sum_unit` that of amounts.
    """
    least_position, most_position = (
        min(position for position, _ in points),
        max(position for position, _ in points),
    )
    if least_position == most_position:
        return (
            (format_value(least_position, unit), sum(amount for _, amount in points), sum_unit),
        )
    bin_width = (most_position - least_position) / bin_count
    bin_sums = [0.0] * bin_count
    for position, amount in points:
        bin_sums[min(int((position - least_position) / bin_width), bin_count - 1)] += amount
    bin_edges = [least_position + bin_width * number for number in range(bin_count)] + [
        most_position
    ]
    return tuple(
        (f"{format_value(start, unit)} to {format_value(end, unit)}", amount, sum_unit)
        for (start, end), amount in zip(pairwise(bin_edges), bin_sums, strict=True)
    )


def costliest_instructions(chart: SourceMetricTable, rows: Sequence[Row], title: str) -> Block:
    """Return a block that names, by address, the instructions at which each metric is highest."""
    bars = []
    for row in rows:
        largest_values, rest_text = largest(row.instances, row.unit, chart.rows or LINES)
        named_values = tuple(
            (f"{int(name):#x}" if name.isdigit() else name, value, row.unit)
            for name, value in largest_values
        )
        if named_values:
            bars.append(Bars(row.label, named_values, rest_text))
    axes = ("instruction", "")
    return Block(title, tuple(rows), tuple(bars), axes=axes, description=chart.description or "")


def roofline(
    chart: RooflineChart, section: Section, action: Action, target: Target, title: str
) -> Block | None:
    """Return the block of a roofline chart: its roofs, and achieved work in percent of them.

    Intensity is work divided by traffic. A roof is the limit of work: up to its ridge, the peak of
    traffic times intensity, and beyond it the peak of work. None if no value is known.
    """

    def value(definition: RooflineValue) -> float | None:
        """Return the number that a definition stands for; None if it is unknown."""
        return _evaluate(definition, section, action, target)

    x_title = (chart.axis_intensity.label if chart.axis_intensity else None) or "intensity"
    y_title = (chart.axis_work.label if chart.axis_work else None) or "work"
    rows: list[Row] = []
    lines, points = [], []
    roofs: list[tuple[float, float]] = []  # peaks of work and of traffic
    for roof in chart.rooflines:
        work, traffic = value(roof.peak_work), value(roof.peak_traffic)
        if not work or not traffic:
            continue
        name = (roof.options.label if roof.options else None) or "Roof"
        ridge = work / traffic
        roofs.append((work, traffic))
        ends = (LEFT_OF_RIDGE * ridge, ridge, RIGHT_OF_RIDGE * ridge)
        lines.append((name, tuple((x, min(work, x * traffic)) for x in ends)))
        rows.append(
            _text_row(name, f"{_short_number(work)} from an intensity of {_short_number(ridge)} on")
        )
    for achieved in chart.achieved_values:
        work, traffic = value(achieved.achieved_work), value(achieved.achieved_traffic)
        if work is None or not traffic:
            continue
        name = (achieved.options.label if achieved.options else None) or "Achieved"
        intensity = work / traffic
        points.append((name, intensity, work))
        peaks = [min(peak_work, intensity * rate) for peak_work, rate in roofs]
        shares = ", ".join(share_text(work, peak, 1) for peak in peaks if peak)
        point_text = f"{_short_number(work)} at an intensity of {_short_number(intensity)}"
        rows.append(
            _text_row(name, f"{point_text}, {shares} of the roofs" if shares else point_text)
        )
    if not rows:
        return None
    walls = tuple(
        ((wall.options.label if wall.options else None) or "", position)
        for wall in chart.walls
        if (position := value(wall.value))
    )
    block_title = chart.label or title or "Roofline"
    plot = Plot(block_title, x_title, y_title, tuple(lines), tuple(points), walls, logarithmic=True)
    return Block(
        block_title,
        tuple(rows),
        axes=(x_title, y_title),
        description=chart.description or "",
        plot=plot,
    )


def _text_row(name: str, row_text: str) -> Row:
    """Return a row of a roofline chart with a text in place of a value."""
    return Row("roofline", name, row_text, "")


def _short_number(value: float) -> str:
    """Return a number with three digits and a prefix such as k."""
    amount, prefix = scale_value(value, "count")
    return f"{amount:.3g}{f' {prefix}' if prefix else ''}"


def _evaluate(
    definition: RooflineValue, section: Section, action: Action, target: Target
) -> float | None:
    """Return the number that a definition stands for; None if the action lacks a metric for it.

    For a value per second, this is the sum of its metrics per cycle, times cycles per second.
    """
    if definition.metric is not None:
        return _metric_number(definition.metric, section, action, target)
    rate = definition.value_cycles_per_second_expression
    if rate is None:
        return definition.constant
    values_per_cycle = [
        _metric_number(value_per_cycle_metric, section, action, target)
        for value_per_cycle_metric in rate.value_per_cycle_metrics
    ]
    if rate.cycles_per_second_metric is None:
        return None
    cycles = _metric_number(rate.cycles_per_second_metric, section, action, target)
    known_values = [number for number in values_per_cycle if number is not None]
    return (
        None
        if cycles is None or len(known_values) < len(values_per_cycle)
        else sum(known_values) * cycles
    )


def _metric_number(
    metric: SectionMetric, section: Section, action: Action, target: Target
) -> float | None:
    """Return the value of the metric that is shown on the target; None if the action lacks it."""
    chosen = choose_metric(metric, section, target)
    number = None if chosen is None else action.number(chosen.name)
    return None if number is None else float(number)
