"""A report for programs: CSV by metric or by action, and JSON with all of it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator

from pylink.report.api.metricname import unit
from pylink.report.model import Report, Scope
from pylink.report.view.blocks import Block, instances_of
from pylink.report.view.code import source_rows
from pylink.report.view.markup import plain
from pylink.report.view.numbers import base_text
from pylink.report.view.overview import session_rows, summary
from pylink.report.view.pages import ActionPage, Said, action_pages

DETAILS = (
    "ID",
    "Name",
    "Section",
    "Metric Name",
    "Metric Label",
    "Metric Unit",
    "Metric Value",
    "Rule Name",
    "Rule Type",
    "Rule Message",
)


def details_csv(report: Report) -> str:
    """A line per metric of each section, and per message of a rule; values in base units."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(DETAILS)
    for page in action_pages(report):
        for section in page.sections:
            for cells in _metric_cells(section.blocks, section.title):
                writer.writerow([page.index, page.name, *cells])
            for cells in _said_cells(section.said, section.title):
                writer.writerow([page.index, page.name, *cells])
        for cells in (*_metric_cells(page.blocks, ""), *_said_cells(page.said, "")):
            writer.writerow([page.index, page.name, *cells])
    return out.getvalue()


def _metric_cells(blocks: Iterable[Block], section: str) -> Iterator[list[str]]:
    for block in blocks:
        for row in block.rows:
            if row.name:
                value = "n/a" if row.value is None else base_text(row.value)
                yield [section, row.name, row.label or block.title, row.unit, value, "", "", ""]


def _said_cells(said: Iterable[Said], section: str) -> Iterator[list[str]]:
    for one in said:
        yield [section, "", "", "", "", one.rule, one.mark, plain(one.text)]


def raw_csv(report: Report) -> str:
    """A line per action and a column per metric; the second line has the units."""
    names = sorted({name for action in report.actions for name in action.metrics})
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["ID", "Name", *names])
    writer.writerow(["", "", *map(unit, names)])
    for page in action_pages(report):
        values = [base_text(page.action.value(name)) for name in names]
        writer.writerow([page.index, page.name, *values])
    return out.getvalue()


def source_csv(report: Report) -> str:
    """A line per instruction that counters point at: where it is, its source, its counts."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for page, labels, rows in source_rows(report):
        writer.writerow(["ID", "Name", "Address", "Instruction", "File", "Line", "Source", *labels])
        for row in rows:
            writer.writerow([page.index, page.name, *row])
    return out.getvalue()


def session_csv(report: Report, file: str) -> str:
    """A line per fact about where the report comes from."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["Name", "Value"])
    words = summary(report)
    if words:
        writer.writerow(["Summary", words])
    writer.writerows(session_rows(report, file, whole=True))
    return out.getvalue()


def as_json(report: Report) -> str:
    """The link in a sentence, the session, and of every action its metrics with instances,
    sections and rule messages.
    """
    session, process = report.session, report.process
    document = {
        "summary": summary(report),
        "process": {"id": process.process_id, "name": process.process_name},
        "host": process.hostname,
        "created": session.creation_time,
        "command_line": session.profiler_cmdline,
        "versions": {each.provider: each.version for each in session.version_info},
        "actions": [_action_json(page) for page in action_pages(report)],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _action_json(page: ActionPage) -> dict[str, object]:
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
                "rule": said.rule,
                "type": said.mark,
                "title": said.title,
                "message": plain(said.text),
                "metrics": {focus.metric_name or "": focus.metric_value for focus in said.focus},
            }
            for said in page.all_said()
        ],
    }
