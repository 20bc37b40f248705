"""Remarks as rows of a table: those that a link showed, and those of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylink.remarks.channel import DIAGNOSTICS
from pylink.remarks.record import FAILURE, PASSED, TAGS, parts_of_place
from pylink.tabular.columns import Place
from pylink.tabular.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics.record import Diagnostic
    from pylink.remarks.record import Remark

# The kind of remark that each kind of diagnostic shows.
_KINDS = {DIAGNOSTICS[kind]: TAGS[kind] for kind in range(FAILURE, PASSED - 1, -1)}


class RemarkRow(NamedTuple):
    """A decision of the link: which pass, what it did or not, to which function or section.

    `kind` is Passed, Missed, Analysis or Failure, `file` and `line` the place in the source.
    `hotness` is how many bytes the decision concerns, where remarks have that.
    """

    kind: str
    pass_name: str
    name: str
    function: str
    file: str | None
    line: int | None
    hotness: Place | None
    message: str


def remark_table(remarks: Iterable[Remark]) -> Table[RemarkRow]:
    """A row for each remark, such as those of `pylink.remarks.read_remarks`."""
    return Table(
        RemarkRow,
        (
            RemarkRow(
                TAGS[remark.kind],
                remark.pass_name,
                remark.name,
                remark.function,
                _file_of(remark),
                remark.line or None,
                remark.hotness,
                remark.message,
            )
            for remark in remarks
        ),
    )


def _file_of(remark: Remark) -> str | None:
    """The file alone, where no line is known and files of remarks have the section, too."""
    if remark.file is None or remark.line > 0:
        return remark.file
    return parts_of_place(remark.file)[0]


def shown_remarks(records: Iterable[Diagnostic]) -> Table[RemarkRow]:
    """A row for each diagnostic that shows a remark."""
    return Table(RemarkRow, (_row(record) for record in records if record.kind in _KINDS))


def _row(record: Diagnostic) -> RemarkRow:
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
