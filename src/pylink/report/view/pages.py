"""What is shown of a report: actions, their sections, rows of metrics, and what rules said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pylink.report.api.descriptions import label
from pylink.report.api.metricname import unit as unit_of
from pylink.report.model import (
    Action,
    BarChart,
    BodyItem,
    FocusMetric,
    MessageType,
    Metric,
    Report,
    RuleItem,
    RuleResult,
    Scalar,
    Scope,
    Section,
    SectionMetric,
    SortDirection,
    SortKey,
    Table,
)
from pylink.report.sections.filters import Target, choose, counts_for, matches, target_of
from pylink.report.sections.patterns import PATTERNS
from pylink.report.sections.text import chart_metrics, chart_of
from pylink.report.view.numbers import text

# How messages are marked, as in Nsight Compute.
MARKS: dict[int, str] = {
    MessageType.NONE: "",
    MessageType.OK: "INF",
    MessageType.WARNING: "WRN",
    MessageType.ERROR: "ERR",
    MessageType.OPTIMIZATION: "OPT",
}

# Nanoseconds that an action took.
DURATION = "link__time_duration.sum"

# What stands in the place of a chart that other tools draw.
NOT_SHOWN = "not drawn here; Nsight Compute does"

# Instances that a bar chart shows; the rest is summed up.
MOST_BARS = 10


@dataclass(frozen=True, slots=True)
class Row:
    """One metric: `shown` is its value with unit, N/A where it is missing."""

    name: str
    label: str
    value: Scalar | None
    unit: str
    instances: tuple[tuple[str, Scalar], ...] = ()

    @property
    def shown(self) -> str:
        return text(self.value, self.unit)

    @property
    def number(self) -> float | None:
        """The value if it is a number."""
        return None if self.value is None or isinstance(self.value, str) else float(self.value)


@dataclass(frozen=True, slots=True)
class Block:
    """Rows under a title; `bars` says that they, or their instances, are to be compared."""

    title: str
    rows: tuple[Row, ...]
    bars: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """What is compared with each other: names, numbers and their units."""

    title: str
    bars: tuple[tuple[str, float, str], ...]

    @property
    def longest(self) -> float:
        """The largest of the numbers."""
        return max(value for _, value, _ in self.bars)


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a rule: `mark` is INF, WRN, ERR, OPT or empty."""

    rule: str
    mark: str
    title: str
    text: str
    focus: tuple[FocusMetric, ...] = ()


@dataclass(slots=True)
class SectionPage:
    """A section of one action: header and bodies as blocks, then what its rules said."""

    identifier: str
    title: str
    description: str
    blocks: list[Block] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)


@dataclass(slots=True)
class ActionPage:
    """One action; `said` holds what rules without a section said."""

    index: int
    name: str
    action: Action
    sections: list[SectionPage]
    said: list[Said]

    def all_said(self) -> Iterator[Said]:
        """What rules said, those of sections first."""
        for section in self.sections:
            yield from section.said
        yield from self.said


def action_pages(report: Report) -> list[ActionPage]:
    """All actions of a report, in file order."""
    return [_action_page(index, action) for index, action in enumerate(report.actions)]


def action_name(action: Action) -> str:
    """What an action is called; ranges have no name of their own, that of a link is the link."""
    if action.scope is Scope.RANGE:
        return "range" if action.number(DURATION) is None else "whole link"
    return action.demangled_name or action.function_name or action.mangled_name


def _action_page(index: int, action: Action) -> ActionPage:
    target = target_of(action)
    ordered = sorted(action.sections, key=lambda each: (each.order is None, each.order or 0))
    sections = [
        _section_page(section, action, target) for section in ordered if counts_for(section, target)
    ]
    sections = _extended(sections, {each.identifier: each.extends for each in ordered})
    shown = {page.identifier for page in sections}
    alone = [each for each in action.rule_results if each.section_identifier not in shown]
    return ActionPage(index, action_name(action), action, sections, list(_said(alone)))


def _extended(pages: list[SectionPage], extends: dict[str, str | None]) -> list[SectionPage]:
    """The pages, those of sections that extend a shown one as further parts of it."""
    by_identifier = {page.identifier: page for page in pages}
    kept = []
    for page in pages:
        base = by_identifier.get(extends[page.identifier] or "")
        if base is None or base is page or extends[base.identifier]:
            kept.append(page)
            continue
        for block in page.blocks:
            title = f"{page.title}: {block.title}" if block.title else page.title
            base.blocks.append(Block(title, block.rows, block.bars))
        base.said += page.said
    return kept


def _section_page(section: Section, action: Action, target: Target) -> SectionPage:
    page = SectionPage(section.identifier, section.display_name, section.description or "")
    if section.header is not None:
        rows = _rows(section.header.metrics, section, action, target)
        if rows:
            page.blocks.append(Block("", rows))
    for item in section.items():
        if matches(item.filter, section.filter, target):
            block = _block(item, section, action, target)
            if block is not None and block.rows:
                page.blocks.append(block)
    mine = [each for each in action.rule_results if each.section_identifier == section.identifier]
    page.said = list(_said(mine))
    for result in mine:
        page.blocks += _rule_blocks(result, action, target)
    return page


def _block(item: BodyItem, section: Section, action: Action, target: Target) -> Block | None:
    """A table or chart; of what this tool does not draw, such as a roofline, the name is shown."""
    chart = chart_of(item)
    if chart is None:
        return _not_shown(item)
    rows = _rows(chart_metrics(chart), section, action, target)
    if isinstance(chart, (Table, BarChart)):
        rows = _sorted(rows, chart)
    if isinstance(chart, Table):
        return Block(chart.label or "", rows)
    # Bars of nothing are no chart.
    compared = tuple(row for row in rows if row.number or any(value for _, value in row.instances))
    return Block(chart.label or "", compared, bars=True)


def _not_shown(item: BodyItem | RuleItem) -> Block | None:
    """Names a chart that only other tools draw."""
    for name in ("roofline_chart", "memory_chart", "nv_link_topology", "nv_link_tables", "numa"):
        found = getattr(item, name, None)
        if found is not None:
            words = name.replace("_", " ").capitalize()
            title = getattr(found, "label", None) or getattr(found, "title", None) or ""
            shown = Row("", f"{title}: {words}" if title else words, NOT_SHOWN, "")
            return Block("", (shown,))
    return None


def _rule_blocks(result: RuleResult, action: Action, target: Target) -> Iterator[Block]:
    """The tables and charts that a rule added."""
    nowhere = Section(identifier="")
    for item in result.items():
        chart = item.table or item.bar_chart or item.line_chart or item.histogram_chart
        if chart is None:
            block = _not_shown(item)
        else:
            rows = _rows(chart_metrics(chart), nowhere, action, target)
            is_table = isinstance(chart, Table)
            label = getattr(chart, "label", None) or getattr(chart, "title", None) or ""
            block = Block(label or result.display_name, rows, bars=not is_table)
        if block is not None and block.rows:
            yield block


def _sorted(rows: tuple[Row, ...], holder: Table | BarChart) -> tuple[Row, ...]:
    if holder.sort_key is None and holder.sort_direction is None:
        return rows
    descending = holder.sort_direction == SortDirection.DESCENDING
    if holder.sort_key == SortKey.BY_VALUE:
        return tuple(sorted(rows, key=lambda row: row.number or 0.0, reverse=descending))
    return tuple(sorted(rows, key=lambda row: row.label, reverse=descending))


def _rows(
    entries: Iterable[SectionMetric], section: Section, action: Action, target: Target
) -> tuple[Row, ...]:
    """A row per metric; a pattern becomes a row for each metric that it stands for."""
    rows: list[Row] = []
    for entry in entries:
        chosen = choose(entry, section, target)
        if chosen is None:
            continue
        metric = action.metrics.get(chosen.name)
        if entry.show_instances and not (metric and metric.instances):
            continue  # the parts are what is asked for, and this action has the total alone
        if chosen.name.startswith(PATTERNS):
            members = str(metric.value).split(",") if metric and metric.value else []
            rows += [row_of(name, label(name), action.metrics.get(name)) for name in members]
        elif metric is not None or chosen.label:
            rows.append(row_of(chosen.name, chosen.label or label(chosen.name), metric))
    return tuple(rows)


def row_of(name: str, label: str, metric: Metric | None) -> Row:
    """The row of a metric; None for one that is missing."""
    if metric is None:
        return Row(name, label, None, unit_of(name))
    return Row(name, label, metric.value, unit_of(name), instances_of(metric))


def instances_of(metric: Metric) -> tuple[tuple[str, Scalar], ...]:
    """The instances by what they belong to, or by number."""
    return tuple(
        (str(at if each.id is None else each.id), each.value)
        for at, each in enumerate(metric.instances)
    )


def bars_of(block: Block) -> Iterator[Bars]:
    """The instances of each row, under its label, then the rows without any, beside each other."""
    alone = []
    for row in block.rows:
        parts = largest(row.instances)
        if parts:
            yield Bars(row.label, tuple((name, value, row.unit) for name, value in parts))
        elif row.number is not None:
            alone.append((row.label, row.number, row.unit))
    if alone:
        yield Bars("", tuple(alone))


def largest(instances: tuple[tuple[str, Scalar], ...]) -> list[tuple[str, float]]:
    """The largest numbers first; what is beyond `MOST_BARS` comes last, as one sum."""
    numbers = [(name, float(value)) for name, value in instances if not isinstance(value, str)]
    numbers.sort(key=lambda pair: -pair[1])
    head, rest = numbers[:MOST_BARS], numbers[MOST_BARS:]
    if rest:
        others = "1 other" if len(rest) == 1 else f"{len(rest)} others"
        head.append((others, sum(value for _, value in rest)))
    return head


def _said(results: Iterable[RuleResult]) -> Iterator[Said]:
    for result in results:
        for message, focus in result.messages():
            mark = MARKS.get(message.type, "")
            yield Said(result.display_name, mark, message.name or "", message.message, tuple(focus))
