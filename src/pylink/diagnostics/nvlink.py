"""The default renderer: a line for a record, in nvlink's format, and perhaps notes below it."""

from __future__ import annotations

from pylink.diagnostics.policy import ADVICE
from pylink.diagnostics.severity import CATASTROPHE, COMMAND_LINE, DISCRETIONARY, NOTE, WARNING
from pylink.diagnostics.sink import Renderer, suffix_of
from pylink.diagnostics.stream import printable, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from pylink.diagnostics.record import Diagnostic

    # The setting of notes, or a function that returns it; see NvlinkRenderer.
    Notes = bool | None | Callable[[], bool | None]

# The name of the tool at the start of lines that equal nvlink's to the letter.
NVLINK = "nvlink"
# The name at the start of notes, even if other lines begin with NVLINK: nvlink has no notes.
OWN_NAME = "pylink"
# Kinds of notes about mistakes on the command line.
MISTAKE_NOTES = ("did-you-mean", "arch-dropped", "arch-renamed", "option-of-another")


class NvlinkRenderer(Renderer):
    """Writes `pylink error   : Undefined reference to 'f' in 'a.cubin'` lines.

    `tool` is the first word of a line. `target` (such as `sm_75`, with -report-arch) is appended to
    each message. If `tool` is nvlink, lines are those of nvlink, without places after messages.

    `notes` selects further lines after a warning or an error, which begin with `pylink note`. True:
    all details. False: none. None: no notes if `tool` is nvlink, and otherwise hints and notes
    about mistakes on the command line. A function returns one of these values; it is called once,
    for the first record that could have notes.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        tool: str = "pylink",
        target: str | None = None,
        notes: Notes = None,
    ) -> None:
        self.stream = stream
        self.tool = tool
        self.suffix = suffix_of(target)
        self._notes = notes

    def for_target(self, target: str | None) -> None:
        """Name the target at the end of later messages, like nvlink with -report-arch."""
        self.suffix = suffix_of(target)

    def emit(self, diagnostic: Diagnostic) -> None:
        """Write the line of a record, in nvlink's format, and its notes as far as they are wanted.

        A record of severity NOTE has no line. Kinds of `ADVICE` are shown as notes, if at all,
        except with an assigned severity.
        """
        severity = diagnostic.level
        if severity >= CATASTROPHE:
            word = "fatal"
        elif severity >= DISCRETIONARY:
            word = "error"
        elif diagnostic.kind in ADVICE and not diagnostic.assigned:
            if self.tool == NVLINK or self.notes is False:
                if self.notes:
                    self._note(diagnostic.message)
                    self._show_notes(diagnostic)
                return
            word = "note"
        elif severity >= WARNING:
            word = "warning"
        elif severity > NOTE:
            word = "info"
        else:
            return
        if diagnostic.kind == "suppression-hint":  # this format shows no numbers
            return
        text = printable(diagnostic.bare_message if self.tool == NVLINK else diagnostic.message)
        if diagnostic.kind in ("call-graph", "tool-output"):  # plain lines, not messages
            write(self.stream, f"{text}\n")
            return
        if diagnostic.kind.startswith("pass-remark"):
            text = printable(str(diagnostic.args["text"]))
            write(self.stream, f"remark: {_llvm_place(diagnostic)}: {text}\n")
            return
        write(self.stream, f"{self.tool} {word:<7} : {text}{self.suffix}\n")
        if severity >= WARNING:
            self._show_notes(diagnostic)

    @property
    def notes(self) -> bool | None:
        """The notes to show after a line: all (True), none (False), or the default (None)."""
        if callable(self._notes):
            self._notes = self._notes()
        return self._notes

    def _show_notes(self, diagnostic: Diagnostic) -> None:
        """Write the details of a diagnostic as notes, as far as they are wanted."""
        if self.notes:
            for line in details(diagnostic, bare=self.tool == NVLINK):
                self._note(line)
        elif self.tool != NVLINK and self.notes is None:
            records = [*diagnostic.hints]
            if diagnostic.level == COMMAND_LINE:
                records += [note for note in diagnostic.notes if note.kind in MISTAKE_NOTES]
            for record in records:
                self._note(record.message)

    def _note(self, text: str) -> None:
        """Write a text as a line that begins with `pylink note`."""
        write(self.stream, f"{OWN_NAME} note    : {printable(text)}\n")


def details(diagnostic: Diagnostic, *, bare: bool) -> Iterator[str]:
    """Yield the details of a record, a line for each: place, readable name, children and notes.

    `bare` says that the message was printed without the place in brackets at its end.
    """
    source = diagnostic.source
    is_short = bare and diagnostic.bare_message != diagnostic.message
    if source is not None:
        yield f"at {source.file}:{source.line}"
    elif diagnostic.where and (
        is_short or (diagnostic.place and (bare or not diagnostic.names_place))
    ):
        yield f"at {diagnostic.where}"
    readable = diagnostic.demangled
    if readable != diagnostic.symbol:
        yield f"'{diagnostic.symbol}' is {readable}"
    for child in diagnostic.children:
        yield child.message
    for note in (*diagnostic.notes, *diagnostic.context):
        at = note.source
        yield f"{note.message} (at {at.file}:{at.line})" if at is not None else note.message


def _llvm_place(diagnostic: Diagnostic) -> str:
    """Return `file:line:column`, as LLVM's `opt` shows it for remarks; an unknown line is 0."""
    source = diagnostic.source
    if source is not None:
        return printable(f"{source.file}:{source.line}:{source.column}")
    return printable(f"{diagnostic.file or '<unknown>'}:0:0")
