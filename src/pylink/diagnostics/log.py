"""The log for programs: a line for each record, `<letter> "<file>" <line> <column> <message>`."""

from __future__ import annotations

from pylink.diagnostics.record import CONTINUATION
from pylink.diagnostics.severity import (
    CATASTROPHE,
    CAUTION,
    COMMAND_LINE,
    DISCRETIONARY,
    ERROR,
    INTERNAL,
    NOTE,
    REMARK,
    WARNING,
)
from pylink.diagnostics.sink import Renderer
from pylink.diagnostics.stream import printable, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from pylink.diagnostics.record import Diagnostic
    from pylink.diagnostics.sink import Sink

# Upper case at the top of a tree, lower case below it; a note has the letter of its top.
LETTERS = {
    REMARK: "R",
    WARNING: "W",
    CAUTION: "W",
    DISCRETIONARY: "E",
    ERROR: "E",
    CATASTROPHE: "C",
    COMMAND_LINE: "C",
    INTERNAL: "I",
}


class LogRenderer(Renderer):
    """Writes the log to a stream, which it closes at the end.

    A record without a source line has the input file, line 0 and column 0; one without a place of
    its own has that of the record above it. In the file name `"` and `\\` are escaped by a
    backslash. A log that cannot be written is reported once, at the end.
    """

    def __init__(self, stream: TextIO, name: str) -> None:
        self.stream = stream
        self.name = name
        self.whole = True

    def emit(self, diagnostic: Diagnostic) -> None:
        lines: list[str] = []
        self._append(lines, diagnostic, LETTERS.get(diagnostic.severity, "R"), '"" 0 0')
        self.whole = write(self.stream, "".join(lines)) and self.whole

    def close(self, sink: Sink) -> None:
        try:
            self.stream.close()
        except OSError:
            self.whole = False
        if not self.whole:
            sink.report("report-incomplete", file=self.name)

    def _append(self, lines: list[str], diagnostic: Diagnostic, top: str, above: str) -> None:
        place = _place(diagnostic) or above
        if diagnostic.type != CONTINUATION:
            letter = LETTERS.get(diagnostic.severity, top)
            if diagnostic.parent is not None:
                letter = letter.lower()
            prefix = "(internal error) " if diagnostic.severity == INTERNAL else ""
            lines.append(f"{letter} {place} {prefix}{printable(diagnostic.message)}\n")
        notes = diagnostic.notes if diagnostic.severity != NOTE else []
        for below in (diagnostic.children, notes, diagnostic.context, diagnostic.extra):
            for record in below:
                record.parent = diagnostic
                self._append(lines, record, top, place)


def _place(diagnostic: Diagnostic) -> str:
    source = diagnostic.source
    if source is not None:
        return f"{_quoted(source.file)} {source.line} {source.column}"
    return f"{_quoted(diagnostic.file)} 0 0" if diagnostic.file else ""


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped)}"'
