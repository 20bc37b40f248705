"""Results as tables of text; pages show the same rows."""

from __future__ import annotations

from pylink.bench.estimates import median_of
from pylink.bench.results import RESTED, WARM, median
from pylink.report.view.numbers import format_value
from pylink.terminal.tables import TextTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.bench.compare import Change
    from pylink.bench.estimates import Estimate
    from pylink.bench.results import Results

# Titles of modes.
TITLES = {WARM: "right after one another", RESTED: "after a rest"}
NS = 1e9  # nanoseconds of a second

# Names of the facts that are first on a page, in order; all others follow.
FIRST_FACTS = ("link", "command", "date", "load", "rounds", "rest", "growth")

# The title of columns with intervals, which hold the true value 19 times in 20, except for those
# that are marked with `*`.
CERTAIN = "19 in 20"


def time_text(seconds: float) -> str:
    """Return a time with a fitting unit."""
    return format_value(seconds * NS, "nsecond")


def interval_text(estimate: Estimate, *, is_time: bool = False) -> str:
    """Return the bounds of an interval; `*` marks those that are not 95 % certain."""
    bounds = (
        time_text(bound) if is_time else f"{bound:.2f}" for bound in (estimate.low, estimate.high)
    )
    return " to ".join(bounds) + ("" if estimate.certain else " *")


def time_columns(results: Results) -> list[str]:
    """Return the heads of the columns of `time_rows`."""
    ratio_title = f"/ {results.reference()}"
    times = ["contender", "median", CERTAIN, "least", ratio_title, CERTAIN]
    return [*times, "rounds", "processor", ratio_title, "peak memory"]


def time_rows(results: Results, mode: str) -> list[list[str]]:
    """Return a row for each contender that ran in a mode: its times with all inputs."""
    reference = results.reference()
    rows = []
    for name in results.contenders():
        median_time = median(results, name, mode)
        if median_time is None or reference is None:
            continue
        runs = list(results.of(name, mode).values())
        is_compared = name != reference
        ratios = results.ratios(name, reference, mode) if is_compared else []
        cpu_ratios = results.processor_ratios(name, reference, mode) if is_compared else []
        ratio = median_of(ratios) if ratios else None
        rows.append(
            [
                name,
                time_text(median_time.value),
                interval_text(median_time, is_time=True),
                time_text(min(run.seconds for run in runs)),
                f"{ratio.value:.2f}" if ratio else "",
                interval_text(ratio) if ratio else "",
                str(len(runs)),
                time_text(median_of([run.cpu for run in runs]).value),
                f"{median_of(cpu_ratios).value:.2f}" if cpu_ratios else "",
                format_value(results.peak(name), "byte"),
            ]
        )
    return rows


def growth_rows(results: Results) -> list[list[str]]:
    """Return a row for each contender with an exponent e of time ~ inputs ** e.

    A row has the median time for each part (share of the inputs), the exponent, and its interval.
    """
    rows = []
    for name in results.contenders():
        exponent = results.growth(name)
        if exponent is not None:
            medians = [
                time_text(median_of(results.seconds(name, part=part)).value)
                for part in results.parts(name)
            ]
            rows.append([name, *medians, f"{exponent.value:.2f}", interval_text(exponent)])
    return rows


def growth_columns(results: Results) -> list[str]:
    """Return the heads of the columns of `growth_rows`."""
    name = results.contenders()[0]
    parts = results.parts(name)
    sizes = [next(iter(results.of(name, part=part).values())).inputs for part in parts]
    return ["contender", *(f"{size:,} inputs" for size in sizes), "exponent", CERTAIN]


def tables(results: Results) -> list[TextTable]:
    """Return all tables for a terminal."""
    text_tables = [TextTable("the link", ["", ""], list(results.facts.items()), 2)]
    text_tables += [
        TextTable(mode_title(results, mode), time_columns(results), time_rows(results, mode))
        for mode in results.modes()
    ]
    growth = growth_rows(results)
    if growth:
        text_tables.append(
            TextTable("growth: time ~ inputs ** exponent", growth_columns(results), growth)
        )
    if results.answers:
        answers = list(results.answers.items())
        text_tables.append(TextTable("answers", ["contender", "output"], answers, 2))
    if results.failures:
        failures = [[name, reason.partition("\n")[0]] for name, reason in results.failures.items()]
        text_tables.append(TextTable("not measured", ["contender", "because"], failures, 2))
    return text_tables


def mode_title(results: Results, mode: str) -> str:
    """Return the title of a mode; that of RESTED has the length of the pause before each run."""
    rest_text = f" of {results.facts['rest']}" if mode == RESTED and "rest" in results.facts else ""
    return f"{TITLES[mode]}{rest_text}"


def footnotes(results: Results) -> list[str]:
    """Return notes on the figures: what each contender times, and the mark of uncertain bounds."""
    notes = [f"{name}: {reason}" for name, reason in results.about.items()]
    uncertain = any(
        not median_of(results.seconds(name, mode)).certain
        for mode in results.modes()
        for name in results.contenders()
        if results.seconds(name, mode)
    )
    if uncertain:
        notes.append("* the least and the largest value: six rounds are needed for an interval")
    return notes


COMPARED_COLUMNS = (
    "contender", "before", "after", "after / before", CERTAIN, "beside the control", CERTAIN, "",
)  # fmt: skip


def compared_rows(changes: Sequence[Change]) -> list[list[str]]:
    """Return a row for each change, with the columns of COMPARED_COLUMNS."""
    return [
        [
            change.contender if change.mode == WARM else f"{change.contender}, rested",
            time_text(change.before),
            time_text(change.after),
            f"{change.time.value:.2f}",
            interval_text(change.time),
            f"{change.relative.value:.2f}" if change.relative else "",
            interval_text(change.relative) if change.relative else "",
            change.verdict,
        ]
        for change in changes
    ]


def fact_rows(results: Results) -> list[tuple[str, str]]:
    """Return the facts for a page, as names and texts: first FIRST_FACTS, then the others."""
    first_names = [name for name in FIRST_FACTS if name in results.facts]
    names = [*first_names, *(name for name in results.facts if name not in first_names)]
    return [(name, results.facts[name]) for name in names]
