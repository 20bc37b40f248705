"""Returns HTML for notebooks: the first rows of a table, and bars for the phases of a link."""

from __future__ import annotations

from html import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Number of rows that `repr` and a notebook show.
SHOWN_ROWS = 10
# Characters to which a cell in HTML and a line of `repr` are cut. The table has the whole value.
CELL_WIDTH = 120
RIGHT_ALIGNED = ' style="text-align:right"'
# Width of the longest bar, in ems.
LONGEST_BAR = 20


def table_html(rows: Sequence[Sequence[object]], dtypes: Mapping[str, str], summary: str) -> str:
    """Return an HTML table of the first rows, and a line that says how many more there are.

    `dtypes` are numpy's types of the columns by name, as in `Table.dtypes`; `summary` is a caption.
    """
    is_numeric = [kind != "U" for kind in dtypes.values()]
    head = "".join(
        f"<th{RIGHT_ALIGNED if numeric else ''}>{escape(name)}</th>"
        for name, numeric in zip(dtypes, is_numeric, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            _cell(value, numeric=numeric) for value, numeric in zip(row, is_numeric, strict=True)
        )
        + "</tr>"
        for row in rows[:SHOWN_ROWS]
    )
    hidden = len(rows) - SHOWN_ROWS
    more_rows_text = (
        f"<p>{hidden:,} more rows; <code>table[{SHOWN_ROWS}:]</code> or "
        "<code>pandas.DataFrame(table)</code> has them.</p>"
        if hidden > 0
        else ""
    )
    return (
        f"<table><caption>{escape(summary.strip('<>'))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more_rows_text}"
    )


def bars_html(phases: Mapping[str, float]) -> str:
    """Return HTML with a row per phase: name, milliseconds, and a bar in proportion to them."""
    longest = max(phases.values(), default=0.0) or 1.0
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td style='text-align:right'>{spent:.2f} ms</td><td>"
        "<div style='background:#4a90d9;height:.7em;"
        f"width:{LONGEST_BAR * spent / longest:.2f}em'></div></td></tr>"
        for name, spent in phases.items()
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _cell(value: object, *, numeric: bool) -> str:
    """Return the HTML of a cell with this value; `numeric` aligns it to the right."""
    text = "" if value is None else str(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    if len(text) > CELL_WIDTH:
        text = f"{text[: CELL_WIDTH - 3]}..."
    return f"<td{RIGHT_ALIGNED if numeric else ''}>{escape(text)}</td>"
