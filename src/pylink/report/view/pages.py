"""What is shown of a report: actions, their sections, rows of metrics, and what rules said."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pylink.report.api.metricname import unit as unit_of
from pylink.report.model import (
    Action,
    BarChart,
    BodyItem,
    FocusMetric,
    HistogramChart,
    LineChart,
    MessageType,
    Metric,
    Report,
    RuleResult,
    Scalar,
    Scope,
    Section,
    SectionMetric,
    SortDirection,
    SortKey,
    SourceMetricTable,
    Table,
)
from pylink.report.sections.apply import PATTERNS
from pylink.report.sections.filters import Target, choose, matches, target_of
from pylink.report.view.numbers import text

# How messages are marked, as in Nsight Compute.
MARKS = {
    MessageType.NONE: "",
    MessageType.OK: "INF",
    MessageType.WARNING: "WRN",
    MessageType.ERROR: "ERR",
    MessageType.OPTIMIZATION: "OPT",
}

# Nanoseconds that an action took, and at which it began.
DURATION = "link__time_duration.sum"
START = "link__start_time.min"

# Characters of a command line that are shown; that of a large link would fill the screen.
LONGEST = 160

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
    """What an action is called; ranges have no name of their own."""
    if action.scope is Scope.RANGE:
        return "range"
    return action.demangled_name or action.function_name or action.mangled_name


def phases(report: Report) -> list[Action]:
    """The actions that are phases: those with a duration, and not a comparison of two sections."""
    return [
        action
        for action in report.launches()
        if action.number(DURATION) is not None and (action.stream_name or "link") == "link"
    ]


def phase_name(action: Action) -> str:
    """What a phase is called without what it worked on."""
    return action.function_name or action_name(action)


def summary(report: Report) -> str:
    """The whole link in a sentence; empty for a report that is of no link."""
    whole = next(report.ranges(), None)
    time = None if whole is None else whole.number(DURATION)
    if whole is None or time is None:
        return ""
    words = f"The link took {text(time, 'nsecond')}"
    files, size = whole.number("file__opened.sum"), whole.number("file__bytes_read.sum")
    if files is not None and size is not None:
        words += f" for {text(files, '')} files of {text(size, 'byte')}"
    floor = whole.number("link__time_per_copy_floor.ratio")
    if floor is not None:
        words += f", {text(float(floor), '')} times what reading and writing took"
    longest = max(phases(report), key=lambda each: each.number(DURATION) or 0, default=None)
    if longest is not None:
        words += f". Its longest phase was {phase_name(longest)}"
        words += f" with {text(longest.number(DURATION), 'nsecond')}"
    return f"{words}."


def session_rows(report: Report, file: str) -> list[tuple[str, str]]:
    """Where the report comes from, as pairs of a label and text; what it does not say is absent."""
    session, process = report.session, report.process
    rows = [("Report", file)]
    if process.process_name or process.process_id:
        rows.append(("Process", f"{process.process_name or '?'} ({process.process_id})"))
    rows.append(("Host", process.hostname or ""))
    if session.creation_time is not None:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(session.creation_time))
        rows.append(("Created", moment))
    words = session.profiler_cmdline or ""
    rows.append(("Command line", words if len(words) <= LONGEST else f"{words[:LONGEST]}..."))
    rows += [(each.provider, each.version) for each in session.version_info]
    if session.host_system_info is not None:
        rows.append(("Processor", session.host_system_info.processor or ""))
    return [(label, shown) for label, shown in rows if shown]


def _action_page(index: int, action: Action) -> ActionPage:
    target = target_of(action)
    ordered = sorted(action.sections, key=lambda each: (each.order is None, each.order or 0))
    sections = [
        _section_page(section, action, target)
        for section in ordered
        if matches(None, section.filter, target)
    ]
    shown = {page.identifier for page in sections}
    alone = [each for each in action.rule_results if each.section_identifier not in shown]
    return ActionPage(index, action_name(action), action, sections, list(_said(alone)))


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
    return page


def _block(item: BodyItem, section: Section, action: Action, target: Target) -> Block | None:
    """A table or chart; what this tool does not draw, such as a roofline, is left out."""
    holder: Table | BarChart | LineChart | SourceMetricTable | HistogramChart | None = (
        item.table
        or item.bar_chart
        or item.line_chart
        or item.source_metric_table
        or item.histogram_chart
    )
    if holder is None:
        return None
    entries = [holder.metric] if isinstance(holder, HistogramChart) else holder.metrics
    rows = _rows(entries, section, action, target)
    if isinstance(holder, (Table, BarChart)):
        rows = _sorted(rows, holder)
    if isinstance(holder, Table):
        return Block(holder.label or "", rows)
    # Bars of nothing are no chart.
    return Block(holder.label or "", tuple(row for row in rows if row.number), bars=True)


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
        if chosen.name.startswith(PATTERNS):
            members = str(metric.value).split(",") if metric and metric.value else []
            rows += [_row(name, name, action.metrics.get(name)) for name in members]
        elif metric is not None or chosen.label:
            rows.append(_row(chosen.name, chosen.label or chosen.name, metric))
    return tuple(rows)


def _row(name: str, label: str, metric: Metric | None) -> Row:
    if metric is None:
        return Row(name, label, None, unit_of(name))
    return Row(name, label, metric.value, unit_of(name), instances_of(metric))


def instances_of(metric: Metric) -> tuple[tuple[str, Scalar], ...]:
    """The instances by what they belong to, or by number."""
    return tuple(
        (str(at if each.id is None else each.id), each.value)
        for at, each in enumerate(metric.instances)
    )


def largest(instances: tuple[tuple[str, Scalar], ...]) -> list[tuple[str, float]]:
    """The largest numbers first; what is beyond `MOST_BARS` comes last, as one sum."""
    numbers = [(name, float(value)) for name, value in instances if not isinstance(value, str)]
    numbers.sort(key=lambda pair: -pair[1])
    head, rest = numbers[:MOST_BARS], numbers[MOST_BARS:]
    if rest:
        head.append((f"{len(rest)} others", sum(value for _, value in rest)))
    return head


def _said(results: Iterable[RuleResult]) -> Iterator[Said]:
    for result in results:
        for message, focus in result.messages():
            mark = MARKS.get(MessageType(message.type), "") if message.type in MARKS else ""
            yield Said(result.display_name, mark, message.name or "", message.message, tuple(focus))
