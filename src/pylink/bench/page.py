"""Results as one self-contained page, in the style of the pages of `pylink report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pylink import __version__
from pylink.bench import formats
from pylink.bench.answers import is_different
from pylink.bench.estimates import median_of
from pylink.bench.results import WARM, Results, median

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.bench.compare import Change

# Directory of the template.
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: the name beside it, its length in percent of the longest, and its value."""

    name: str
    percent: float
    text: str


@dataclass(frozen=True, slots=True)
class ModeTimes:
    """The times of one mode (runs without, or with a pause before each), as bars and as a table."""

    mode: str
    title: str
    bars: list[Bar]
    columns: list[str]
    rows: list[list[str]]


def page(results: Results) -> str:
    """Return the page of one measurement; without matplotlib a note replaces the curves."""
    modes = []
    for mode in results.modes():
        columns = formats.time_columns(results)
        title = formats.mode_title(results, mode)
        rows = formats.time_rows(results, mode)
        modes.append(ModeTimes(mode, title, _bars(results, mode), columns, rows))
    rounds = [
        [
            *(run.contender, run.mode, str(run.part), str(run.inputs), str(run.round + 1)),
            *(formats.time_text(run.seconds), formats.time_text(run.cpu)),
        ]
        for run in results.runs
    ]
    growth = formats.growth_rows(results)
    curves, curves_note = _curves(results) if growth else ("", "")
    return _render(
        title=f"pylink bench: {results.facts.get('link', '')}",
        summary=summary(results),
        warnings=[*busy_warnings(results), *difference_lines(results)],
        shown=modes,
        growth=growth,
        growth_columns=formats.growth_columns(results) if growth else [],
        curves=curves,
        curves_note=curves_note,
        answers=list(results.answers.items()),
        failures=list(results.failures.items()),
        facts=formats.fact_rows(results),
        footnotes=formats.footnotes(results),
        rounds=rounds,
        rounds_columns=["contender", "mode", "part", "inputs", "round", "wall", "processor"],
    )


def compared_page(
    before: Results,
    after: Results,
    names: tuple[str, str],
    title: str,
    *,
    changes: Sequence[Change],
    warnings: Sequence[str],
    others: Sequence[tuple[str, str, str]],
) -> str:
    """Return the page of two measurements; facts and footnotes are those of the second.

    `names` are those of the two files, `title` that of the table of `changes`. `others` are the
    facts that differ: name, text before, text after.
    """
    return _render(
        title=f"pylink bench: {names[0]} and {names[1]}",
        summary=[
            f"{change.contender}: {change.verdict}"
            for change in changes
            if change.contender.startswith("pylink") and change.mode == WARM
        ],
        warnings=[*warnings, *difference_lines(before), *difference_lines(after)],
        compared_title=title,
        compared_columns=formats.COMPARED_COLUMNS,
        changes=formats.compared_rows(changes),
        other_facts=others,
        facts=formats.fact_rows(after),
        footnotes=formats.footnotes(after),
    )


def summary(results: Results) -> list[str]:
    """Return a line for each pylink: its median time, and the ratio to that of the reference.

    The reference is the contender that others are compared with, mostly nvlink.
    """
    reference = results.reference()
    lines = []
    for name in results.contenders():
        if not name.startswith("pylink") or reference is None:
            continue
        median_time, ratios = median(results, name), results.ratios(name, reference)
        if median_time is not None and ratios:
            ratio = median_of(ratios)
            lines.append(
                f"{name}: {formats.time_text(median_time.value)}, {ratio.value:.2f} times "
                f"{reference}'s ({formats.interval_text(ratio)})"
            )
    return lines


def busy_warnings(results: Results) -> list[str]:
    """Return a warning if other programs were at work; else nothing."""
    load = results.load_when_busy()
    return [f"Other programs were at work when this began: {load}."] if load else []


def difference_lines(results: Results) -> list[str]:
    """Return lines about outputs that differ from nvlink's."""
    return [f"{name}: {answer}" for name, answer in results.answers.items() if is_different(answer)]


def _bars(results: Results, mode: str) -> list[Bar]:
    """Return a bar for the median time of each contender that ran in a mode with all inputs."""
    medians = {name: median(results, name, mode) for name in results.contenders()}
    values = {
        name: median_time.value for name, median_time in medians.items() if median_time is not None
    }
    longest = max(values.values())
    return [
        Bar(name, 100 * value / longest, formats.time_text(value)) for name, value in values.items()
    ]


def _curves(results: Results) -> tuple[str, str]:
    """Return curves of time by inputs as an `<svg>` element, and "".

    Without matplotlib, return "" and a note on what to install.
    """
    try:
        from pylink.report.view import plots
    except ImportError as error:
        return "", str(error)
    curves = []
    for name in results.contenders():
        points = []
        for part in results.parts(name):
            runs = results.of(name, part=part)
            size = next(iter(runs.values())).inputs
            points.append((float(size), median_of([run.seconds for run in runs.values()]).value))
        exponent = results.growth(name)
        if exponent is not None:
            curves.append(
                plots.Curve(
                    name,
                    [(size, seconds * formats.NS) for size, seconds in points],
                    caption=f"exponent {exponent.value:.2f} ({formats.interval_text(exponent)})",
                    size_title="inputs",
                    cost_title="wall time",
                )
            )
    caption = "Time against the number of inputs, the median of each part."
    return plots.svg(plots.curves(curves), "Growth", caption), ""


# Values of the template that only a page of one measurement, or only a page of two, has.
EMPTY_PARTS: dict[str, object] = {
    "shown": [],
    "growth": [],
    "growth_columns": [],
    "curves": "",
    "curves_note": "",
    "compared_title": "",
    "compared_columns": [],
    "changes": [],
    "other_facts": [],
    "answers": [],
    "failures": [],
    "rounds": [],
    "rounds_columns": [],
}


def _render(**values: object) -> str:
    """Return the page of the template with `values`; those that it lacks are from EMPTY_PARTS."""
    from pylink.report.view.template import page_from  # needs packages of an extra

    return page_from("bench.html.j2", HERE, version=__version__, **{**EMPTY_PARTS, **values})
