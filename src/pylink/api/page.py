"""A result as HTML for notebooks: summary, time by phase, largest sections."""

from __future__ import annotations

from pylink.tabular.page import bars_html

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.api.tables import SectionRow
    from pylink.diagnostics.errors import Diagnostics
    from pylink.tabular.table import Table


def result_html(
    title: str, sections: Table[SectionRow], timings: dict[str, float], diagnostics: Diagnostics
) -> str:
    """Return the HTML of a result, with few rows and the names of the result's tables.

    `title` is HTML; `timings` are milliseconds by phase.
    """
    largest = sections.sorted_by("size", descending=True)
    return (
        f"<p>{title}</p>"
        + bars_html(timings)
        + (diagnostics._repr_html_() if diagnostics else "")
        + "<p>Largest sections</p>"
        + largest._repr_html_()
        + "<p><code>.sections</code>, <code>.symbols</code>, <code>.relocations</code>, "
        "<code>.sizes</code>, <code>.inputs</code>, <code>.phases</code> and "
        "<code>.remarks</code> are tables.</p>"
    )
