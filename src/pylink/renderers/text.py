"""The rich text renderer, laid out like the EDG front end's.

    k.cu(4): error: Undefined reference to 'f' in 'a.cubin'
      *p = f(*p);
           ^
    k.cu(9): note #412-D: 'f' is referenced here, in 'b.cubin'

A record is its location, label, number and message; then details of the message, source line and
caret, then what hangs below it: children, notes, context, extra. A blank line ends the whole.
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

# Columns of the first line and of the lines after it, by type; a child that is not the first one
# of its parent goes two columns further.
MARGINS = {TOP_LEVEL: (0, 10), DETAIL: (12, 22), CHILD: (10, 20), CONTINUATION: (1, 11)}
_LATER_CHILD = 2

_IN_NAME = re.compile(r"[\w$]")

# A quoted field of a template; the name is colored, the quotes are not.
_QUOTED = re.compile(r"'(\{\w+\})'")


class TextRenderer(Renderer):
    """Writes records for people.

    `sources` says which source lines may be shown, without it those below the working directory.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        presentation: Presentation | None = None,
        *,
        sources: SourceFiles | None = None,
    ) -> None:
        shown = Presentation() if presentation is None else presentation
        self.stream = stream
        self.sources = SourceFiles() if sources is None else sources
        self.colored = color.is_wanted(shown.color, sys.stderr if stream is None else stream)
        self.usable = max(1, shown.width - 1) if shown.width > 0 else 0
        self.numbers = shown.numbers
        self.context = shown.context and not shown.brief
        self.brief = shown.brief
        self.summary = shown.summary
        self.subject = shown.subject
        self.task = shown.task
        self.suffix = suffix_of(shown.target)
        self.tab_width = shown.tab_width
        # What it was said of that it is not shown: a file, and why.
        self._withheld: set[tuple[str, str]] = set()

    def for_target(self, target: str | None) -> None:
        self.suffix = suffix_of(target)

    def emit(self, diagnostic: Diagnostic) -> None:
        if diagnostic.kind == "error-limit":
            self._write(f"{diagnostic.message}\n")
        else:
            self._write("".join(self._tree(diagnostic, 0)) + ("" if self.brief else "\n"))

    def close(self, sink: Sink) -> None:
        """The summary; warnings alone have none."""
        if not self.summary:
            return
        counts = []
        if sink.errors:
            counts.append(f"{sink.errors} error{'s' if sink.errors > 1 else ''}")
        if sink.catastrophes:
            plural = "s" if sink.catastrophes > 1 else ""
            counts.append(f"{sink.catastrophes} catastrophic error{plural}")
        if counts:
            of = f'the {self.task} of "{printable(self.subject)}"' if self.subject else None
            self._write(f"{' and '.join(counts)} detected in {of or f'this {self.task}'}.\n")
        if sink.terminated:
            self._write(f"{self.task.capitalize()} terminated.\n")

    def _write(self, text: str) -> None:
        write(self.stream, color.to_terminal(text) if self.colored else text)

    def _tree(self, diagnostic: Diagnostic, place: int) -> list[str]:
        """The texts of a record and of all below it; `place` is its number among its siblings."""
        margin, indent = MARGINS[diagnostic.type]
        if diagnostic.type == CHILD and place > 0:
            margin, indent = margin + _LATER_CHILD, indent + _LATER_CHILD
        texts = [wrap(self._line(diagnostic), margin, indent, self.usable) + "\n"]
        details = [child for child in diagnostic.children if child.type == DETAIL]
        others = [child for child in diagnostic.children if child.type != DETAIL]
        for i, detail in enumerate(details):
            texts += self._tree(detail, i)
        texts += [wrap(line, *MARGINS[DETAIL], self.usable) + "\n" for line in _about(diagnostic)]
        if self.context and diagnostic.source is not None:
            texts.append(self._snippet(diagnostic.source))
        notes = diagnostic.notes if diagnostic.level != NOTE else []
        for below in (others, notes, diagnostic.context, diagnostic.extra):
            for i, record in enumerate(below):
                record.parent = diagnostic
                texts += self._tree(record, i)
        return texts

    def _snippet(self, source: Source) -> str:
        """The source line with its carets, or once for each file why it is not shown."""
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

    def _line(self, diagnostic: Diagnostic) -> str:
        """Location, label, number and message, not yet wrapped."""
        message = self._message(diagnostic)
        if diagnostic.type != TOP_LEVEL:
            return message
        location = self._location(diagnostic)
        label = LABELS[diagnostic.level]
        if not location:
            label = label[0].upper() + label[1:]
        place = f"{location}: " if location else ""
        if self.colored:
            # An empty run comes first, as in the front end, in the class of what follows it.
            label_class = _color_class(diagnostic.level)
            label = f"{label_class}{label}{color.RESET}"
            place = f"{color.LOCUS if location else label_class}{color.RESET}"
            if location:
                place += f"{color.LOCUS}{location}{color.RESET}: "
        return f"{place}{label}{self._number(diagnostic)}: {message}{self.suffix}"

    def _message(self, diagnostic: Diagnostic) -> str:
        in_front = diagnostic.type == TOP_LEVEL and diagnostic.source is None
        template = diagnostic.short_template if in_front else diagnostic.template
        if self.colored:
            template = _QUOTED.sub(f"'{color.LOCUS}\\1{color.RESET}'", template)
        return template.format_map(Fields(diagnostic, printable))

    def _number(self, diagnostic: Diagnostic) -> str:
        """` #501-D` for what an option may change, by the severity before any promotion."""
        severity = diagnostic.assigned or diagnostic.original
        hint = diagnostic.kind == "suppression-hint"
        if not self.numbers or hint or severity > WARNING or not diagnostic.number:
            return ""
        return f" #{diagnostic.number}-D"

    def _location(self, diagnostic: Diagnostic) -> str:
        """`file(line)`, for a cubin `file(section+offset)`; empty without a file."""
        if diagnostic.level == COMMAND_LINE:
            return ""
        if diagnostic.source is not None:
            return printable(f"{diagnostic.source.file}({diagnostic.source.line})")
        if not diagnostic.file:
            return ""
        place = diagnostic.place
        return printable(f"{diagnostic.file}({place})" if place else diagnostic.file)


def _about(diagnostic: Diagnostic) -> list[str]:
    """What nvlink's messages omit: the place in the cubin, and a readable name."""
    lines: list[str] = []
    if diagnostic.type != TOP_LEVEL or diagnostic.level == NOTE:
        return lines
    if diagnostic.source is not None and diagnostic.place and not diagnostic.names_place:
        lines.append(printable(f"at {diagnostic.where}"))
    if diagnostic.symbol:
        from pylink.demangle import demangle

        readable = demangle(diagnostic.symbol)
        if readable != diagnostic.symbol:
            lines.append(printable(f"'{diagnostic.symbol}' is {readable}"))
        elif not _has_word(diagnostic.message, diagnostic.symbol):
            lines.append(printable(f"about '{diagnostic.symbol}'"))
    return lines


def _has_word(text: str, word: str) -> bool:
    """Whether a name stands in a text by itself; compiling a pattern for each takes far longer."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not _IN_NAME.search(text[at - 1 : at] + text[end : end + 1]):
            return True
        at = text.find(word, at + 1)
    return False


def _color_class(severity: int) -> str:
    if severity >= DISCRETIONARY:
        return color.ERROR
    return color.WARNING if severity >= WARNING else color.NOTE
