"""Creates the page of a report: one file without scripts, which needs no other file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from pylink import __version__, aprof
from pylink.report.api.descriptions import describe, label
from pylink.report.api.metricname import unit
from pylink.report.model import Report, Scalar
from pylink.report.view import overview
from pylink.report.view.blocks import Plot
from pylink.report.view.bytetree import PARTS, build_tree, byte_tree, instance_sizes
from pylink.report.view.compare import Change, compare, headline, notable_changes
from pylink.report.view.markup import Figures, strip_markup
from pylink.report.view.numbers import format_value
from pylink.report.view.pages import action_pages, focus_text
from pylink.report.view.template import page_from
from pylink.report.view.timeline import stretches
from pylink.terminal.progress import Progress

# Limit of rows in the table of changes; --compare with --all shows all.
MAX_CHANGES = 60

# Limit of the metrics beside each other in a table; a narrow page scrolls.
MAX_COLUMNS = 3


def page(
    reports: Sequence[tuple[str, Report]],
    growth: Sequence[tuple[str, aprof.Report]],
    progress: Progress | None = None,
) -> str:
    """Return the HTML page: the last report, the changes since the first, and the plots of all.

    `reports` and `growth`, those of --profile-aprof, are pairs (name of the file, report).
    Without matplotlib a note replaces the plots. `progress` advances at each plot of `growth`.
    """
    try:
        from pylink.report.view.figures import chart, draw

        figures = draw(reports, growth, progress)
        draw_plot: Callable[[Plot], str] = chart
    except ImportError as error:
        draw_plot = _no_drawing
        figures = Figures(note=str(error))
    name, report = reports[-1] if reports else ("", None)
    pages = action_pages(report) if report else []
    shown_pages = overview.longest_of_each_name(pages)
    changes: list[Change] = []
    sentences: list[str] = []
    if len(reports) > 1:
        all_changes = compare(reports[0][1], reports[-1][1])
        changes, sentences = notable_changes(all_changes)[:MAX_CHANGES], headline(all_changes)
    return page_from(
        "page.html.j2",
        text=format_value,
        draw_plot=draw_plot,
        strip_markup=strip_markup,
        basename=os.path.basename,
        focus_text=focus_text,
        title_of=overview.title_of,
        percent=_percent,
        describe=describe,
        label=label,
        unit=unit,
        shorten=overview.path_shortener(report),
        break_list=_break_list,
        version=__version__,
        title=Path(name).name if report else "Cost functions",
        summary=overview.summary(report) if report else "",
        session=overview.session_rows(report, name) if report else [],
        advice=overview.advice(pages),
        judged=overview.were_rules_applied(pages),
        pages=overview.put_whole_link_first(shown_pages),
        omitted=len(pages) - len(shown_pages),
        figures=figures,
        timeline=stretches(report) if report else [],
        names=[report_name for report_name, _ in reports],
        most_columns=MAX_COLUMNS,
        changes=changes,
        headline=sentences,
        broken=overview.failures(pages),
        tree=byte_tree(report) if report else None,
        parts=build_tree(instance_sizes(report, PARTS)) if report else None,
    )


def _no_drawing(plot: Plot) -> str:
    """Return "", without matplotlib, so that the page has a block's bars or rows, not a drawing."""
    del plot
    return ""


def _break_list(value: Scalar) -> str:
    """Return a text with a space after each comma, so that browsers can break lines there.

    "" for a number.
    """
    return value.replace(",", ", ") if isinstance(value, str) else ""


def _percent(value: float, longest: float) -> float:
    """Return the length of a bar in percent of the longest."""
    return max(100 * value / longest, 0.0) if longest > 0 else 0.0
