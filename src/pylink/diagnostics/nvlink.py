"""The default renderer: nvlink's one line for a record, with the name of this tool."""

from __future__ import annotations

from pylink.diagnostics.policy import ADVICE
from pylink.diagnostics.severity import CATASTROPHE, DISCRETIONARY, NOTE, WARNING
from pylink.diagnostics.sink import Renderer
from pylink.diagnostics.stream import printable, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from pylink.diagnostics.record import Diagnostic

NVLINK = "nvlink"


class NvlinkRenderer(Renderer):
    """Writes `pylink error   : Undefined reference to 'f' in 'a.cubin'` lines.

    `tool` is the word in front, `target` (such as `sm_75`) is appended to each message when
    -report-arch asks for it. Of the records below the top, hints alone are shown; these and
    advice are notes. Under nvlink's name nobody sees what nvlink does not have: notes, and places
    behind messages.
    """

    def __init__(
        self, stream: TextIO | None = None, *, tool: str = "pylink", target: str | None = None
    ) -> None:
        self.stream = stream
        self.tool = tool
        self.suffix = f" (target: {target})" if target else ""

    def emit(self, diagnostic: Diagnostic) -> None:
        severity = diagnostic.level
        if severity >= CATASTROPHE:
            word = "fatal"
        elif severity >= DISCRETIONARY:
            word = "error"
        elif diagnostic.kind in ADVICE and not diagnostic.assigned:
            if self.tool == NVLINK:
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
        if self.tool != NVLINK:
            for hint in diagnostic.hints:
                write(self.stream, f"{self.tool} note    : {printable(hint.message)}\n")


def _llvm_place(diagnostic: Diagnostic) -> str:
    """File, line and column, as LLVM's `opt` shows them in front of a remark."""
    source = diagnostic.source
    if source is not None:
        return printable(f"{source.file}:{source.line}:{source.column}")
    return printable(f"{diagnostic.file or '<unknown>'}:0:0")
