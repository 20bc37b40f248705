"""The contents of a section: rows of metrics, tables, and the bars of charts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pylink.report.api.descriptions import label
from pylink.report.api.metricname import fill_label
from pylink.report.api.metricname import unit as unit_of
from pylink.report.model import Action, Metric, Scalar, Section, SectionMetric
from pylink.report.sections.filters import Target, choose_metric
from pylink.report.sections.patterns import PATTERNS
from pylink.report.view.numbers import format_value, spread_of

# Limit of the bars of a chart; a sentence summarizes the others.
MAX_BARS = 10


# The unit at the end of the title of an axis.
UNIT = re.compile(r"\s*\[[^]]*\]$")


@dataclass(frozen=True, slots=True)
class Row:
    """One metric; its `unit` is a name such as `byte`.

    A row without a name is an empty cell of a table.
    """

    name: str
    label: str
    value: Scalar | None
    unit: str
    instances: tuple[tuple[str, Scalar], ...] = ()

    @property
    def value_text(self) -> str:
        """The value with its unit, N/A without a value; "" in an empty cell."""
        return format_value(self.value, self.unit) if self.name or self.value is not None else ""

    @property
    def number(self) -> float | None:
        """The value if it is a number."""
        return None if self.value is None or isinstance(self.value, str) else float(self.value)


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars to compare: names, numbers and their units; `rest` is a sentence on omitted bars."""

    title: str
    bars: tuple[tuple[str, float, str], ...]
    rest: str = ""

    @property
    def longest(self) -> float:
        """The largest of the numbers."""
        return max(value for _, value, _ in self.bars)


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart with two axes of numbers: named lines, single points and vertical walls.

    Units are names as in metrics, such as `byte`; `count` stands for no unit.
    """

    title: str
    x_title: str
    y_title: str
    lines: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    points: tuple[tuple[str, float, float], ...] = ()
    walls: tuple[tuple[str, float], ...] = ()
    logarithmic: bool = False
    x_unit: str = "count"
    y_unit: str = "count"


@dataclass(frozen=True, slots=True)
class Block:
    """Rows under a title, `columns` beside each other; with `bars`, these are shown instead.

    `axes` are the titles of the category and of the value of bars. `plot` shows the same as a
    drawing, if that is possible.
    """

    title: str
    rows: tuple[Row, ...] = ()
    bars: tuple[Bars, ...] = ()
    columns: int = 1
    by_column: bool = False
    axes: tuple[str, str] = ("", "")
    description: str = ""
    plot: Plot | None = None

    @property
    def measure(self) -> str:
        """The axis titles without units as a line above the bars: `Time by Phase`."""
        category, value = (UNIT.sub("", axis) for axis in self.axes)
        return f"{value} by {category}" if category and value else value or category

    def cells(self, limit: int) -> Iterator[list[Row]]:
        """Yield the lines of the table, with `columns` columns, at most `limit`."""
        columns = max(min(self.columns, limit), 1)
        lines = -(-len(self.rows) // columns)
        for line in range(lines):
            if self.by_column:
                yield list(self.rows[line::lines])
            else:
                yield list(self.rows[line * columns : (line + 1) * columns])


def rows_of(
    entries: Iterable[SectionMetric],
    section: Section,
    action: Action,
    target: Target,
    *,
    cells: bool = False,
) -> tuple[Row, ...]:
    """Return a row per metric; a pattern becomes a row for each metric that matches it.

    With `cells`, entries without a label or a metric are empty cells.
    """
    rows: list[Row] = []
    for entry in entries:
        chosen = choose_metric(entry, section, target)
        if chosen is None:
            continue
        if cells and (not chosen.name or chosen.label == ""):
            rows.append(Row("", "", None, ""))
            continue
        metric = action.metrics.get(chosen.name)
        if entry.show_instances and not (metric and metric.instances):
            continue  # instances are requested, but this action only has the total
        if chosen.name.startswith(PATTERNS):
            members = str(metric.value).split(",") if metric and metric.value else []
            rows += [
                row_of(name, _member_label(chosen.label, name), action.metrics.get(name))
                for name in members
            ]
        elif chosen.label == "":  # the title of the chart is the label
            rows.append(row_of(chosen.name, "", metric))
        elif metric is not None or chosen.label:
            caption = fill_label(chosen.label, chosen.name) if chosen.label else label(chosen.name)
            rows.append(row_of(chosen.name, caption, metric))
    return tuple(rows)


def _member_label(template: str | None, name: str) -> str:
    """Return the label of a metric that matches a pattern.

    The template is the label of the pattern, so all metrics that match it share the template.
    """
    if not template:
        return label(name)
    filled = fill_label(template, name)
    return filled if filled != template else f"{template} ({label(name)})"


def row_of(name: str, label: str, metric: Metric | None) -> Row:
    """Return the row of a metric, or a row without a value if the metric is missing."""
    if metric is None:
        return Row(name, label, None, unit_of(name))
    return Row(name, label, metric.value, unit_of(name), instances_of(metric))


def instances_of(metric: Metric) -> tuple[tuple[str, Scalar], ...]:
    """Return the instances with their ids as text, or with their numbers if they have no ids."""
    return tuple(
        (str(number if instance.id is None else instance.id), instance.value)
        for number, instance in enumerate(metric.instances)
    )


def bars_of(rows: Iterable[Row]) -> Iterator[Bars]:
    """Yield bars of each row's instances, then bars of the rows without instances."""
    single_bars = []
    for row in rows:
        numbers, rest_text = largest(row.instances, row.unit)
        if numbers:
            bars = tuple((name, value, row.unit) for name, value in numbers)
            yield Bars(row.label, bars, rest_text)
        elif row.number is not None:
            single_bars.append((row.label, row.number, row.unit))
    if single_bars:
        yield Bars("", tuple(single_bars))


def largest(
    instances: tuple[tuple[str, Scalar], ...], unit: str
) -> tuple[list[tuple[str, float]], str]:
    """Return the `MAX_BARS` largest numbers, and a sentence on the others if there are more."""
    numbers = [(name, float(value)) for name, value in instances if not isinstance(value, str)]
    numbers.sort(key=lambda pair: -pair[1])
    if len(numbers) <= MAX_BARS:
        return numbers, ""
    return numbers[:MAX_BARS], spread_of([value for _, value in numbers], MAX_BARS, unit)
