"""The rich text renderer, laid out like the EDG front end's.

    k.cu(4): error: Undefined reference to 'f' in 'a.cubin'
      *p = f(*p);
           ^
    k.cu(9): note #412-D: 'f' is referenced here, in 'b.cubin'

A record has its location, label, number and message; then details of the message, source line and
caret, then the records below it: children (how the event came about), notes (related places),
context (such as inlined calls), extra (further records). A blank line ends the record.
"""

from __future__ import annotations

import re
import sys

from pylink.diagnostics import color
from pylink.diagnostics.record import CHILD, CONTINUATION, DETAIL, TOP_LEVEL, Fields
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
from pylink.diagnostics.sink import Renderer, suffix_of
from pylink.diagnostics.snippet import snippet
from pylink.diagnostics.sourcefiles import SourceFiles, Withheld
from pylink.diagnostics.stream import printable, write
from pylink.diagnostics.wrap import wrap
from pylink.renderers.presentation import Presentation
from pylink.terminal.numbers import count_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from pylink.diagnostics.record import Diagnostic, Source
    from pylink.diagnostics.sink import Sink

LABELS = {
    NOTE: "note",
    REMARK: "remark",
    WARNING: "warning",
    CAUTION: "warning",
    DISCRETIONARY: "error",
    ERROR: "error",
    CATASTROPHE: "catastrophic error",
    COMMAND_LINE: "Command-line error",
    INTERNAL: "internal error",
}

# Columns at which the first line of a record and the lines after it start, by type of record. A
# child that is not the first of its parent starts _LATER_CHILD columns further.
MARGINS = {TOP_LEVEL: (0, 10), DETAIL: (12, 22), CHILD: (10, 20), CONTINUATION: (1, 11)}
_LATER_CHILD = 2

# A character that names consist of.
_IN_NAME = re.compile(r"[\w$]")

# A quoted field of a template; the name is colored, the quotes are not.
_QUOTED = re.compile(r"'(\{\w+\})'")


class TextRenderer(Renderer):
    """Writes records as text.

    `sources` has the source files that may be shown (default: those below the working directory).
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        presentation: Presentation | None = None,
        *,
        sources: SourceFiles | None = None,
    ) -> None:
        settings = Presentation() if presentation is None else presentation
        self.stream = stream
        self.sources = SourceFiles() if sources is None else sources
        self.colored = color.is_wanted(settings.color, sys.stderr if stream is None else stream)
        # Columns that a line may have; 0 does not wrap lines.
        self.usable = max(1, settings.width - 1) if settings.width > 0 else 0
        self.numbers = settings.numbers
        self.context = settings.context and not settings.brief
        self.brief = settings.brief
        self.summary = settings.summary
        self.subject = settings.subject
        self.task = settings.task
        self.suffix = suffix_of(settings.target)
        self.tab_width = settings.tab_width
        # Files whose source text is not shown, with the reason; each is reported once.
        self._withheld: set[tuple[str, str]] = set()

    def for_target(self, target: str | None) -> None:
        """Set the architecture that stands at the end of later records; None to name none."""
        self.suffix = suffix_of(target)

    def emit(self, diagnostic: Diagnostic) -> None:
        if diagnostic.kind == "error-limit":
            self._write(f"{diagnostic.message}\n")
        else:
            self._write("".join(self._tree(diagnostic, 0)) + ("" if self.brief else "\n"))

    def close(self, sink: Sink) -> None:
        """Write the summary of errors, if there are any, and whether they ended the task."""
        if not self.summary:
            return
        count_texts = []
        if sink.errors:
            count_texts.append(count_text(sink.errors, "error"))
        if sink.catastrophes:
            count_texts.append(count_text(sink.catastrophes, "catastrophic error"))
        if count_texts:
            task = f"this {self.task}"
            if self.subject:
                task = f'the {self.task} of "{printable(self.subject)}"'
            self._write(f"{' and '.join(count_texts)} detected in {task}.\n")
        if sink.terminated:
            self._write(f"{self.task.capitalize()} terminated.\n")

    def _write(self, text: str) -> None:
        write(self.stream, color.to_terminal(text) if self.colored else text)

    def _tree(self, diagnostic: Diagnostic, number: int) -> list[str]:
        """Return the texts of a record and of all below; `number` is its index among siblings."""
        margin, indent = MARGINS[diagnostic.type]
        if diagnostic.type == CHILD and number > 0:
            margin, indent = margin + _LATER_CHILD, indent + _LATER_CHILD
        texts = [wrap(self._first_line(diagnostic), margin, indent, self.usable) + "\n"]
        details = [child for child in diagnostic.children if child.type == DETAIL]
        others = [child for child in diagnostic.children if child.type != DETAIL]
        for index, detail in enumerate(details):
            texts += self._tree(detail, index)
        texts += [
            wrap(line, *MARGINS[DETAIL], self.usable) + "\n" for line in _detail_lines(diagnostic)
        ]
        if self.context and diagnostic.source is not None:
            texts.append(self._source_lines(diagnostic.source))
        notes = diagnostic.notes if diagnostic.level != NOTE else []
        for records in (others, notes, diagnostic.context, diagnostic.extra):
            for index, record in enumerate(records):
                record.parent = diagnostic
                texts += self._tree(record, index)
        return texts

    def _source_lines(self, source: Source) -> str:
        """Return the source line with its carets, or once per file why it is not shown."""
        try:
            text = self.sources.line(source)
        except Withheld as reason:
            reported = source.file, str(reason)
            if reported in self._withheld:
                return ""
            self._withheld.add(reported)
            line = f"source text is not shown: {reason}"
            return wrap(line, *MARGINS[DETAIL], self.usable) + "\n"
        return "" if text is None else snippet(text, source, self.tab_width)

    def _first_line(self, diagnostic: Diagnostic) -> str:
        """Return location, label, number and message, not yet wrapped."""
        message = self._message_text(diagnostic)
        if diagnostic.type != TOP_LEVEL:
            return message
        location = self._location_text(diagnostic)
        label = LABELS[diagnostic.level]
        if not location:
            label = label[0].upper() + label[1:]
        place_text = f"{location}: " if location else ""
        if self.colored:
            # The EDG front end begins with empty colored text, in the color of what follows.
            label_class = _color_class(diagnostic.level)
            label = f"{label_class}{label}{color.RESET}"
            place_text = f"{color.LOCUS if location else label_class}{color.RESET}"
            if location:
                place_text += f"{color.LOCUS}{location}{color.RESET}: "
        return f"{place_text}{label}{self._number_text(diagnostic)}: {message}{self.suffix}"

    def _message_text(self, diagnostic: Diagnostic) -> str:
        """Return the message, without the place in the input if the line begins with that."""
        has_place_in_front = diagnostic.type == TOP_LEVEL and diagnostic.source is None
        template = diagnostic.short_template if has_place_in_front else diagnostic.template
        if self.colored:
            template = _QUOTED.sub(f"'{color.LOCUS}\\1{color.RESET}'", template)
        return template.format_map(Fields(diagnostic, printable))

    def _number_text(self, diagnostic: Diagnostic) -> str:
        """Return ` #501-D` for a note, remark or warning, also if -Werror made it an error.

        An empty text for other records, and without --display-error-number.
        """
        severity = diagnostic.assigned or diagnostic.original
        is_hint = diagnostic.kind == "suppression-hint"
        if not self.numbers or is_hint or severity > WARNING or not diagnostic.number:
            return ""
        return f" #{diagnostic.number}-D"

    def _location_text(self, diagnostic: Diagnostic) -> str:
        """Return `file(line)`, for a cubin `file(section+offset)`.

        An empty text for a record without a file, or about the command line.
        """
        if diagnostic.level == COMMAND_LINE:
            return ""
        if diagnostic.source is not None:
            return printable(f"{diagnostic.source.file}({diagnostic.source.line})")
        if not diagnostic.file:
            return ""
        place = diagnostic.place
        return printable(f"{diagnostic.file}({place})" if place else diagnostic.file)


def _detail_lines(diagnostic: Diagnostic) -> list[str]:
    """Return lines with what the message lacks: the location in the cubin, the symbol (demangled).

    The list is empty for notes and for records that are not at the top level.
    """
    lines: list[str] = []
    if diagnostic.type != TOP_LEVEL or diagnostic.level == NOTE:
        return lines
    if diagnostic.source is not None and diagnostic.place and not diagnostic.names_place:
        lines.append(printable(f"at {diagnostic.where}"))
    if diagnostic.symbol:
        from pylink.demangle import demangle

        demangled = demangle(diagnostic.symbol)
        if demangled != diagnostic.symbol:
            lines.append(printable(f"'{diagnostic.symbol}' is {demangled}"))
        elif not _has_word(diagnostic.message, diagnostic.symbol):
            lines.append(printable(f"about '{diagnostic.symbol}'"))
    return lines


def _has_word(text: str, word: str) -> bool:
    """Return whether a text contains a name as a word; faster than a pattern for each name."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not _IN_NAME.search(text[start - 1 : start] + text[end : end + 1]):
            return True
        start = text.find(word, start + 1)
    return False


def _color_class(severity: int) -> str:
    """Return the escape sequence of a severity's color."""
    if severity >= DISCRETIONARY:
        return color.ERROR
    return color.WARNING if severity >= WARNING else color.NOTE
