"""Diagnostics as rows of a table."""

from __future__ import annotations

from typing import NamedTuple

from pylink.diagnostics.severity import NAMES
from pylink.tabular.columns import Place
from pylink.tabular.table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics.record import Diagnostic


class DiagnosticRow(NamedTuple):
    """A diagnostic. `entry` is the number of an entry in the section, such as a relocation, if the
    diagnostic is about one. `offset` is bytes into the section, or into the file without one.
    `input` is the number, from 0, of the input in the call.
    """

    number: int
    kind: str
    severity: str
    message: str
    file: str | None
    input: int | None
    section: str | None
    entry: int | None
    offset: Place | None
    symbol: str | None


def diagnostic_table(records: Iterable[Diagnostic]) -> Table[DiagnosticRow]:
    """Return a table with a row for each record, without notes and details."""
    return Table(
        DiagnosticRow,
        (
            DiagnosticRow(
                record.number,
                record.kind,
                NAMES[record.level],
                record.message,
                record.file,
                record.input,
                record.section,
                record.index,
                record.offset,
                record.symbol,
            )
            for record in records
        ),
    )
