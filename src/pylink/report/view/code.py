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


@dataclass(frozen=True, slots=True)
class Column:
    """A metric with a value for each of some addresses."""

    label: str
    unit: str
    by_address: dict[int, Scalar]


def show_source(out: Console, report: Report, *, instances: bool = False) -> None:
    """Of each action the instructions that its counters point at, the highest counts first."""
    found = False
    sources = SourceMaps(report)
    for page in action_pages(report):
        columns = list(_columns(page.action))
        if not columns:
            continue
        found = True
        out.print(Text(f"[{page.index}] {page.name}", style="bold cyan"))
        addresses = _ordered(columns)
        shown = addresses if instances else addresses[:MOST]
        out.print(_table(sources.of(page.action), columns, shown))
        if len(shown) < len(addresses):
            rest = len(addresses) - len(shown)
            out.print(Text(f"{rest} more instructions; --instances lists them", style="dim"))
        out.print()
    if not found:
        out.print(Text("No counter of this report belongs to instructions."))


def source_rows(report: Report) -> Iterator[tuple[ActionPage, list[str], list[list[str]]]]:
    """Of each action with source counters: its page, the headings, and a row per instruction."""
    sources = SourceMaps(report)
    for page in action_pages(report):
        columns = list(_columns(page.action))
        if not columns:
            continue
        code = sources.of(page.action)
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
        table.add_column(column.label, justify="right", overflow="fold")
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


def _columns(action: Action) -> Iterator[Column]:
    """The metrics whose instances are addresses, those that sections name first and as they do."""
    labels = _labels(action.sections)
    names = [name for name in labels if name in action.metrics]
    names += sorted(name for name in action.metrics if name not in labels)
    for name in names:
        metric = action.metrics[name]
        if _is_by_address(metric) and labels.get(name, name):
            values = {int(each.id): each.value for each in metric.instances if each.id is not None}
            yield Column(labels.get(name, name), unit(name), values)


def _labels(sections: list[Section]) -> dict[str, str]:
    """How sections label their source counters; "" for one that is collected and not shown."""
    ordered = sorted(
        (each.metrics for each in sections if each.metrics is not None),
        key=lambda each: (each.order is None, each.order or 0),
    )
    return {one.name: one.label or "" for each in ordered for one in each.metrics}


def _is_by_address(metric: Metric) -> bool:
    return metric.has_ids and all(isinstance(each.id, int) for each in metric.instances)


def _ordered(columns: list[Column]) -> list[int]:
    """The addresses of all columns, by what the first has for them and then in code order."""
    addresses = {address for column in columns for address in column.by_address}

    def place(address: int) -> tuple[float, int]:
        value = columns[0].by_address.get(address, 0)
        return (-value if not isinstance(value, str) else 0.0, address)

    return sorted(addresses, key=place)
