"""The source page: what was counted at each instruction, with its text and its source line."""

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
from pylink.report.view.numbers import base_text, text
from pylink.report.view.pages import ActionPage, action_pages

# Instructions that are shown of an action unless all are asked for.
MOST = 20
# Characters that addresses, instructions and lines need, and the least that a counter needs.
INSTRUCTIONS, NARROWEST = 60, 18


@dataclass(frozen=True, slots=True)
class Column:
    """A metric with a value for each of some addresses."""

    label: str
    unit: str
    by_address: dict[int, Scalar]


def show_source(out: Console, report: Report, *, instances: bool = False) -> None:
    """For each action, the instructions with the highest counters first."""
    has_source = False
    sources = SourceMaps(report)
    for page in action_pages(report):
        code = sources.of(page.action)
        columns = list(_columns(page.action, code))
        if not columns:
            continue
        has_source = True
        out.print(Text(f"[{page.index}] {page.name}", style="bold cyan"))
        addresses = _ordered(columns)
        shown = addresses if instances else addresses[:MOST]
        fitting = _fitting(columns, out.width)
        out.print(_table(code, fitting, shown))
        if len(fitting) < len(columns):
            rest = len(columns) - len(fitting)
            out.print(
                Text(f"{rest} more counters; a wider terminal or --csv has them", style="dim")
            )
        if len(shown) < len(addresses):
            rest = len(addresses) - len(shown)
            out.print(Text(f"{rest} more instructions; --instances lists them", style="dim"))
        out.print()
    if not has_source:
        out.print(Text("No counter of this report belongs to instructions."))


def source_rows(report: Report) -> Iterator[tuple[ActionPage, list[str], list[list[str]]]]:
    """For each action with source counters: its page, the headings, and a row per instruction."""
    sources = SourceMaps(report)
    for page in action_pages(report):
        code = sources.of(page.action)
        columns = list(_columns(page.action, code))
        if not columns:
            continue
        rows = []
        for address in sorted({at for column in columns for at in column.by_address}):
            file, line = code.line(address) or ("", 0)
            place = [file, str(line) if file else "", code.text(address)]
            values = [base_text(column.by_address.get(address)) for column in columns]
            rows.append([hex(address), " ".join(code.sass(address).split()), *place, *values])
        yield page, [column.label for column in columns], rows


def _table(code: SourceMap, columns: list[Column], addresses: list[int]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Address", no_wrap=True)
    table.add_column("Instruction", overflow="fold")
    table.add_column("Line", overflow="fold")
    texts = {address: code.text(address) for address in addresses}
    if any(texts.values()):
        table.add_column("Source", overflow="fold")
    for column in columns:
        table.add_column(column.label, justify="right", overflow="fold", min_width=NARROWEST - 2)
    for address in addresses:
        line = code.line(address)
        place = f"{PurePath(line[0]).name}:{line[1]}" if line else ""
        values = [
            text(column.by_address[address], column.unit) if address in column.by_address else ""
            for column in columns
        ]
        cells = [Text(" ".join(code.sass(address).split())), Text(place)]
        if any(texts.values()):
            cells.append(Text(texts[address]))
        table.add_row(hex(address), *cells, *values)
    return table


def _fitting(columns: list[Column], width: int) -> list[Column]:
    """The first columns that leave room for the instructions; a heading may take two lines."""
    width_left = width - INSTRUCTIONS
    fitting = columns[:1]
    for column in columns[1:]:
        width_left -= NARROWEST
        if width_left < NARROWEST:
            break
        fitting.append(column)
    return fitting


def _columns(action: Action, code: SourceMap) -> Iterator[Column]:
    """The metrics whose instances are addresses, those that sections name first and as they do.

    Instances of other metrics are numbered, too: a table of occupancy has one for each block size.
    Where the report has the code, addresses are those in it; else sections name source counters.
    """
    labels = _labels(action.sections)
    names = [name for name in labels if name in action.metrics]
    names += sorted(name for name in action.metrics if name not in labels)
    for name in names:
        metric = action.metrics[name]
        if _is_by_address(metric, code, named=name in labels) and labels.get(name, name):
            values = {int(each.id): each.value for each in metric.instances if each.id is not None}
            yield Column(labels.get(name, name), unit(name), values)


def _labels(sections: list[Section]) -> dict[str, str]:
    """How sections label their source counters; "" for one that is collected and not shown."""
    ordered = sorted(
        (each.metrics for each in sections if each.metrics is not None),
        key=lambda each: (each.order is None, each.order or 0),
    )
    return {metric.name: metric.label or "" for each in ordered for metric in each.metrics}


def _is_by_address(metric: Metric, code: SourceMap, *, named: bool) -> bool:
    if not metric.has_ids:
        return False
    places = [each.id for each in metric.instances]
    if not code.has_code:
        return named and all(isinstance(place, int) for place in places)
    return all(isinstance(place, int) and code.is_code(place) for place in places)


def _ordered(columns: list[Column]) -> list[int]:
    """The addresses of all columns, by what the first has for them and then in code order."""
    addresses = {address for column in columns for address in column.by_address}

    def place(address: int) -> tuple[float, int]:
        value = columns[0].by_address.get(address, 0)
        return (-value if not isinstance(value, str) else 0.0, address)

    return sorted(addresses, key=place)
