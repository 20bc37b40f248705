"""Results of rules for an action: messages, focus metrics, charts, proposals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pylink.report.model.chart import (
    BarChart,
    HistogramChart,
    LineChart,
    RooflineChart,
    SourceMetricTable,
    Table,
)
from pylink.report.model.enums import MessageType, Severity
from pylink.report.model.message import Message


@dataclass(slots=True, eq=False, repr=False)
class RuleMessage(Message):
    """A message of a rule; `type` is a `MessageType`, `id` its number in the result, from 1."""

    message: str = ""
    type: int = MessageType.NONE
    id: int | None = None
    name: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class FocusMetric(Message):
    """A metric that the message `message_id` is about; `severity` is a value of `Severity`."""

    message_id: int | None = None
    metric_name: str | None = None
    metric_value: float | None = None
    severity: int | None = Severity.DEFAULT
    info: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class Proposal(Message):
    """A proposal to apply another rule, the one whose identifier is `identifier`."""

    identifier: str = ""


@dataclass(slots=True, eq=False, repr=False)
class RuleItem(Message):
    """A message with its focus metrics, a table, a chart or a proposal; other fields are empty."""

    message: RuleMessage | None = None
    table: Table | None = None
    bar_chart: BarChart | None = None
    histogram_chart: HistogramChart | None = None
    line_chart: LineChart | None = None
    proposal: Proposal | None = None
    roofline_chart: RooflineChart | None = None
    focus_metrics: list[FocusMetric] = field(default_factory=list)
    source_metric_table: SourceMetricTable | None = None


@dataclass(slots=True, eq=False, repr=False)
class RuleBody(Message):
    """The items of a rule's result, in order."""

    items: list[RuleItem] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class RuleResult(Message):
    """The outcome of one rule; without items, `body` may be None.

    `ncu` does not show a result if the action lacks the section `section_identifier`.
    """

    identifier: str = ""
    display_name: str = ""
    body: RuleBody | None = None
    section_identifier: str | None = None

    def items(self) -> list[RuleItem]:
        """Return the items of the result; empty without a body."""
        return self.body.items if self.body else []

    def messages(self) -> Iterator[tuple[RuleMessage, list[FocusMetric]]]:
        """Yield each message with its focus metrics."""
        for item in self.items():
            if item.message is not None:
                yield item.message, item.focus_metrics

    def add(self, item: RuleItem) -> None:
        """Add an item; a message without an id, and its focus metrics, get the next number."""
        if self.body is None:
            self.body = RuleBody()
        if item.message is not None and item.message.id is None:
            item.message.id = 1 + sum(item.message is not None for item in self.body.items)
            for focus in item.focus_metrics:
                focus.message_id = item.message.id
        self.body.items.append(item)
