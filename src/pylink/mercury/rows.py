"""Decisions of deduplication, as rows of a table."""

from __future__ import annotations

from typing import NamedTuple

from pylink.tabular.columns import Place, Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.mercury.decisions import Decision
    from pylink.mercury.stages import Verdict


class FoldRow(NamedTuple):
    """The decision of deduplication on a cubin with Mercury sections, with the reason.

    `sections` and `size` are number and bytes of its Mercury sections that deduplication compares,
    None if it was not compared. `folds_into` is the cubin whose sections replace its own, None if
    it is kept. `compared_with` is the other cubin of its last comparison. `code` is 0 if it folds.
    `stage`, `entry` (a section) and `offset` say which stage rejected, and where.
    """

    name: str
    sections: int | None
    size: Size | None
    folds_into: str | None
    compared_with: str | None
    code: int | None
    stage: int | None
    entry: str | None
    offset: Place | None
    reason: str | None


def fold_row(name: str, folds_into: str | None, verdict: Verdict | None) -> FoldRow:
    """Make the row of one cubin; `verdict` is that of its last comparison, if any."""
    if verdict is None:
        return FoldRow(name, None, None, folds_into, None, None, None, None, None, None)
    item = verdict.candidate
    return FoldRow(
        name,
        len(item.headers) + len(item.targets),
        item.size,
        folds_into,
        verdict.reference.name,
        verdict.code,
        verdict.stage,
        verdict.entry,
        verdict.offset,
        verdict.reason,
    )


def decision_row(decision: Decision, names: Sequence[str]) -> FoldRow:
    """Make the row of a link's decision; `names` are the names of its files."""
    reference = decision.reference if decision.folds else None
    row = fold_row(
        names[decision.file], None if reference is None else names[reference], decision.verdict
    )
    if decision.stronger is None:
        return row
    return row._replace(code=decision.code, stage=decision.stage, reason=decision.reason)
