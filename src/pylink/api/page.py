"""A result as a notebook shows it: what was linked, where the time went, what is large."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylink.api.tables import SectionRow
    from pylink.diagnostics.errors import Diagnostics
    from pylink.tabular.table import Table

# Width of the bar of the longest phase, in ems.
WIDEST = 20


def result_html(
    title: str, sections: Table[SectionRow], timings: dict[str, float], diagnostics: Diagnostics
) -> str:
    """Few rows, whatever was linked; says how to get the others. `title` is HTML."""
    largest = sections.sorted_by("size", descending=True)
    return (
        f"<p>{title}</p>"
        + _phases(timings)
        + (diagnostics._repr_html_() if diagnostics else "")
        + "<p>Largest sections</p>"
        + largest._repr_html_()
        + "<p><code>.sections</code>, <code>.symbols</code>, <code>.relocations</code>, "
        "<code>.inputs</code> and <code>.phases</code> are tables.</p>"
    )


def _phases(timings: dict[str, float]) -> str:
    """A bar for each phase, as long as it took."""
    longest = max(timings.values(), default=0.0) or 1.0
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td style='text-align:right'>{spent:.2f} ms</td><td>"
        f"<div style='background:#4a90d9;height:.7em;width:{WIDEST * spent / longest:.2f}em'></div>"
        "</td></tr>"
        for name, spent in timings.items()
    )
    return f"<table><tbody>{rows}</tbody></table>"
