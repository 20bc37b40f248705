"""The results of a measurement: every run, facts about the machine, and comparisons of outputs.

A file of results is CSV: lines `# name: text` with facts and other texts, then a line with the
names of the columns, then a line for each run. Programs can read it as CSV in which `#` begins a
comment.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape

from pylink.bench.estimates import Estimate, exponent_of, median_of
from pylink.bench.rows import ContenderRow, RunRow
from pylink.tabular.table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink.bench.processes import Run

WARM, RESTED = "warm", "rested"  # modes: without and with a pause before each run
WHOLE = Fraction(1)  # the part of all inputs

COLUMNS = ("contender", "mode", "part", "inputs", "round", "seconds", "cpu_seconds", "peak_bytes")
# A larger load average per core shows that other programs were at work.
BUSY_LOAD = 0.25
# Prefixes, in a file of results, of texts about one contender (see `Results`).
ABOUT, ANSWER, FAILED = "about", "answer", "failed"

# Limit of the characters of a fact or a note that a notebook shows.
MAX_FACT_LENGTH = 200

# The time of a part with fewer inputs is mostly the start of a process, so it does not count.
FEWEST_FOR_GROWTH = 2
# Times of fewer parts (shares of the inputs) do not show how time grows with the inputs.
FEWEST_PARTS = 3


class MalformedResults(Exception):
    """A file without results, or two results that cannot be compared; the text says why."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: times in seconds, peak resident memory in bytes.

    `part` is the share of the inputs that was linked, and `inputs` their number without archives.
    `mode` is WARM or RESTED, and `round` counts from 0 in each mode.
    """

    contender: str
    mode: str
    part: Fraction
    inputs: int
    round: int
    seconds: float
    cpu: float
    peak: int


@dataclass(slots=True, repr=False)
class Results:
    """All runs of a measurement, facts by name, and texts by contender.

    The texts are `about`, `answers` and `failures`. Failures are in the order in which they
    happened.
    """

    facts: dict[str, str] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)  # descriptions
    answers: dict[str, str] = field(default_factory=dict)  # comparisons of outputs
    failures: dict[str, str] = field(default_factory=dict)  # reasons
    runs: list[Measured] = field(default_factory=list)

    def add_run(
        self, contender: str, mode: str, part: Fraction, inputs: int, turn: int, run: Run
    ) -> None:
        """Add a run of round `turn`; it linked `inputs` inputs, which are the share `part`."""
        self.runs.append(
            Measured(contender, mode, part, inputs, turn, run.seconds, run.cpu, run.rss)
        )

    @property
    def table(self) -> Table[RunRow]:
        """A row for each run, in order."""
        return Table(
            RunRow,
            (
                RunRow(
                    run.contender,
                    run.mode,
                    float(run.part),
                    run.inputs,
                    run.round,
                    run.seconds,
                    run.cpu,
                    run.peak,
                )
                for run in self.runs
            ),
        )

    @property
    def medians(self) -> Table[ContenderRow]:
        """A row for each contender and mode: its median times with all inputs, with intervals."""
        rows = (self._row(name, mode) for mode in self.modes() for name in self.contenders())
        return Table(ContenderRow, (row for row in rows if row is not None))

    def _row(self, name: str, mode: str) -> ContenderRow | None:
        """Return the row of a contender; None if it did not run in that mode with all inputs."""
        median_time, reference = median(self, name, mode), self.reference()
        if median_time is None or reference is None:
            return None
        ratios = self.ratios(name, reference, mode) if name != reference else []
        ratio = median_of(ratios) if ratios else None
        runs = list(self.of(name, mode).values())
        return ContenderRow(
            name,
            mode,
            len(runs),
            median_time.value,
            median_time.low,
            median_time.high,
            min(run.seconds for run in runs),
            median_of([run.cpu for run in runs]).value,
            None if ratio is None else ratio.value,
            None if ratio is None else ratio.low,
            None if ratio is None else ratio.high,
            median_time.certain,
            self.peak(name),
        )

    def __repr__(self) -> str:
        names = ", ".join(self.contenders())
        return f"<Results of {len(self.runs)} runs: {names or 'nothing ran'}>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the medians, notes that explain them, and the facts."""
        medians = self.medians
        notes = [f"{name}: {text}" for name, text in self.about.items()]
        if (reference := self.reference()) is not None:
            notes.insert(0, f"others are compared with {reference}")
        if not all(row.certain for row in medians):
            notes.append("intervals are the least and the largest: rounds are fewer than six")
        facts = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(text[:MAX_FACT_LENGTH])}</td></tr>"
            for name, text in self.facts.items()
        )
        return (
            medians._repr_html_()
            + "".join(f"<p>{escape(line[:MAX_FACT_LENGTH])}</p>" for line in notes)
            + f"<details><summary>the link and the machine</summary><table>{facts}</table>"
            "</details><p><code>.table</code> has each run, <code>.medians</code> these rows.</p>"
        )

    def contenders(self) -> list[str]:
        """Return the names of the contenders that ran, in the order of their first runs."""
        return list(dict.fromkeys(run.contender for run in self.runs))

    def modes(self) -> list[str]:
        """Return the modes that were measured: `warm`, `rested` or both."""
        return [mode for mode in (WARM, RESTED) if any(run.mode == mode for run in self.runs)]

    def of(self, contender: str, mode: str = WARM, part: Fraction = WHOLE) -> dict[int, Measured]:
        """Return the runs of a contender in a mode, with a share of the inputs, by round."""
        return {
            run.round: run
            for run in self.runs
            if run.contender == contender and run.mode == mode and run.part == part
        }

    def seconds(self, contender: str, mode: str = WARM, part: Fraction = WHOLE) -> list[float]:
        """Return the times of the runs that `of` returns, in the order of rounds."""
        return [run.seconds for run in self.of(contender, mode, part).values()]

    def ratios(self, contender: str, other: str, mode: str = WARM) -> list[float]:
        """Return the ratios of the contender's time to that of `other`, for each round of both.

        Other load on the machine affects both in the same round alike.
        """
        own_runs, other_runs = self.of(contender, mode), self.of(other, mode)
        return [
            own_runs[turn].seconds / other_runs[turn].seconds
            for turn in own_runs
            if turn in other_runs
        ]

    def processor_ratios(self, contender: str, other: str, mode: str = WARM) -> list[float]:
        """Return ratios of processor time for each round of both; empty if a time of `other` is 0.

        Other load on the machine disturbs processor time less than the time that passes.
        """
        own_runs, other_runs = self.of(contender, mode), self.of(other, mode)
        own_and_other_times = [
            (own_runs[turn].cpu, other_runs[turn].cpu) for turn in own_runs if turn in other_runs
        ]
        return (
            [first / second for first, second in own_and_other_times]
            if all(second > 0 for _, second in own_and_other_times)
            else []
        )

    def peak(self, contender: str) -> int:
        """Return the peak resident bytes of a contender, over all its runs."""
        return max((run.peak for run in self.runs if run.contender == contender), default=0)

    def parts(self, contender: str) -> list[Fraction]:
        """Return the shares of the inputs that a contender linked without a rest, ascending."""
        parts = {run.part for run in self.runs if run.contender == contender and run.mode == WARM}
        return sorted(parts)

    def growth(self, contender: str) -> Estimate | None:
        """Return the exponent of time over inputs; None for fewer than three parts that count.

        A part, i.e. a share of the inputs, does not count if it has fewer than two inputs. The
        result is also None if no round has a run of each part that counts.
        """
        runs = {part: self.of(contender, part=part) for part in self.parts(contender)}
        sizes = {part: next(iter(part_runs.values())).inputs for part, part_runs in runs.items()}
        parts = [part for part in runs if sizes[part] >= FEWEST_FOR_GROWTH]
        if len(parts) < FEWEST_PARTS:
            return None
        common = set.intersection(*(set(runs[part]) for part in parts))
        rounds = [[runs[part][turn].seconds for part in parts] for turn in sorted(common)]
        return exponent_of([sizes[part] for part in parts], rounds) if rounds else None

    def load_when_busy(self) -> str:
        """Return a text about the load at the start, if that disturbs the measurement.

        It is empty otherwise.
        """
        load, cores = self.facts.get("load", ""), self.facts.get("cores", "")
        try:
            is_busy = float(load.split()[0]) > BUSY_LOAD * int(cores)
        except (IndexError, ValueError):
            return ""
        return f"load {load} on {cores} cores" if is_busy else ""

    def reference(self) -> str | None:
        """Return the contender that others are compared with: the first nvlink, or the first."""
        names = self.contenders()
        return next(
            (name for name in names if name.startswith("nvlink")), names[0] if names else None
        )


def median(results: Results, contender: str, mode: str = WARM) -> Estimate | None:
    """Return the median seconds with all inputs in a mode; None without such a run."""
    seconds = results.seconds(contender, mode)
    return median_of(seconds) if seconds else None


def to_csv(results: Results) -> str:
    """Return the results as text of a file that `from_csv` reads."""
    file_text = io.StringIO()
    for name, value in results.facts.items():
        file_text.write(f"# {name}: {_on_one_line(value)}\n")
    for prefix, by_contender in (
        (ABOUT, results.about),
        (ANSWER, results.answers),
        (FAILED, results.failures),
    ):
        for contender, value in by_contender.items():
            file_text.write(f"# {prefix} {contender}: {_on_one_line(value)}\n")
    writer = csv.writer(file_text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in results.runs:
        times = f"{run.seconds:.9f}", f"{run.cpu:.6f}"
        writer.writerow(
            [run.contender, run.mode, run.part, run.inputs, run.round, *times, run.peak]
        )
    return file_text.getvalue()


def from_csv(text: str, name: str) -> Results:
    """Read a text of `to_csv`, which errors call `name`; MalformedResults for any other text."""
    results = Results()
    rows = []  # number, from 1, and text of each line that does not begin with #
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            label, separator, value = line[1:].strip().partition(": ")
            if not separator:
                raise MalformedResults(f"{name}:{number}: no fact: {line[:60]}")
            _add_fact(results, label, value)
        else:
            rows.append((number, line))
    if not rows or tuple(_cells(rows[0][1])) != COLUMNS:
        raise MalformedResults(f"{name}: not a result of pylink bench --csv")
    for number, line in rows[1:]:
        try:
            contender, mode, part, inputs, turn, seconds, cpu, peak = _cells(line)
            run = Measured(
                contender,
                mode,
                Fraction(part),
                int(inputs),
                int(turn),
                float(seconds),
                float(cpu),
                int(peak),
            )
            if not (run.seconds > 0 and run.inputs >= 0 and mode in (WARM, RESTED)):
                raise ValueError(line)
        except (ValueError, ZeroDivisionError):
            raise MalformedResults(f"{name}:{number}: no run: {line[:60]}") from None
        results.runs.append(run)
    if not results.runs:
        raise MalformedResults(f"{name}: there are no runs in it")
    return results


def _add_fact(results: Results, label: str, text: str) -> None:
    """Add a fact, or a text about one contender if the label says so."""
    prefix, _, contender = label.partition(" ")
    texts = {ABOUT: results.about, ANSWER: results.answers, FAILED: results.failures}
    if contender and prefix in texts:
        texts[prefix][contender] = text
    else:
        results.facts[label] = text


def _cells(line: str) -> Sequence[str]:
    """Return the cells of a line of CSV; an empty list if it is invalid."""
    rows: Iterable[list[str]] = csv.reader([line])
    try:
        return next(iter(rows), [])
    except csv.Error:  # a cell of 128 KiB, which `to_csv` never writes
        return []


def _on_one_line(text: str) -> str:
    """Return a text in one line: each sequence of blanks and line ends becomes one blank."""
    return " ".join(text.split())
