"""A record as the text of an exception: its message, then details of the place."""

from __future__ import annotations

from pylink.diagnostics.severity import NOTE
from pylink.diagnostics.snippet import snippet
from pylink.diagnostics.sourcefiles import Withheld
from pylink.diagnostics.stream import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.diagnostics.record import Diagnostic
    from pylink.diagnostics.sourcefiles import SourceFiles

INDENT = "    "


def plain_text(diagnostic: Diagnostic, sources: SourceFiles) -> str:
    """Return the message, with indented lines for the source line, readable name, input and notes.

    `sources` has the source files that may be shown.
    """
    lines = [printable(diagnostic.message)]
    lines += [f"{INDENT}{line}" for line in _detail_lines(diagnostic, sources)]
    return "\n".join(lines)


def _detail_lines(diagnostic: Diagnostic, sources: SourceFiles) -> Iterator[str]:
    """Yield the lines below a message: its place, readable name, input, children and notes.

    A diagnostic of severity NOTE is shown without notes.
    """
    yield from _place_lines(diagnostic, sources)
    readable = diagnostic.demangled
    if readable != diagnostic.symbol:
        yield printable(f"'{diagnostic.symbol}' is {readable}")
    if diagnostic.input is not None:
        yield printable(f"'{diagnostic.file}' is input {diagnostic.input}")
    for child in diagnostic.children:
        yield printable(child.message)
    if diagnostic.level == NOTE:
        return
    for note in (*diagnostic.notes, *diagnostic.context):
        yield f"note: {printable(note.message)}"
        yield from (f"{INDENT}{line}" for line in _place_lines(note, sources))


def _place_lines(diagnostic: Diagnostic, sources: SourceFiles) -> Iterator[str]:
    """Yield the source line of a diagnostic with its text, or else its place in the input.

    The place in the input is omitted if the message has it.
    """
    source = diagnostic.source
    if source is not None:
        yield printable(f"at {source.file}:{source.line}")
        try:
            text = sources.line(source)
        except Withheld as reason:
            yield f"source text is not shown: {reason}"
        else:
            yield from () if text is None else snippet(text, source).splitlines()
    elif diagnostic.place and not diagnostic.names_place:
        yield printable(f"at {diagnostic.where}")
