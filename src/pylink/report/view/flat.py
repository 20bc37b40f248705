"""Writes a report for programs: CSV by metric or by action, and JSON with all data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pylink.report.api.metricname import unit
from pylink.report.model import Report, Scope
from pylink.report.view.blocks import Block, instances_of
from pylink.report.view.code import source_rows
from pylink.report.view.markup import strip_markup
from pylink.report.view.numbers import base_text
from pylink.report.view.overview import session_rows, summary
from pylink.report.view.pages import ActionPage, RuleMessage, action_pages
from pylink.terminal.tables import csv_text, json_text

DETAILS_HEAD = (
    "ID", "Name", "Section", "Metric Name", "Metric Label", "Metric Unit", "Metric Value",
    "Rule Name", "Rule Type", "Rule Message",
)  # fmt: skip


def details_csv(report: Report) -> str:
    """Return CSV: a line per metric of each section, and per message of a rule.

    Values are not scaled: bytes and nanoseconds, for example.
    """
    rows: list[Sequence[object]] = [DETAILS_HEAD]
    for page in action_pages(report):
        cells: list[list[str]] = []
        for section in page.sections:
            cells += _metric_cells(section.blocks, section.title)
            cells += _message_cells(section.messages, section.title)
        cells += [*_metric_cells(page.blocks, ""), *_message_cells(page.messages, "")]
        rows += ([page.index, page.name, *row] for row in cells)
    return csv_text(rows)


def _metric_cells(blocks: Iterable[Block], section: str) -> Iterator[list[str]]:
    """Yield the cells of each metric's line, except the first two, ID and name of the action."""
    for block in blocks:
        for row in block.rows:
            if row.name:
                value = "n/a" if row.value is None else base_text(row.value)
                yield [section, row.name, row.label or block.title, row.unit, value, "", "", ""]


def _message_cells(messages: Iterable[RuleMessage], section: str) -> Iterator[list[str]]:
    """Yield the cells of each message's line, except the first two, ID and name of the action."""
    for message in messages:
        yield [section, "", "", "", "", message.rule, message.mark, strip_markup(message.text)]


def raw_csv(report: Report) -> str:
    """Return CSV: a line per action and a column per metric; the second line has the units."""
    names = sorted({name for action in report.actions for name in action.metrics})
    rows: list[Sequence[object]] = [["ID", "Name", *names], ["", "", *map(unit, names)]]
    for page in action_pages(report):
        rows.append(
            [page.index, page.name, *(base_text(page.action.value(name)) for name in names)]
        )
    return csv_text(rows)


def source_csv(report: Report) -> str:
    """Return CSV: a line per instruction for which a metric has a value, with source and values.

    The lines of each action have a line of headings above them.
    """
    rows: list[Sequence[object]] = []
    for page, labels, instruction_rows in source_rows(report):
        rows.append(["ID", "Name", "Address", "Instruction", "File", "Line", "Source", *labels])
        rows += ([page.index, page.name, *row] for row in instruction_rows)
    return csv_text(rows)


def session_csv(report: Report, file: str) -> str:
    """Return CSV: a line for each known fact on the report's origin, such as host and command."""
    text = summary(report)
    comments = [("Summary", text)] if text else []
    return csv_text([("Name", "Value"), *comments, *session_rows(report, file, in_full=True)])


def as_json(report: Report) -> str:
    """Return JSON: a summary, the session; metrics, sections and rule messages of all actions."""
    session, process = report.session, report.process
    document = {
        "summary": summary(report),
        "process": {"id": process.process_id, "name": process.process_name},
        "host": process.hostname,
        "created": session.creation_time,
        "command_line": session.profiler_cmdline,
        "versions": {version.provider: version.version for version in session.version_info},
        "actions": [_action_json(page) for page in action_pages(report)],
    }
    return json_text(document)


def _action_json(page: ActionPage) -> dict[str, object]:
    """Return the JSON object of an action."""
    action = page.action
    return {
        "id": page.index,
        "name": page.name,
        "range": action.scope is Scope.RANGE,
        "metrics": {
            name: {
                "value": action.metrics[name].value,
                "unit": unit(name),
                "instances": [list(pair) for pair in instances_of(action.metrics[name])],
            }
            for name in sorted(action.metrics)
        },
        "sections": [
            {
                "identifier": section.identifier,
                "title": section.title,
                "metrics": [row.name for block in section.blocks for row in block.rows if row.name],
            }
            for section in page.sections
        ],
        "rules": [
            {
                "rule": message.rule,
                "type": message.mark,
                "title": message.title,
                "message": strip_markup(message.text),
                "metrics": {focus.metric_name or "": focus.metric_value for focus in message.focus},
            }
            for message in page.all_messages()
        ],
    }
