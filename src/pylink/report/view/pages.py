"""Prepares the contents of a report to show: actions, sections, rows of metrics, messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from pylink.report.api.descriptions import label
from pylink.report.api.metricname import unit
from pylink.report.model import Action, FocusMetric, MessageType, Report, RuleResult, Scope, Section
from pylink.report.rules.frontend import SPEEDUP_METRIC
from pylink.report.sections.filters import Target, counts_for, matches, target_of
from pylink.report.view.blocks import Block, rows_of
from pylink.report.view.items import block_of
from pylink.report.view.numbers import format_value

# The marks of messages, as in Nsight Compute.
MARKS: dict[int, str] = {
    MessageType.NONE: "",
    MessageType.OK: "INF",
    MessageType.WARNING: "WRN",
    MessageType.ERROR: "ERR",
    MessageType.OPTIMIZATION: "OPT",
}

# The label of SPEEDUP_METRIC, which is shown beside a message with an estimate.
ESTIMATE = "Estimated speedup"

# The metric with the nanoseconds that an action took.
DURATION = "link__time_duration.sum"


@dataclass(frozen=True, slots=True)
class RuleMessage:
    """A message of a rule; `mark` shows its type: INF, WRN, ERR, OPT or empty.

    `rule` is the name of the rule, `focus` has the metrics that the message is about.
    """

    rule: str
    mark: str
    title: str
    text: str
    focus: tuple[FocusMetric, ...] = ()


@dataclass(slots=True)
class SectionPage:
    """A section of one action: header and bodies as blocks, then messages of its rules."""

    identifier: str
    title: str
    description: str
    blocks: list[Block] = field(default_factory=list)
    messages: list[RuleMessage] = field(default_factory=list)


@dataclass(slots=True)
class ActionPage:
    """One action; `messages` and `blocks` come from rules whose section the page does not have.

    `index` is the index of the action in the report, from 0.
    """

    index: int
    name: str
    action: Action
    sections: list[SectionPage]
    messages: list[RuleMessage]
    blocks: list[Block] = field(default_factory=list)

    def all_messages(self) -> Iterator[RuleMessage]:
        """Yield the messages of rules, those of sections first."""
        for section in self.sections:
            yield from section.messages
        yield from self.messages


def action_pages(report: Report) -> list[ActionPage]:
    """Return a page for each action of a report, in file order."""
    return [_action_page(index, action) for index, action in enumerate(report.actions)]


def action_name(action: Action) -> str:
    """Return the name of an action: for a range, "whole link" if it has a time, else "range"."""
    if action.scope is Scope.RANGE:
        return "range" if action.number(DURATION) is None else "whole link"
    return action.demangled_name or action.function_name or action.mangled_name


def _action_page(index: int, action: Action) -> ActionPage:
    """Return the page of an action, whose index in the report is `index`."""
    target = target_of(action)
    ordered = sorted(
        action.sections, key=lambda section: (section.order is None, section.order or 0)
    )
    sections = [
        _section_page(section, action, target) for section in ordered if counts_for(section, target)
    ]
    shown_identifiers = {page.identifier for page in sections}
    _make_titles_unique(sections)
    sections = _merge_extensions(
        sections, {section.identifier: section.extends for section in ordered}
    )
    results_without_section = [
        rule_result
        for rule_result in action.rule_results
        if rule_result.section_identifier not in shown_identifiers
    ]
    blocks = [
        block
        for result in results_without_section
        for block in _rule_blocks(result, action, target)
    ]
    return ActionPage(
        index,
        action_name(action),
        action,
        sections,
        list(_messages(results_without_section)),
        blocks,
    )


def _make_titles_unique(pages: list[SectionPage]) -> None:
    """Add the identifier to titles that several sections of an action share."""
    counts = Counter(page.title for page in pages)
    for page in pages:
        if counts[page.title] > 1:
            page.title = f"{page.title} ({page.identifier})"


def _merge_extensions(
    pages: list[SectionPage], extends: dict[str, str | None]
) -> list[SectionPage]:
    """Merge the page of each section that extends another one into that section's page.

    `extends` has for each section the identifier of the section that it extends, or None. A page
    stays as it is if that section is not shown, or extends another one itself.
    """
    by_identifier = {page.identifier: page for page in pages}
    merged = []
    for page in pages:
        base = by_identifier.get(extends[page.identifier] or "")
        if base is None or base is page or extends[base.identifier]:
            merged.append(page)
            continue
        for block in page.blocks:
            title = f"{page.title}: {block.title}" if block.title else page.title
            base.blocks.append(replace(block, title=title))
        base.messages += page.messages
    return merged


def _section_page(section: Section, action: Action, target: Target) -> SectionPage:
    """Return the page of a section: its blocks, and messages and blocks of its rules."""
    page = SectionPage(section.identifier, section.display_name, section.description or "")
    if section.header is not None:
        rows = rows_of(section.header.metrics, section, action, target)
        if rows:
            page.blocks.append(Block("", rows))
    for item in section.items():
        if matches(item.filter, section.filter, target):
            block = block_of(item, section, action, target)
            if block is not None and (block.rows or block.bars):
                page.blocks.append(block)
    results = [
        rule_result
        for rule_result in action.rule_results
        if rule_result.section_identifier == section.identifier
    ]
    page.messages = list(_messages(results))
    for result in results:
        page.blocks += _rule_blocks(result, action, target)
    return page


def _rule_blocks(result: RuleResult, action: Action, target: Target) -> Iterator[Block]:
    """Yield the tables and charts that a rule added."""
    for item in result.items():
        block = block_of(item, Section(identifier=""), action, target, result.display_name)
        if block is not None and (block.rows or block.bars):
            yield block


def _messages(results: Iterable[RuleResult]) -> Iterator[RuleMessage]:
    """Yield the messages of rules."""
    for result in results:
        for message, focus in result.messages():
            mark = MARKS.get(message.type, "")
            yield RuleMessage(
                result.display_name, mark, message.name or "", message.message, tuple(focus)
            )


def focus_text(metric: FocusMetric) -> str:
    """Return a text on a metric that a message is about: label, value, and what the rule says."""
    name = metric.metric_name or ""
    caption = ESTIMATE if name == SPEEDUP_METRIC else label(name)
    if metric.metric_value is not None:
        caption += f": {format_value(metric.metric_value, unit(name))}"
    return f"{caption} ({metric.info})" if metric.info else caption
