"""Everything a link has to say: records, the sink that filters and counts them, and renderers.

A phase reports by the name of a kind and the facts of the place; it never formats text::

    sink.report("undefined-reference", symbol="_Z1fi", file="a.cubin")
    sink.report(
        "multiple-definition", symbol="f", file="b.cubin", first="a.cubin",
        notes=[note("first-defined-here", symbol="f", file="a.cubin", section=".text.f")],
    )
    sink.fatal("merge-failed")              # reports, then raises LinkError

`kinds.KINDS` is the table of all kinds: number, severity, message template. `report` takes the
place (`file`, `section`, `index` of an entry in it, `offset` in bytes, `symbol`) and whatever else
the template of the kind names. It returns the record, or None when it was filtered out.
Reporting a kind of severity `CATASTROPHE` or above raises `LinkError` after it was rendered, as
does reaching the error limit; every other report returns, so that a phase can go on and show all
its errors. After a phase, `if sink.errors: sink.stop()` ends the link; `sink.diagnostics` holds
the top records in order; `sink.exit_code()` is nvlink's status: 0, 255 after errors, 1 after a
fatal. `sink.close()` comes last, for logs, documents and the summary.

    sink = Sink(NvlinkRenderer(stream=sys.stderr))      # a tool
    sink = Sink()                                       # an API call: records only, prints nothing

Importing this package loads no renderer but nvlink's, and the table only with the first report.
`renderers` has the others, and in `configuration` what the options do: `obey`, `add_log`,
`add_sarif_output`, `control`.
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
    "CATASTROPHE",
    "CAUTION",
    "COMMAND_LINE",
    "DISCRETIONARY",
    "ERROR",
    "INTERNAL",
    "KINDS",
    "NOTE",
    "REMARK",
    "WARNING",
    "Diagnostic",
    "NvlinkRenderer",
    "Policy",
    "Renderer",
    "Sink",
    "note",
]


def __getattr__(name: str) -> object:
    """The table and the records load at the first use: most links have nothing to say."""
    if name in ("Diagnostic", "note"):
        from pylink.diagnostics import record

        value: object = getattr(record, name)
        return value
    if name == "KINDS":
        from pylink.diagnostics import kinds

        return kinds.KINDS
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
