"""What a measurement left: every run, what the machine was, and what came of the answers.

As a file it is CSV: lines `# name: words` with the facts, then a line for each run. Readers of CSV
take it with `#` as the mark of comments.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from pylink.bench.estimates import Estimate, exponent_of, median_of
from pylink.bench.rows import ContenderRow, RunRow
from pylink.tabular.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pylink.bench.processes import Run

WARM, RESTED = "warm", "rested"
WHOLE = Fraction(1)

COLUMNS = ("contender", "mode", "part", "inputs", "round", "seconds", "cpu_seconds", "peak_bytes")
# Load for each core above which other programs were at work.
BUSY = 0.25
# Facts of one contender begin so, in a file.
ABOUT, ANSWER, FAILED = "about", "answer", "failed"

# Characters of a fact that a notebook shows.
LONGEST = 200

# Parts of so few inputs are mostly the start of a process.
FEWEST_FOR_GROWTH = 2


class MalformedResults(Exception):
    """A file that holds no results; the text says why."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: times in seconds, peak resident memory in bytes; `part` is a share of the inputs."""

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
    """All runs of a measurement, and facts by name; `about`, `answers` and `failures` are words
    by contender, in the order in which these took part."""

    facts: dict[str, str] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    runs: list[Measured] = field(default_factory=list)

    def add_run(
        self, contender: str, mode: str, part: Fraction, inputs: int, round_: int, run: Run
    ) -> None:
        """Add a run."""
        self.runs.append(
            Measured(contender, mode, part, inputs, round_, run.seconds, run.cpu, run.rss)
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
        """A row for each linker: what it took with all inputs, with intervals."""
        rows = (self._row(name, mode) for mode in self.modes() for name in self.contenders())
        return Table(ContenderRow, (row for row in rows if row is not None))

    def _row(self, name: str, mode: str) -> ContenderRow | None:
        """What a linker took; None where it did not run in that mode."""
        middle, reference = median(self, name, mode), self.reference()
        if middle is None or reference is None:
            return None
        ratios = self.ratios(name, reference, mode) if name != reference else []
        beside = median_of(ratios) if ratios else None
        runs = list(self.of(name, mode).values())
        return ContenderRow(
            name,
            mode,
            len(runs),
            middle.value,
            middle.low,
            middle.high,
            min(run.seconds for run in runs),
            median_of([run.cpu for run in runs]).value,
            None if beside is None else beside.value,
            None if beside is None else beside.low,
            None if beside is None else beside.high,
            middle.certain,
            self.peak(name),
        )

    def __repr__(self) -> str:
        names = ", ".join(self.contenders())
        return f"<Results of {len(self.runs)} runs: {names or 'nothing ran'}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the medians, what one has to know of them, the facts."""
        medians = self.medians
        notes = [f"{name}: {text}" for name, text in self.about.items()]
        if (reference := self.reference()) is not None:
            notes.insert(0, f"others are compared with {reference}")
        if not all(row.certain for row in medians):
            notes.append("intervals are the least and the largest: rounds are fewer than six")
        facts = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(text[:LONGEST])}</td></tr>"
            for name, text in self.facts.items()
        )
        return (
            medians._repr_html_()
            + "".join(f"<p>{escape(line[:LONGEST])}</p>" for line in notes)
            + f"<details><summary>the link and the machine</summary><table>{facts}</table>"
            "</details><p><code>.table</code> has each run, <code>.medians</code> these rows.</p>"
        )

    def contenders(self) -> list[str]:
        """Those that have run at least once."""
        return list(dict.fromkeys(run.contender for run in self.runs))

    def modes(self) -> list[str]:
        """Those of `warm` and `rested` that were measured."""
        return [mode for mode in (WARM, RESTED) if any(run.mode == mode for run in self.runs)]

    def of(self, contender: str, mode: str = WARM, part: Fraction = WHOLE) -> dict[int, Measured]:
        """The runs of a contender, by round."""
        return {
            run.round: run
            for run in self.runs
            if run.contender == contender and run.mode == mode and run.part == part
        }

    def seconds(self, contender: str, mode: str = WARM, part: Fraction = WHOLE) -> list[float]:
        """What each run of a contender took, by round."""
        return [run.seconds for run in self.of(contender, mode, part).values()]

    def ratios(self, contender: str, other: str, mode: str = WARM) -> list[float]:
        """How many times as long as `other` it took, within each round that both ran in.

        Other load on a machine meets what runs at the same time alike.
        """
        mine, theirs = self.of(contender, mode), self.of(other, mode)
        return [
            mine[round_].seconds / theirs[round_].seconds for round_ in mine if round_ in theirs
        ]

    def processor_ratios(self, contender: str, other: str, mode: str = WARM) -> list[float]:
        """The same of processor time, which other load disturbs less; none if that is 0."""
        mine, theirs = self.of(contender, mode), self.of(other, mode)
        both = [(mine[round_].cpu, theirs[round_].cpu) for round_ in mine if round_ in theirs]
        return [first / two for first, two in both] if all(two > 0 for _, two in both) else []

    def peak(self, contender: str) -> int:
        """Most resident bytes with all inputs."""
        return max((run.peak for run in self.runs if run.contender == contender), default=0)

    def parts(self, contender: str) -> list[Fraction]:
        """The parts that it did, the smallest first."""
        parts = {run.part for run in self.runs if run.contender == contender and run.mode == WARM}
        return sorted(parts)

    def growth(self, contender: str) -> Estimate | None:
        """The exponent of time over inputs; None for parts too few to have one."""
        runs = {part: self.of(contender, part=part) for part in self.parts(contender)}
        sizes = {part: next(iter(middles.values())).inputs for part, middles in runs.items()}
        parts = [part for part in runs if sizes[part] >= FEWEST_FOR_GROWTH]
        if len(parts) < 3:
            return None
        common = set.intersection(*(set(runs[part]) for part in parts))
        rounds = [[runs[part][round_].seconds for part in parts] for round_ in sorted(common)]
        return exponent_of([sizes[part] for part in parts], rounds) if rounds else None

    def load_when_busy(self) -> str:
        """In words, the load before it began if that disturbs a measurement; else empty."""
        load, cores = self.facts.get("load", ""), self.facts.get("cores", "")
        try:
            busy = float(load.split()[0]) > BUSY * int(cores)
        except (IndexError, ValueError):
            return ""
        return f"load {load} on {cores} cores" if busy else ""

    def reference(self) -> str | None:
        """The contender that others are compared with: the first nvlink, or the copy."""
        names = self.contenders()
        return next(
            (name for name in names if name.startswith("nvlink")), names[0] if names else None
        )


def median(results: Results, contender: str, mode: str = WARM) -> Estimate | None:
    """Statistics of the seconds with all inputs; None for a contender that did not run."""
    seconds = results.seconds(contender, mode)
    return median_of(seconds) if seconds else None


def to_csv(results: Results) -> str:
    text = io.StringIO()
    for name, value in results.facts.items():
        text.write(f"# {name}: {_line(value)}\n")
    for kind, named in (
        (ABOUT, results.about),
        (ANSWER, results.answers),
        (FAILED, results.failures),
    ):
        for contender, value in named.items():
            text.write(f"# {kind} {contender}: {_line(value)}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in results.runs:
        times = f"{run.seconds:.9f}", f"{run.cpu:.6f}"
        writer.writerow(
            [run.contender, run.mode, run.part, run.inputs, run.round, *times, run.peak]
        )
    return text.getvalue()


def from_csv(text: str, name: str) -> Results:
    """What `to_csv` made; MalformedResults for anything else."""
    results = Results()
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            label, separator, mark = line[1:].strip().partition(": ")
            if not separator:
                raise MalformedResults(f"{name}:{number}: no fact: {line[:60]}")
            _add_fact(results, label, mark)
        else:
            rows.append((number, line))
    if not rows or tuple(_cells(rows[0][1])) != COLUMNS:
        raise MalformedResults(f"{name}: not a result of pylink bench --csv")
    for number, line in rows[1:]:
        try:
            contender, mode, part, inputs, round_, seconds, cpu, peak = _cells(line)
            run = Measured(
                contender,
                mode,
                Fraction(part),
                int(inputs),
                int(round_),
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
    kind, _, contender = label.partition(" ")
    named = {ABOUT: results.about, ANSWER: results.answers, FAILED: results.failures}
    if contender and kind in named:
        named[kind][contender] = text
    else:
        results.facts[label] = text


def _cells(line: str) -> Sequence[str]:
    rows: Iterable[list[str]] = csv.reader([line])
    try:
        return next(iter(rows), [])
    except csv.Error:  # a cell of 128 KiB, which none of ours is
        return []


def _line(text: str) -> str:
    return " ".join(text.split())
