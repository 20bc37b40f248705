"""The settings of remarks from the options, and the channel that they configure."""

from __future__ import annotations

import re

from pylink.files.atomic import refuse_output
from pylink.options.xopt import read_xopt
from pylink.remarks.channel import Remarks
from pylink.remarks.container import LLVM_22
from pylink.remarks.files import FORMATS, YAML, open_writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.options.model import Options
    from pylink.options.table import Value
    from pylink.remarks.channel import Writer

# Attributes in `Options`; `-Xopt` takes the same options with one dash.
OPTIONS = (
    "pass_remarks", "pass_remarks_missed", "pass_remarks_analysis", "pass_remarks_filter",
    "pass_remarks_why_live", "pass_remarks_output", "pass_remarks_format",
    "pass_remarks_bitstream_version", "pass_remarks_with_hotness", "pass_remarks_hotness_threshold",
)  # fmt: skip


class Settings:
    """The options of remarks, including those after `-Xopt`.

    If an option is given both directly and after `-Xopt`, the direct one counts. An empty pattern
    or file name counts as not given. `profuse` maps the channels of `profuse.py` that -Xopt names
    to whether they are on.

    `passed`, `missed`, `analysis`, `written` (--pass-remarks-filter) and `why_live` are patterns of
    names, None without the option. `hotness` says whether remarks have a hotness, the number of
    bytes that they concern. Remarks with less than `threshold` bytes are dropped. `version` is the
    version of the container of a bitstream.
    """

    __slots__ = (
        "analysis", "file", "format", "hotness", "missed", "passed", "profuse", "threshold",
        "version", "why_live", "written",
    )  # fmt: skip

    def __init__(self, options: Options, sink: Sink) -> None:
        """Read `options`; an invalid value is a fatal diagnostic."""
        values: dict[str, Value] = {}
        self.profuse = read_xopt(options.Xopt, values, sink)
        for attribute in OPTIONS:
            value = getattr(options, attribute)
            if value is not None and value is not False:
                values[attribute] = value
        self.passed, self.missed, self.analysis, self.written, self.why_live = (
            _pattern(values.get(attribute), attribute, sink) for attribute in OPTIONS[:5]
        )
        self.file = _text(values.get("pass_remarks_output"))
        self.format = str(values.get("pass_remarks_format", YAML))
        if self.format not in FORMATS:
            sink.fatal("unknown-remark-format")
        version = values.get("pass_remarks_bitstream_version", LLVM_22)
        assert isinstance(version, int)
        self.version = version
        self.hotness = bool(values.get("pass_remarks_with_hotness"))
        threshold = values.get("pass_remarks_hotness_threshold", 0)
        assert isinstance(threshold, int)
        self.threshold = threshold

    def are_needed(self) -> bool:
        """Return whether any option asks for remarks."""
        return any(
            pattern is not None for pattern in (self.passed, self.missed, self.analysis, self.file)
        )

    def open(self, sink: Sink) -> Remarks:
        """Open the channel; a fatal diagnostic if the file cannot be written."""
        return Remarks(
            sink,
            None if self.file is None else self._writer(self.file, sink),
            passed=self.passed,
            missed=self.missed,
            analysis=self.analysis,
            written=self.written,
            hotness=self.hotness,
            threshold=self.threshold,
            why_live=self.why_live,
        )

    def _writer(self, file: str, sink: Sink) -> Writer:
        """Open the writer of a file of remarks; a fatal diagnostic if that fails."""
        try:
            return open_writer(file, self.format, self.version)
        except (OSError, ValueError) as error:
            refuse_output(file, error, sink)


def _text(value: Value) -> str | None:
    """Return the value if it is a text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def _pattern(value: Value, attribute: str, sink: Sink) -> re.Pattern[str] | None:
    """Return the pattern that an option has as its value, None if the option is not given.

    A text that is not a regular expression is a fatal diagnostic; `attribute` names the option.
    """
    text = _text(value)
    if text is None:
        return None
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        option = attribute.replace("_", "-")
        sink.fatal("invalid-regex", value=text, option=option, reason=str(error))
