"""A table as a notebook shows it: few rows, whatever it has."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Rows that repr and a notebook show.
SHOWN = 10
# Characters to which a cell of a page and a line of repr are cut; the row itself has all of them.
CELL = 120
RIGHT = ' style="text-align:right"'
# Width of the longest bar, in ems.
WIDEST = 20


def table_html(rows: Sequence[Sequence[object]], dtypes: Mapping[str, str], summary: str) -> str:
    """The first rows, numbers to the right, and a line on the rest."""
    numeric = [kind != "U" for kind in dtypes.values()]
    head = "".join(
        f"<th{RIGHT if right else ''}>{escape(name)}</th>"
        for name, right in zip(dtypes, numeric, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(_cell(*pair) for pair in zip(row, numeric, strict=True)) + "</tr>"
        for row in rows[:SHOWN]
    )
    rest = len(rows) - SHOWN
    more = (
        f"<p>{rest:,} more rows; <code>table[{SHOWN}:]</code> or "
        "<code>pandas.DataFrame(table)</code> has them.</p>"
        if rest > 0
        else ""
    )
    return (
        f"<table><caption>{escape(summary.strip('<>'))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    )


def bars_html(phases: Mapping[str, float]) -> str:
    """A bar for each phase, as long as it took, in milliseconds."""
    longest = max(phases.values(), default=0.0) or 1.0
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td style='text-align:right'>{spent:.2f} ms</td><td>"
        f"<div style='background:#4a90d9;height:.7em;width:{WIDEST * spent / longest:.2f}em'></div>"
        "</td></tr>"
        for name, spent in phases.items()
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _cell(value: object, numeric: bool) -> str:
    text = "" if value is None else str(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    if len(text) > CELL:
        text = f"{text[: CELL - 3]}..."
    return f"<td{RIGHT if numeric else ''}>{escape(text)}</td>"
