"""Remarks of a link as rows of a table."""

from __future__ import annotations

from typing import NamedTuple

from pylink.remarks.channel import DIAGNOSTICS
from pylink.remarks.record import FAILURE, PASSED, TAGS
from pylink.tabular.columns import Place
from pylink.tabular.table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics.record import Diagnostic

# The kind of remark for each kind of diagnostic. The three kinds of analysis have one diagnostic:
# ANALYSIS counts for it, since its number is the lowest and so comes last.
_KINDS = {DIAGNOSTICS[kind]: TAGS[kind] for kind in range(FAILURE, PASSED - 1, -1)}


class RemarkRow(NamedTuple):
    """A decision of the link: the pass, the decision, and the function or section.

    `kind` is Passed, Missed, Analysis or Failure. `file` and `line` are the location in the source;
    without one, `file` is a linked file, and `line` None. `hotness` is the number of bytes that the
    decision concerns, if known.
    """

    kind: str
    pass_name: str
    name: str
    function: str
    file: str | None
    line: int | None
    hotness: Place | None
    message: str


def shown_remarks(records: Iterable[Diagnostic]) -> Table[RemarkRow]:
    """Return a table with a row for each diagnostic that `Remarks` made from a remark."""
    return Table(RemarkRow, (_row(record) for record in records if record.kind in _KINDS))


def _row(record: Diagnostic) -> RemarkRow:
    """Return the row of a diagnostic that `Remarks` made from a remark."""
    hotness = record.args.get("hotness")
    return RemarkRow(
        _KINDS[record.kind],
        str(record.args["pass_name"]),
        str(record.args["name"]),
        record.symbol or "",
        record.file,
        None if record.source is None else record.source.line,
        None if hotness is None else int(hotness),
        str(record.args["message"]),
    )
