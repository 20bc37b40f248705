"""Reports the output of ptxas as diagnostics that name the user's file, not the temporary one."""

from __future__ import annotations

import re

from pylink.diagnostics.record import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.subtools.runner import Outcome

# `ptxas a.ptx, line 12; error   : text`, or without file and line.
LINE = re.compile(
    r"ptxas (?:(?P<file>.*), line (?P<line>\d+); )?"
    r"(?P<word>info|warning|error|fatal) *: (?P<text>.*)"
)

# The line of ptxas after all errors, which adds nothing to them.
LAST_LINE = "Ptx assembly aborted due to errors"

# Greatest number of lines of one run that become diagnostics. `ptxas -v` prints four for a kernel.
MAX_LINES = 50_000


def report_messages(outcome: Outcome, name: str, sink: Sink) -> None:
    """Report the output of a run on the PTX `name`: errors if it failed, other lines as they are.

    nvlink shows warnings and infos of ptxas regardless of -w and -Werror, so they do not become
    warnings of the link.
    """
    lines = outcome.log.splitlines()
    excess = len(lines) - MAX_LINES
    if excess > 0:
        lines[MAX_LINES:] = [f"{excess} more lines of the compiler are omitted"]
    for line in lines:
        match = LINE.fullmatch(line)
        word = match["word"] if match else ""
        if not match or outcome.failure is None or word not in ("error", "fatal"):
            if line:
                sink.report("tool-output", file=name, line=line.replace(outcome.input, name))
        elif match["line"]:
            number = int(match["line"])
            sink.report(
                "ptx-line-error",
                file=name,
                source=Source(name, number),
                line=number,
                reason=match["text"].replace(outcome.input, name),
            )
        elif match["text"] != LAST_LINE:
            reason = match["text"].replace(outcome.input, name)
            sink.report("ptx-error", file=name, reason=reason)
