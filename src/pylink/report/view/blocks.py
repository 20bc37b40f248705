"""Creates the contents of a section to show: rows of metrics, tables, and the bars of charts."""

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


# The unit at the end of an axis's title, such as " [ms]".
UNIT = re.compile(r"\s*\[[^]]*\]$")


@dataclass(frozen=True, slots=True)
class Row:
    """One metric; its `unit` is a name such as `byte`, `instances` are pairs of id and value.

    If `name` is "", the row is an empty cell of a table.
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
    """Bars to compare, each a name, a number and its unit; `rest` is a sentence on omitted bars."""

    title: str
    bars: tuple[tuple[str, float, str], ...]
    rest: str = ""

    @property
    def longest(self) -> float:
        """The largest of the numbers."""
        return max(value for _, value, _ in self.bars)


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart with two axes of numbers: named lines, single points and walls, i.e. vertical lines.

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
    """A table or chart to show: a title, and rows, or bars in place of the rows.

    Rows fill a table of `columns` columns line by line, or with `by_column` column by column.
    `axes` are the titles of the bars' names and of their values. `plot`, if not None, is the
    chart to draw where drawings are possible.
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
        """The titles of the axes as one line, without units, such as `Time by Phase`."""
        category, value = (UNIT.sub("", axis) for axis in self.axes)
        return f"{value} by {category}" if category and value else value or category

    def cells(self, limit: int) -> Iterator[list[Row]]:
        """Yield the rows of each line of the table, at most `limit` beside each other."""
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

    `entries` are metrics of a section. Those that are not for the target have no row, nor have
    those without a label that the action lacks. With `cells`, an entry with an empty name or label
    is an empty cell of a table.
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
    """Return the label of the metric `name`, which matches a pattern whose label is `template`.

    Placeholders in the template are filled in. If it has none, the metric's label is added to it.
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
    """Return pairs (id as text, value) of the instances; an index from 0 replaces a missing id."""
    return tuple(
        (str(number if instance.id is None else instance.id), instance.value)
        for number, instance in enumerate(metric.instances)
    )


def bars_of(rows: Iterable[Row]) -> Iterator[Bars]:
    """Yield bars of the instances of each row, then bars of all rows without instances."""
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
    instances: tuple[tuple[str, Scalar], ...], unit: str, count: int = MAX_BARS
) -> tuple[list[tuple[str, float]], str]:
    """Return the `count` largest of pairs (id, value), and a sentence on the others, or ""."""
    numbers = [(name, float(value)) for name, value in instances if not isinstance(value, str)]
    numbers.sort(key=lambda pair: -pair[1])
    if len(numbers) <= count:
        return numbers, ""
    return numbers[:count], spread_of([value for _, value in numbers], count, unit)
