"""Reads section files: one `ProfilerSection` each, in protobuf's text format.

Error messages are in the words of `ncu`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from google.protobuf import text_format
from google.protobuf.message import Message as ProtobufMessage

from pylink.report.errors import ReportError
from pylink.report.file.conversion import to_model
from pylink.report.model import (
    BarChart,
    BodyItem,
    HistogramChart,
    LineChart,
    RuleItem,
    Section,
    SectionMetric,
    SourceMetricTable,
    Table,
)
from pylink.report.proto.messages import ProfilerSection, RuleResultBodyItem
from pylink.report.sections.patterns import REGEX, compile_expression

Chart: TypeAlias = Table | BarChart | LineChart | SourceMetricTable | HistogramChart

SUFFIX = ".section"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Error messages of protobuf's Python parser, and the wording of ncu for each.
WORDINGS = (
    (r"Enum type \"[\w.]+\" has no value named (\w+)", r'Unknown enumeration value of "\1".'),
    (
        r"Message type \"[\w.]+\" should not have multiple (\"\w+\") fields",
        r"Non-repeated field \1 is specified multiple times.",
    ),
    (r"Value out of range: (-)", r"Expected integer, got: \1"),
    (r"String missing ending quote", "String literals cannot cross line boundaries."),
    (r"Expected \"[}>]\"", "Expected identifier, got: "),
    (r"(Message type \"[\w.]+\" has no field named \"\w+\"\.)", r"\1"),
    (r"(Expected .*)", r"\1"),
    (r"(Couldn't parse .*)", r"\1"),
)


class SectionError(ReportError):
    """An invalid section file; `line` counts from 1, `column` from 0; 0/0 is unknown."""

    def __init__(self, file: str, line: int, column: int, reason: str) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.reason = reason
        super().__init__(f"{file}: {self.list_text}")

    @property
    def list_text(self) -> str:
        """The error as `--list-sections` shows it beside the file."""
        return f"Error: Line={self.line} Column={self.column} {self.reason}"


def read_section(file: Path) -> Section:
    """Read a section file; SectionError, or OSError if it cannot be read."""
    return parse_section(file.read_bytes(), str(file))


def parse_section(data: bytes, file: str) -> Section:
    """Parse the contents `data` of a section file; SectionError names `file` and the position."""
    message = ProfilerSection()
    _parse(data, message, file)
    if not message.Identifier or message.Identifier.split() != [message.Identifier]:
        reason = f'Identifier "{message.Identifier}" is empty or has blanks in it'
        raise SectionError(file, 0, 0, reason)
    section = to_model(message, Section, keeps_unknown=False)
    for metric in section_metrics(section):
        _check_expression(metric, file)
    return section


def parse_chart(data: bytes, file: str) -> RuleItem:
    """Parse a file with one chart or table, which a rule adds to its result."""
    message = RuleResultBodyItem()
    _parse(data, message, file)
    return to_model(message, RuleItem, keeps_unknown=False)


def section_metrics(section: Section) -> list[SectionMetric]:
    """Return the metrics of a section: of the header, of tables and charts, then those not shown.

    Metrics of rooflines and widgets are not among them. A metric may be a pattern that stands for
    several.
    """
    metrics = list(section.header.metrics) if section.header else []
    for item in section.items():
        metrics += chart_metrics(_chart_of(item))
    return metrics + (section.metrics.metrics if section.metrics else [])


def _chart_of(item: BodyItem) -> Chart | None:
    """Return the table or chart of an item; None if it is of a kind without a list of metrics."""
    return (
        item.table
        or item.bar_chart
        or item.line_chart
        or item.source_metric_table
        or item.histogram_chart
    )


def chart_metrics(chart: Chart | None) -> list[SectionMetric]:
    """Return the metrics of a table or chart."""
    if isinstance(chart, HistogramChart):
        return [chart.metric]
    return [] if chart is None else chart.metrics


def _parse(data: bytes, message: ProtobufMessage, file: str) -> None:
    """Parse a text into a message; SectionError like ncu's."""
    if data.startswith(BYTE_ORDER_MARK):
        raise SectionError(file, 1, 0, "Interpreting non ascii code point 239.")
    try:
        text_format.Parse(data.decode(), message)
    except text_format.ParseError as error:
        # The parser counts columns from 1, SectionError from 0.
        line, column = error.GetLine() or 0, max((error.GetColumn() or 0) - 1, 0)
        raise SectionError(file, line, column, _word_like_ncu(str(error))) from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1)
        reason = f"Interpreting non ascii code point {data[error.start]}."
        raise SectionError(file, line, column, reason) from error
    except RecursionError as error:
        raise SectionError(file, 0, 0, "Messages are nested too deeply") from error
    missing = message.FindInitializationErrors()  # type: ignore[attr-defined]  # not in the stubs
    if missing:
        reason = f"Message missing required fields: {', '.join(missing)}"
        raise SectionError(file, 0, 0, reason)


def _word_like_ncu(text: str) -> str:
    """Return a message of protobuf's parser in the words of ncu."""
    for pattern, wording in WORDINGS:
        match = re.search(pattern, text)
        if match is not None:
            return match.expand(wording)
    return text


def _check_expression(metric: SectionMetric, file: str) -> None:
    """Raise SectionError for an invalid regular expression of a metric or of its options."""
    names = [metric.name, *(option.name for option in metric.options)]
    for name in names:
        if name.startswith(REGEX):
            try:
                compile_expression(name)
            except re.error as error:
                raise SectionError(file, 0, 0, f"Invalid regex '{name}'") from error
