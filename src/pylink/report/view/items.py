"""Converts items of sections and rules, such as tables and charts, to blocks to show."""

from __future__ import annotations

from pylink.report.model import (
    Action,
    BarChart,
    BodyItem,
    HistogramChart,
    LineChart,
    Order,
    RuleItem,
    Section,
    SortDirection,
    SortKey,
    SourceMetricTable,
    Table,
)
from pylink.report.sections.filters import Target
from pylink.report.sections.text import chart_metrics
from pylink.report.view import charts
from pylink.report.view.blocks import Block, Row, bars_of, rows_of

# The text for a chart that only other tools draw.
NOT_SHOWN = "not drawn here; Nsight Compute does"


def block_of(
    item: BodyItem | RuleItem, section: Section, action: Action, target: Target, title: str = ""
) -> Block | None:
    """Return the block of a table or chart; for a chart that pylink does not draw, only its name.

    `title` is the title of a chart without a label. None for an item with nothing to show.
    """
    if item.roofline_chart is not None:
        return charts.roofline(item.roofline_chart, section, action, target, title)
    chart = (
        item.table
        or item.bar_chart
        or item.line_chart
        or item.histogram_chart
        or item.source_metric_table
    )
    if chart is None:
        return _not_shown(item) if isinstance(item, BodyItem) else None
    rows = rows_of(chart_metrics(chart), section, action, target, cells=isinstance(chart, Table))
    title, caption = chart.label or title, chart.description or ""
    if isinstance(chart, LineChart):
        marked = chart.highlight_x.metrics if chart.highlight_x else ()
        return charts.line(chart, rows, rows_of(marked, section, action, target), title)
    if isinstance(chart, HistogramChart):
        return charts.histogram(chart, rows, title)
    if isinstance(chart, SourceMetricTable):
        return charts.costliest_instructions(chart, rows, title)
    rows = _sort_rows(rows, chart)
    if isinstance(chart, Table):
        by_column = chart.order == Order.COLUMN_MAJOR
        return Block(title, rows, (), chart.columns, by_column, description=caption)
    axes = (
        (chart.category_axis.label if chart.category_axis else None) or "",
        (chart.value_axis.label if chart.value_axis else None) or "",
    )
    rows_with_bars = [row for row in rows if row.number or any(value for _, value in row.instances)]
    return Block(
        title, tuple(rows_with_bars), tuple(bars_of(rows_with_bars)), axes=axes, description=caption
    )


def _not_shown(item: BodyItem) -> Block | None:
    """Return a block with the name of a widget that only other tools draw, such as of memory.

    None if the item has none.
    """
    for name in item.__slots__:
        value = getattr(item, name)
        if name not in ("filter", "horizontal_container", "unknown") and value is not None:
            caption = name.replace("_", " ").capitalize()
            row = Row(name, f"{value.label}: {caption}" if value.label else caption, NOT_SHOWN, "")
            return Block("", (row,))
    return None


def _sort_rows(rows: tuple[Row, ...], chart: Table | BarChart) -> tuple[Row, ...]:
    """Return rows in the order that a table or chart defines."""
    if chart.sort_key is None and chart.sort_direction is None:
        return rows
    descending = chart.sort_direction == SortDirection.DESCENDING
    if chart.sort_key == SortKey.BY_VALUE:
        return tuple(sorted(rows, key=lambda row: row.number or 0.0, reverse=descending))
    return tuple(sorted(rows, key=lambda row: row.label, reverse=descending))
