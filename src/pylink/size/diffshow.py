"""Shows two builds side by side: on a terminal, in a pull request's comment, and for programs."""

from __future__ import annotations

from pylink.diagnostics.stream import printable
from pylink.size.diff import COLUMNS, Change, Reason, changes, column_of, reasons, signed_text
from pylink.size.formats import VERSION, csv_cell, markdown_cell
from pylink.size.levels import EVERYTHING, Row, Selection, counts_functions
from pylink.size.screen import short_name
from pylink.terminal.numbers import bytes_text
from pylink.terminal.tables import align_columns, csv_text, json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.size.model import Sizes

# Levels of each table that people get without --by.
DEFAULT_LEVELS = (("kind",), ("target",))
# Levels of each table of `--json` without --by.
JSON_LEVELS = (
    ("file",),
    ("kind",),
    ("target",),
    ("unit",),
    ("part",),
    ("template",),
    ("function",),
)


def _columns(old: Sizes, new: Sizes) -> list[str]:
    """Return the columns to show: `installed`, preceded by `download` if both builds have it."""
    has_download = column_of(old, new) == "download"
    return ["download", "installed"] if has_download else ["installed"]


def _level_table(
    old: Sizes, new: Sizes, by: Sequence[str], top: int, selection: Selection
) -> list[tuple[str, ...]]:
    """Return a table by the levels `by`: head, changes, all further changes as one row, sum.

    Changes without a difference are omitted. At most `top` of the others have a row, 0 for all.
    """
    columns = _columns(old, new)
    of_functions = counts_functions(by, selection)
    level_changes = [
        change
        for change in changes(old, new, by, selection)
        if any(change.difference(column) for column in columns)
    ]
    head = [*by]
    for column in columns:
        head += [f"{column} old", "new", "difference"]
    table = [tuple(head)]
    shown_changes = level_changes[:top] if top else level_changes
    table += [
        (
            *(printable(name) for name in change.keys),
            *_cells(change, columns, of_functions=of_functions),
        )
        for change in shown_changes
    ]
    if len(shown_changes) < len(level_changes):
        omitted = _sum_changes(level_changes[len(shown_changes) :])
        name = f"({len(level_changes) - len(shown_changes)} more)"
        table.append(
            (name, *[""] * (len(by) - 1), *_cells(omitted, columns, of_functions=of_functions))
        )
    total = _sum_changes(changes(old, new, by, selection))
    table.append(("sum", *[""] * (len(by) - 1), *_cells(total, columns, of_functions=False)))
    return table


def _sum_changes(summed: Sequence[Change]) -> Change:
    """Return one change, without keys, with the sums of all columns of both builds."""
    sides = []
    for side in ("old", "new"):
        sums = {
            column: sum(getattr(getattr(change, side), column) for change in summed)
            for column in COLUMNS
        }
        estimated = any(getattr(change, side).estimated for change in summed)
        sides.append(
            Row((), 0, sums["unpacked"], sums["installed"], sums["download"], estimated=estimated)
        )
    return Change((), *sides)


def _cells(change: Change, columns: Sequence[str], *, of_functions: bool) -> list[str]:
    """Return old bytes, new bytes and the difference of each column.

    `of_functions` means a row of functions, templates or parts. A difference of its download bytes
    has the ~ of an estimate, and one of its installed bytes if the change says so.
    """
    cells = []
    for column in columns:
        is_estimated = (
            (change.old.estimated or change.new.estimated)
            if column == "installed"
            else of_functions
        )
        old, new = getattr(change.old, column), getattr(change.new, column)
        cells += [
            bytes_text(old),
            bytes_text(new),
            signed_text(new - old, estimated=is_estimated and of_functions),
        ]
    return cells


def text_lines(
    old: Sizes, new: Sizes, by: Sequence[str], top: int, selection: Selection = EVERYTHING
) -> list[str]:
    """Return the tables of the levels, largest change first, and the reasons.

    `top` limits the rows of a table and the reasons; 0 shows all. An empty `by` means
    DEFAULT_LEVELS.
    """
    lines = []
    for levels in [tuple(by)] if by else DEFAULT_LEVELS:
        table = [
            tuple(map(short_name, row)) for row in _level_table(old, new, levels, top, selection)
        ]
        lines += [
            *align_columns(table, " " * len(levels) + "r" * (len(table[0]) - len(levels))),
            "",
        ]
    sentences = reasons(old, new)
    if sentences:
        lines.append("why (installed; code is ~ shared among functions):")
        lines += [
            f"  {printable(_reason_line(reason))}" for reason in sentences[: top or len(sentences)]
        ]
        if top and len(sentences) > top:
            lines.append(f"  and {len(sentences) - top} more: --top 0")
    else:
        lines.append("No target, compression or function changed.")
    return lines


def _reason_line(reason: Reason) -> str:
    """Return a reason after its difference of installed bytes."""
    return f"{signed_text(reason.installed):>10}  {reason.text}"


def markdown_text(
    old: Sizes, new: Sizes, by: Sequence[str], top: int, selection: Selection = EVERYTHING
) -> str:
    """Return Markdown for a pull request's comment: total in bold, tables, and list of reasons."""
    columns = _columns(old, new)
    total = _sum_changes(changes(old, new, (), selection))
    sums = [
        f"{column} {bytes_text(getattr(total.old, column))} → "
        f"{bytes_text(getattr(total.new, column))} ({signed_text(total.difference(column))})"
        for column in columns
    ]
    lines = [f"**Size of device code and files: {'; '.join(sums)}**", ""]
    for levels in [tuple(by)] if by else DEFAULT_LEVELS:
        head, *body = _level_table(old, new, levels, top, selection)
        lines += [f"| {' | '.join(head)} |"]
        lines += ["|" + "---|" * len(levels) + "---:|" * (len(head) - len(levels))]
        for row in body:
            names = [markdown_cell(name) for name in row[: len(levels)]]
            lines.append(f"| {' | '.join([*names, *row[len(levels) :]])} |")
        lines.append("")
    for reason in reasons(old, new)[: top or None]:
        lines.append(f"* {signed_text(reason.installed)}: {markdown_cell(reason.text)}")
    return "\n".join(lines).rstrip() + "\n"


def csv_table(old: Sizes, new: Sizes, by: Sequence[str], selection: Selection = EVERYTHING) -> str:
    """Return CSV text with a head and a line for each group: three columns of both builds."""
    head = [*by]
    for column in COLUMNS:
        head += [f"{column}_old", f"{column}_new"]
    body = []
    for change in changes(old, new, by, selection):
        cells: list[object] = [csv_cell(name) for name in change.keys]
        for column in COLUMNS:
            cells += [getattr(change.old, column), getattr(change.new, column)]
        body.append(cells)
    return csv_text([head, *body])


def as_json(old: Sizes, new: Sizes, by: Sequence[str], selection: Selection = EVERYTHING) -> str:
    """Return a JSON object with tables of changes, and the reasons.

    There is one table, by the levels `by`, or if `by` is empty, a table for each of JSON_LEVELS.
    """
    document = {
        "version": VERSION,
        "tables": [
            {
                "by": list(levels),
                "rows": [
                    {
                        **dict(zip(levels, change.keys, strict=True)),
                        "old": {column: getattr(change.old, column) for column in COLUMNS},
                        "new": {column: getattr(change.new, column) for column in COLUMNS},
                        "estimated": change.old.estimated or change.new.estimated,
                    }
                    for change in changes(old, new, levels, selection)
                ],
            }
            for levels in ([tuple(by)] if by else JSON_LEVELS)
        ],
        "reasons": [
            {"text": reason.text, "installed": reason.installed, "unpacked": reason.unpacked}
            for reason in reasons(old, new)
        ],
    }
    return json_text(document)
