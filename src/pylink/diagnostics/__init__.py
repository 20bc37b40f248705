"""The diagnostics of a link: records, the sink that filters and counts them, and renderers.

A phase reports the name of a kind and the facts of the place. It never formats text::

    sink.report("undefined-reference", symbol="_Z1fi", file="a.cubin")
    sink.report(
        "multiple-definition", symbol="f", file="b.cubin", first="a.cubin",
        notes=[note("first-defined-here", symbol="f", file="a.cubin", section=".text.f")],
    )
    sink.fatal("merge-failed")              # reports, then raises LinkError

`kinds.KINDS` is the table of all kinds: number, severity, message template. `report` takes the
place (`file`, `section`, `index` of an entry in it, `offset` in bytes, `symbol`) and the other
fields that the template of the kind names. It returns the record, or None if it is not shown.

A report of severity `CATASTROPHE` or above raises `LinkError` after it was rendered, and so does
the report that reaches the error limit. Every other report returns, so that a phase can go on and
show all its errors. After a phase, `if sink.errors: sink.stop()` ends the link.

`sink.diagnostics` holds the records that were shown, in order. `sink.exit_code()` is nvlink's
status: 0, 255 after errors, 1 after a fatal error or the error limit. `sink.close()` comes last,
for logs, documents and the summary.

    sink = Sink(NvlinkRenderer(stream=sys.stderr))      # a tool
    sink = Sink()                                       # an API call: records only, prints nothing

Importing this package loads only nvlink's renderer; the first report loads the table. The package
`renderers` has the others, and `renderers.configuration` applies the options.
"""

from __future__ import annotations

from pylink.diagnostics.nvlink import NvlinkRenderer
from pylink.diagnostics.policy import Policy
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
from pylink.diagnostics.sink import Renderer, Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics.kinds import KINDS
    from pylink.diagnostics.record import Diagnostic, note

__all__ = [
    "CATASTROPHE", "CAUTION", "COMMAND_LINE", "DISCRETIONARY", "ERROR", "INTERNAL", "KINDS", "NOTE",
    "REMARK", "WARNING", "Diagnostic", "NvlinkRenderer", "Policy", "Renderer", "Sink", "note",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Load the table and the records at their first use: most links do not report anything."""
    if name in ("Diagnostic", "note"):
        from pylink.diagnostics import record

        value: object = getattr(record, name)
        return value
    if name == "KINDS":
        from pylink.diagnostics import kinds

        return kinds.KINDS
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
