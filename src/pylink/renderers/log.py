"""The log for programs: a line for each record, `<letter> "<file>" <line> <column> <message>`.

A record is a diagnostic. Its notes and other records below it make a tree.
"""

from __future__ import annotations

from pylink.diagnostics import severity
from pylink.diagnostics.record import CONTINUATION
from pylink.diagnostics.sink import suffix_of
from pylink.diagnostics.stream import printable, to_bytes
from pylink.renderers.filerenderer import FileRenderer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics.record import Diagnostic
    from pylink.diagnostics.sink import Sink
    from pylink.files.atomic import WholeFile

# Letters of records at the top of a tree; records below have small letters. A level without a
# letter, such as that of notes, has the letter of the top record.
LETTERS = {
    severity.REMARK: "R",
    severity.WARNING: "W",
    severity.CAUTION: "W",
    severity.DISCRETIONARY: "E",
    severity.ERROR: "E",
    severity.CATASTROPHE: "C",
    severity.COMMAND_LINE: "C",
    severity.INTERNAL: "I",
}


class LogRenderer(FileRenderer):
    """Writes the log: a line for each record, with a letter, file, line, column and message.

    A record without a source line has the input file, line 0 and column 0; a record without a
    location has that of the record above it. In the file name `"` and `\\` are escaped by a
    backslash. `target` is the architecture, which ends the line of each record at the top.
    """

    def __init__(self, file: WholeFile, *, target: str | None = None) -> None:
        super().__init__(file)
        self.suffix = suffix_of(target)
        self._lines: list[str] = []

    def for_target(self, target: str | None) -> None:
        """Set the architecture that stands at the end of later records; None to name none."""
        self.suffix = suffix_of(target)

    def emit(self, diagnostic: Diagnostic) -> None:
        letter = LETTERS.get(diagnostic.level, "R")
        self._append(self._lines, diagnostic, letter, '"" 0 0')

    def contents(self, sink: Sink) -> bytes:
        return to_bytes("".join(self._lines))

    def _append(
        self, lines: list[str], diagnostic: Diagnostic, top_letter: str, upper_location: str
    ) -> None:
        """Append the lines of a record and of those below it; a continuation has no line.

        `top_letter` is the letter of the tree's top record. `upper_location` is the location of the
        record above this one.
        """
        location = _location(diagnostic) or upper_location
        if diagnostic.type != CONTINUATION:
            letter = LETTERS.get(diagnostic.level, top_letter)
            if diagnostic.parent is not None:
                letter = letter.lower()
            prefix = "(internal error) " if diagnostic.level == severity.INTERNAL else ""
            suffix = "" if diagnostic.parent is not None else self.suffix
            message = printable(diagnostic.message)
            lines.append(f"{letter} {location} {prefix}{message}{suffix}\n")
        notes = diagnostic.notes if diagnostic.level != severity.NOTE else []
        for records in (diagnostic.children, notes, diagnostic.context, diagnostic.extra):
            for record in records:
                record.parent = diagnostic
                self._append(lines, record, top_letter, location)


def _location(diagnostic: Diagnostic) -> str:
    """Return file, line and column of a record; nothing if it has no location."""
    source = diagnostic.source
    if source is not None:
        return f"{_quote(source.file)} {source.line} {source.column}"
    return f"{_quote(diagnostic.file)} 0 0" if diagnostic.file else ""


def _quote(name: str) -> str:
    """Return a file name in quotes, with backslashes before quotes and backslashes."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped)}"'
