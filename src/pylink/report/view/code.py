"""Shows the source page: metrics of each instruction, with its text and its source line.

A counter is a metric whose instances have addresses of instructions as ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pylink.report.api.metricname import unit
from pylink.report.model import Action, Metric, Report, Scalar, Section
from pylink.report.source.lines import SourceMap
from pylink.report.source.maps import SourceMaps
from pylink.report.view.numbers import base_text, format_value
from pylink.report.view.pages import ActionPage, action_pages

# Instructions that are shown of an action by default.
MAX_INSTRUCTIONS = 20
# Width in characters of the columns of addresses, instructions and lines together, and the least
# width of each counter's column.
INSTRUCTIONS_WIDTH, LEAST_COUNTER_WIDTH = 60, 18
# Characters between columns, which are a part of a counter's width.
COLUMN_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A counter: a metric with values by address of instruction."""

    label: str
    unit: str
    by_address: dict[int, Scalar]


def show_source(output: Console, report: Report, *, instances: bool = False) -> None:
    """Print the instructions of each action, the highest values of its first counter first.

    Without `instances`, print at most `MAX_INSTRUCTIONS` of an action.
    """
    has_source = False
    sources = SourceMaps(report)
    for page in action_pages(report):
        code = sources.of(page.action)
        columns = list(_columns(page.action, code))
        if not columns:
            continue
        has_source = True
        output.print(Text(f"[{page.index}] {page.name}", style="bold cyan"))
        addresses = _order_addresses(columns)
        shown_addresses = addresses if instances else addresses[:MAX_INSTRUCTIONS]
        fitting = _fitting_columns(columns, output.width)
        output.print(_instruction_table(code, fitting, shown_addresses))
        if len(fitting) < len(columns):
            omitted = len(columns) - len(fitting)
            output.print(
                Text(f"{omitted} more counters; a wider terminal or --csv has them", style="dim")
            )
        if len(shown_addresses) < len(addresses):
            omitted = len(addresses) - len(shown_addresses)
            output.print(Text(f"{omitted} more instructions; --instances lists them", style="dim"))
        output.print()
    if not has_source:
        output.print(Text("No counter of this report belongs to instructions."))


def source_rows(report: Report) -> Iterator[tuple[ActionPage, list[str], list[list[str]]]]:
    """Yield for each action with counters its page, their labels, and a row per instruction.

    A row has address, instruction, file, line, text of the line, and the values of the counters.
    """
    sources = SourceMaps(report)
    for page in action_pages(report):
        code = sources.of(page.action)
        columns = list(_columns(page.action, code))
        if not columns:
            continue
        rows = []
        for address in sorted({key for column in columns for key in column.by_address}):
            file, line = code.line(address) or ("", 0)
            source = [file, str(line) if file else "", code.text(address)]
            values = [base_text(column.by_address.get(address)) for column in columns]
            rows.append([hex(address), " ".join(code.sass(address).split()), *source, *values])
        yield page, [column.label for column in columns], rows


def _instruction_table(code: SourceMap, columns: list[Column], addresses: list[int]) -> Table:
    """Return a table with a row for each address."""
    table = Table(box=None, pad_edge=False)
    table.add_column("Address", no_wrap=True)
    table.add_column("Instruction", overflow="fold")
    table.add_column("Line", overflow="fold")
    source_lines = {address: code.text(address) for address in addresses}
    if any(source_lines.values()):
        table.add_column("Source", overflow="fold")
    for column in columns:
        table.add_column(
            column.label,
            justify="right",
            overflow="fold",
            min_width=LEAST_COUNTER_WIDTH - COLUMN_GAP,
        )
    for address in addresses:
        line = code.line(address)
        file_and_line = f"{PurePath(line[0]).name}:{line[1]}" if line else ""
        values = [
            format_value(column.by_address[address], column.unit)
            if address in column.by_address
            else ""
            for column in columns
        ]
        cells = [Text(" ".join(code.sass(address).split())), Text(file_and_line)]
        if any(source_lines.values()):
            cells.append(Text(source_lines[address]))
        table.add_row(hex(address), *cells, *values)
    return table


def _fitting_columns(columns: list[Column], width: int) -> list[Column]:
    """Return the first columns that fit into lines of `width` characters, at least one."""
    width_left = width - INSTRUCTIONS_WIDTH
    fitting = columns[:1]
    for column in columns[1:]:
        width_left -= LEAST_COUNTER_WIDTH
        if width_left < LEAST_COUNTER_WIDTH:
            break
        fitting.append(column)
    return fitting


def _columns(action: Action, code: SourceMap) -> Iterator[Column]:
    """Yield the counters of an action, first those that a section names in its `metrics`.

    Ids of other metrics may be numbers, too: a table of occupancy has one for each block size. If
    the report contains the code, a metric is a counter if all of its ids are addresses in the code.
    Otherwise it is one if a section names it there and its ids are numbers.
    """
    labels = _labels(action.sections)
    names = [name for name in labels if name in action.metrics]
    names += sorted(name for name in action.metrics if name not in labels)
    for name in names:
        metric = action.metrics[name]
        if _is_counter(metric, code, has_label=name in labels) and labels.get(name, name):
            values = {
                int(instance.id): instance.value
                for instance in metric.instances
                if instance.id is not None
            }
            yield Column(labels.get(name, name), unit(name), values)


def _labels(sections: list[Section]) -> dict[str, str]:
    """Return {name: label} of the counters in sections; "" for a counter that is not shown."""
    ordered = sorted(
        (section.metrics for section in sections if section.metrics is not None),
        key=lambda metrics: (metrics.order is None, metrics.order or 0),
    )
    return {metric.name: metric.label or "" for metrics in ordered for metric in metrics.metrics}


def _is_counter(metric: Metric, code: SourceMap, *, has_label: bool) -> bool:
    """Return whether a metric is a counter, whose ids are addresses of instructions.

    Without code in the report, ids that are numbers suffice if `has_label`: if a section names the
    metric as a counter.
    """
    if not metric.has_ids:
        return False
    ids = [instance.id for instance in metric.instances]
    if not code.has_code:
        return has_label and all(isinstance(number, int) for number in ids)
    return all(isinstance(number, int) and code.is_code(number) for number in ids)


def _order_addresses(columns: list[Column]) -> list[int]:
    """Return the addresses of all columns, those with the highest values in the first one first.

    Addresses with equal values are in ascending order.
    """
    addresses = {address for column in columns for address in column.by_address}

    def sort_key(address: int) -> tuple[float, int]:
        value = columns[0].by_address.get(address, 0)
        return (-value if not isinstance(value, str) else 0.0, address)

    return sorted(addresses, key=sort_key)
