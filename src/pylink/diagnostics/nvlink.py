"""The default renderer: nvlink's one line for a record, with the name of this tool."""

from __future__ import annotations

from pylink.diagnostics.policy import ADVICE
from pylink.diagnostics.severity import (
    CATASTROPHE,
    COMMAND_LINE,
    DISCRETIONARY,
    NOTE,
    WARNING,
)
from pylink.diagnostics.sink import Renderer, suffix_of
from pylink.diagnostics.stream import printable, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TextIO

    from pylink.diagnostics.record import Diagnostic

    Notes = bool | None | Callable[[], bool | None]

NVLINK = "nvlink"
# What notes begin with, also under nvlink's name: they are not nvlink's.
OWN_NAME = "pylink"
MEANT = ("did-you-mean", "arch-dropped", "arch-renamed", "option-of-another")
# In a toolkit with pylink in it (command/overlay.py), beside the linker: an empty file, with which
# notes follow the lines of nvlink; and the name of the release, such as 13.2.
NOTES_FILE = "nvlink.notes"
RELEASE_FILE = "nvlink.release"


class NvlinkRenderer(Renderer):
    """Writes `pylink error   : Undefined reference to 'f' in 'a.cubin'` lines.

    `tool` is the word in front, `target` (such as `sm_75`) is appended to each message when
    -report-arch asks for it. Under nvlink's name its lines are those of nvlink, which have neither
    places after messages nor notes. `notes` says how much follows such a line, in lines that begin
    with `pylink note`: with True all that is known of it, with False nothing. None is nothing under
    nvlink's name, and else hints, and what was meant by a mistake. A function is asked at the first
    line that could have notes, for True or None.
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
        self.suffix = suffix_of(target)

    def emit(self, diagnostic: Diagnostic) -> None:
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
        if diagnostic.kind == "suppression-hint":  # nvlink has no numbers to name
            return
        text = printable(diagnostic.bare_message if self.tool == NVLINK else diagnostic.message)
        if diagnostic.kind in ("call-graph", "tool-output"):  # a text of its own, not a message
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
        """How much is said after a line."""
        if callable(self._notes):
            self._notes = self._notes()
        return self._notes

    def _show_notes(self, diagnostic: Diagnostic) -> None:
        if self.notes:
            for line in details(diagnostic, bare=self.tool == NVLINK):
                self._note(line)
        elif self.tool != NVLINK and self.notes is None:
            records = [*diagnostic.hints]
            if diagnostic.level == COMMAND_LINE:
                records += [note for note in diagnostic.notes if note.kind in MEANT]
            for record in records:
                self._note(record.message)

    def _note(self, text: str) -> None:
        write(self.stream, f"{OWN_NAME} note    : {printable(text)}\n")


def details(diagnostic: Diagnostic, *, bare: bool) -> Iterator[str]:
    """What is known of a record, a line for each: the place, the readable name, notes.

    `bare` says that the line before it has no place.
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
    """File, line and column, as LLVM's `opt` shows them in front of a remark."""
    source = diagnostic.source
    if source is not None:
        return printable(f"{source.file}:{source.line}:{source.column}")
    return printable(f"{diagnostic.file or '<unknown>'}:0:0")
