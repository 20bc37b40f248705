"""What ptxas prints, as diagnostics that name the user's file instead of ours."""

from __future__ import annotations

import re

from pylink.diagnostics.record import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.subtools.runner import Outcome

# `ptxas a.ptx, line 12; error   : text`, or without a place.
LINE = re.compile(
    r"ptxas (?:(?P<file>.*), line (?P<line>\d+); )?"
    r"(?P<word>info|warning|error|fatal) *: (?P<text>.*)"
)

# It follows the errors that say more.
LAST_LINE = "Ptx assembly aborted due to errors"

# Lines of one run that become diagnostics. `ptxas -v` prints four for a kernel.
MOST_LINES = 50_000


def report_messages(outcome: Outcome, name: str, sink: Sink) -> None:
    """Report what a run on the PTX `name` printed: errors as such, the rest as it is.

    nvlink shows warnings and infos of ptxas whatever -w and -Werror say, so they are not warnings
    of the link.
    """
    lines = outcome.log.splitlines()
    rest = len(lines) - MOST_LINES
    if rest > 0:
        lines[MOST_LINES:] = [f"{rest} more lines of the compiler are left out"]
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
