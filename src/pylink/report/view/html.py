"""A report as one self-contained page: no scripts, no files beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pylink import __version__, aprof
from pylink.report.api.descriptions import describe, label
from pylink.report.api.metricname import unit
from pylink.report.model import Report, Scalar
from pylink.report.view.blocks import Plot
from pylink.report.view.bytetree import PARTS, byte_tree, counted, grow
from pylink.report.view.compare import Change, compare, headline, notable
from pylink.report.view.markup import Figures, plain
from pylink.report.view.numbers import text
from pylink.report.view.overview import (
    advice,
    failures,
    longest_of_name,
    session_rows,
    shortened,
    summary,
    title_of,
    were_judged,
    whole_first,
)
from pylink.report.view.pages import action_pages, focus_words
from pylink.report.view.template import page_from
from pylink.report.view.timeline import stretches
from pylink.terminal.progress import Progress

# Rows of the table of changes; the page is to be read, the rest is in --compare.
MOST_CHANGES = 60

# Columns of a table that a page has room for; a narrow one scrolls.
MOST_COLUMNS = 3


def page(
    reports: Sequence[tuple[str, Report]],
    growth: Sequence[tuple[str, aprof.Report]],
    progress: Progress | None = None,
) -> str:
    """The page: the last report in full, what changed since the first, and the plots of all.

    Reports come with the names that they go by. Without matplotlib a note takes the place of plots.
    `progress` is called for each plot.
    """
    try:
        from pylink.report.view.figures import chart, draw

        figures = draw(reports, growth, progress)
        drawn: Callable[[Plot], str] = chart
    except ImportError as error:
        drawn = _undrawn
        figures = Figures(note=str(error))
    name, shown = reports[-1] if reports else ("", None)
    pages = action_pages(shown) if shown else []
    kept = longest_of_name(pages)
    changes: list[Change] = []
    texts: list[str] = []
    if len(reports) > 1:
        every = compare(reports[0][1], reports[-1][1])
        changes, texts = notable(every)[:MOST_CHANGES], headline(every)
    return page_from(
        "page.html.j2",
        text=text,
        drawn=drawn,
        plain=plain,
        basename=os.path.basename,
        focus_words=focus_words,
        title_of=title_of,
        percent=_percent,
        describe=describe,
        label=label,
        unit=unit,
        shorten=shortened(shown),
        listed=_listed,
        version=__version__,
        title=Path(name).name if shown else "Cost functions",
        summary=summary(shown) if shown else "",
        session=session_rows(shown, name) if shown else [],
        advice=advice(pages),
        judged=were_judged(pages),
        pages=whole_first(kept),
        left_out=len(pages) - len(kept),
        figures=figures,
        timeline=stretches(shown) if shown else [],
        names=[each for each, _ in reports],
        most_columns=MOST_COLUMNS,
        changes=changes,
        headline=texts,
        broken=failures(pages),
        tree=byte_tree(shown) if shown else None,
        parts=grow(counted(shown, PARTS)) if shown else None,
    )


def _undrawn(plot: Plot) -> str:
    """What a chart is without matplotlib: its block says the same in bars and rows."""
    del plot
    return ""


def _listed(value: Scalar) -> str:
    """A value that may be a long list of names, with a space after each for lines to end at."""
    return value.replace(",", ", ") if isinstance(value, str) else ""


def _percent(value: float, longest: float) -> float:
    """How long a bar is."""
    return max(100 * value / longest, 0.0) if longest > 0 else 0.0
