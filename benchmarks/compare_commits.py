"""Compares the link times of two commits on this machine: is the later one slower?

    python -m benchmarks.compare_commits BASE [HEAD] [--counts 100,1600] [--csv FOLDER]

`make bench-compare BASE=...` runs it. Without HEAD, the working tree is measured, with changes of
tracked files that are not committed. Each commit is built in a directory of its own (`builds.py`).
Both link the same inputs in turn, in this process's rounds (`pylink.bench.contest`). The ratio of
two times is taken within each round, so other work on the machine affects both sides.

A link is slower if three things hold:

* The interval of the ratio is above 1. It contains the true median with 95 % certainty.
* The median of the ratios is above the limit (`--limit`, default 1.10). Two processes with the same
  code can differ by some per cent all the time, because their memory has different addresses.
* A second measurement, by new processes, says both again. So of many links that are equal, none is
  called slower by chance.

Exit status: 0, 1 if a link is slower, 2 if something cannot be built or linked. If valgrind is
installed, instructions are printed, too. They decide nothing, because fewer can take longer.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from helpers import oracle

from benchmarks import inputs
from benchmarks.builds import Build, BuildError, build
from pylink.bench import machine, resident
from pylink.bench.commandline import Link
from pylink.bench.compare import NO_DIFFERENCE, SLOWER, direction
from pylink.bench.contenders import API, CLI, Api, Contender, Program
from pylink.bench.contest import Contest, Plan
from pylink.bench.estimates import Estimate, median_of
from pylink.bench.measuring import REMOVED_VARIABLES
from pylink.bench.processes import Helper, Launcher, Resident
from pylink.bench.results import Results, median, to_csv

ROOT = Path(__file__).resolve().parents[1]
BASE, HEAD = "base", "head"
WAYS = (CLI, API)
FEWEST_ROUNDS = 6  # fewer give no interval
MOST_COUNTED = 200  # inputs of the largest link whose instructions are counted: minutes otherwise

# A program that links the same inputs several times; valgrind counts its instructions.
COUNTED = """\
import sys, pylink
for _ in range(int(sys.argv[1])):
    pylink.link(sys.argv[4:], arch=sys.argv[2], output=sys.argv[3])
"""
INSTRUCTIONS = re.compile(r"I\s+refs:\s+([\d,]+)")


class NotMeasured(Exception):
    """A commit cannot do a link; the text says why."""


@dataclass(frozen=True)
class Case:
    """A link to measure."""

    title: str
    arch: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """The change of one way to link: median seconds of both commits, and the ratio of head to base.

    `first` is the ratio of the first measurement. `again` is that of the second one, which is made
    if the first says that the link is slower.
    """

    title: str
    way: str
    base: float
    head: float
    first: Estimate
    again: Estimate | None
    limit: float

    @property
    def is_slower(self) -> bool:
        """Whether both measurements say that the link is slower."""
        return (
            is_slower(self.first, self.limit)
            and self.again is not None
            and is_slower(self.again, self.limit)
        )

    @property
    def verdict(self) -> str:
        """The conclusion from the measurements, as text."""
        if self.is_slower:
            return SLOWER
        if self.again is not None:
            return f"{NO_DIFFERENCE}: not slower when measured again"
        verdict = direction(self.first)
        return f"{SLOWER}, but within the limit" if verdict == SLOWER else verdict


def is_slower(ratio: Estimate, limit: float) -> bool:
    """Return whether the ratio is over the limit, and its whole interval certain and over 1."""
    return ratio.certain and ratio.low > 1 and ratio.value > limit


class ApiOf(Api):
    """`pylink.link` of a build, in a process that stays."""

    def __init__(self, side: str, build: Build) -> None:
        Contender.__init__(self, f"{API} {side}", f"pylink.link of {build.name}")
        self._process = ResidentOf(build)


class ResidentOf(Resident):
    """The process of ApiOf: it runs this checkout's `resident.py` with the pylink of a build."""

    def __init__(self, build: Build) -> None:
        argv = [resident.API, build.module_paths_text]
        Helper.__init__(self, resident.__file__, argv, os.getcwd())


def contenders_of(side: str, build: Build, launcher: Launcher) -> list[Contender]:
    """Return the two ways in which a build links: its program, and `pylink.link`."""
    about = f"{build.program}, the whole process"
    return [
        Program(f"{CLI} {side}", about, [str(build.program)], launcher),
        ApiOf(side, build),
    ]


def measure(case: Case, base: Build, head: Build, rounds: int) -> Results:
    """Let both builds do a link in turn; NotMeasured if one of them cannot."""
    environment = {k: v for k, v in os.environ.items() if k not in REMOVED_VARIABLES}
    with tempfile.TemporaryDirectory(prefix="pylink-compare-") as directory:
        link = Link([f"-arch={case.arch}", *case.files, "-o", "linked"], directory)
        launcher = Launcher(environment)
        contenders: list[Contender] = []
        try:
            for side, build in ((BASE, base), (HEAD, head)):
                contenders += contenders_of(side, build, launcher)
            plan = Plan(rounds=rounds, patience=float("inf"), with_parts=False)
            results = Contest(link, contenders, plan, lambda _text: None).run()
        finally:
            for contender in contenders:
                contender.close()
            launcher.close()
        results.facts = {
            "link": case.title,
            "rounds": str(rounds),
            "load": f"{machine.load():.2f}",
            BASE: base.name,
            HEAD: head.name,
            **machine.facts(directory),
        }
    for name, reason in results.failures.items():
        raise NotMeasured(f"{case.title}, {name}: {reason.strip()}")
    return results


def ratio_of(results: Results, way: str) -> Estimate:
    """Return the median of the time of head divided by that of base in the same round."""
    return median_of(results.ratios(f"{way} {HEAD}", f"{way} {BASE}"))


def compare(case: Case, limit: float, measure_once: Callable[[], Results]) -> list[Row]:
    """Measure a link; return a row for each way to do it.

    If any way seems slower, all are measured again.
    """
    results = measure_once()
    first = {way: ratio_of(results, way) for way in WAYS}
    suspects = [way for way in WAYS if is_slower(first[way], limit)]
    second = measure_once() if suspects else None
    rows = []
    for way in WAYS:
        base, head = (median(results, f"{way} {side}") for side in (BASE, HEAD))
        assert base is not None
        assert head is not None
        again = ratio_of(second, way) if second is not None and way in suspects else None
        rows.append(Row(case.title, way, base.value, head.value, first[way], again, limit))
    return rows


def count_instructions(case: Case, build: Build, valgrind: str) -> float:
    """Return the millions of instructions of one `pylink.link`, without the start of Python."""
    counts = []
    with tempfile.TemporaryDirectory(prefix="pylink-compare-") as directory:
        for links in (1, 3):
            argv = [valgrind, "--tool=cachegrind", "--cache-sim=no"]
            argv += ["--cachegrind-out-file=/dev/null", str(build.python), "-c", COUNTED]
            argv += [str(links), case.arch, f"{directory}/linked", *case.files]
            environment = {**os.environ, "PYTHONHASHSEED": "0", "PYLINK_THREADS": "1"}
            done = subprocess.run(
                argv, capture_output=True, text=True, check=False, env=environment
            )
            match = INSTRUCTIONS.search(done.stderr)
            if done.returncode or match is None:
                raise NotMeasured(f"{case.title}: valgrind: {done.stderr.strip()[-300:]}")
            counts.append(int(match[1].replace(",", "")))
    return (counts[1] - counts[0]) / 2 / 1e6


def cases(archs: Sequence[str], sizes: Sequence[str], counts: Sequence[int]) -> Iterator[Case]:
    """Yield the links: the demo, and generated programs."""
    for arch in archs:
        demo = sorted((ROOT / "demo/cubins" / f"sm_{arch}").glob("*.cubin"))
        if demo:
            yield Case(f"demo, sm_{arch}", f"sm_{arch}", tuple(map(str, demo)))
        for size in sizes:
            for count in counts:
                folder, names = inputs.cubins(arch, size, count)
                files = tuple(str(folder / name) for name in names)
                yield Case(f"{count:,} inputs of {size}, sm_{arch}", f"sm_{arch}", files)


COLUMNS = ("link", "by", "base ms", "head ms", "head / base", "19 in 20", "again", "result")


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [COLUMNS, ("---",) * len(COLUMNS)]
    for row in rows:
        interval = f"{row.first.low:.2f} to {row.first.high:.2f}"
        again = f"{row.again.low:.2f} to {row.again.high:.2f}" if row.again else ""
        times = (f"{row.base * 1e3:.2f}", f"{row.head * 1e3:.2f}", f"{row.first.value:.2f}")
        lines.append((row.title, row.way, *times, interval, again, row.verdict))
    return [f"| {' | '.join(line)} |" for line in lines]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.compare_commits", description=__doc__.split("\n\n", 1)[0]
    )
    options.add_argument("base", help="commit to compare with")
    options.add_argument("head", nargs="?", help="commit to judge (default: the working tree)")
    options.add_argument("--archs", default="100,90a")
    options.add_argument("--sizes", default="15KB", help="of modules: 15KB, 50KB or TINY")
    options.add_argument("--counts", default="100,1600", help="inputs of links besides the demo")
    options.add_argument("--rounds", type=int, default=21)
    options.add_argument("--limit", type=float, default=1.1, help="ratio that is not yet slower")
    options.add_argument("--builds", type=Path, default=ROOT / "build/commits")
    options.add_argument("--csv", type=Path, help="a folder for each run's times")
    options.add_argument("--summary", type=Path, help="append the table to this file, too")
    options.add_argument(
        "--no-instructions", action="store_true", help="count none, though valgrind is installed"
    )
    return options


class Comparison:
    """The rows of all links, the lines on instructions, and what could not be measured."""

    def __init__(self, base: Build, head: Build, arguments: argparse.Namespace) -> None:
        self.rows: list[Row] = []
        self.instructions: list[str] = []
        self.failures: list[str] = []
        self._base = base
        self._head = head
        self._arguments = arguments
        self._valgrind = None if arguments.no_instructions else shutil.which("valgrind")

    def add(self, case: Case) -> None:
        """Measure a link, and count its instructions if it is small enough."""
        measurements: list[Results] = []

        def measure_once() -> Results:
            measurements.append(measure(case, self._base, self._head, self._arguments.rounds))
            return measurements[-1]

        try:
            self.rows += compare(case, self._arguments.limit, measure_once)
            if self._valgrind and len(case.files) <= MOST_COUNTED:
                before, after = (
                    count_instructions(case, side, self._valgrind)
                    for side in (self._base, self._head)
                )
                counts = f"{before:.2f} to {after:.2f} million, {after / before:.3f} times"
                self.instructions.append(f"* {case.title}: {counts}")
        except NotMeasured as error:
            self.failures.append(f"Not measured: {error}")
        if self._arguments.csv:
            self._arguments.csv.mkdir(parents=True, exist_ok=True)
            for number, results in enumerate(measurements, 1):
                name = re.sub(r"\W+", "-", f"{case.title}-{number}")
                (self._arguments.csv / f"{name}.csv").write_text(to_csv(results))

    def slower(self) -> list[str]:
        """Return the links that are slower."""
        return [f"{row.title}, {row.way}" for row in self.rows if row.is_slower]

    def text(self) -> str:
        """Return the table and everything else that was found, in Markdown."""
        lines = [f"base: {self._base.name}, head: {self._head.name}", "", *table(self.rows)]
        if self.instructions:
            lines += ["", "Instructions of one `pylink.link`, with one thread:", ""]
            lines += self.instructions
        for failure in self.failures:
            lines += ["", failure]
        slower = self.slower()
        if slower:
            lines += ["", f"Slower: {'; '.join(slower)}."]
        elif not self.failures:
            lines += ["", "No link is slower."]
        return "\n".join(lines) + "\n"


def write_summary(text: str, path: Path | None) -> None:
    """Append a text to the summary, if there is one."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)


def main(argv: Sequence[str] | None = None) -> int:
    options = parser()
    arguments = options.parse_args(argv)
    if arguments.rounds < FEWEST_ROUNDS:
        options.error(f"--rounds: at least {FEWEST_ROUNDS}, or there is no interval")
    counts = [int(text) for text in arguments.counts.split(",") if text]
    if counts and oracle.find() is None:
        options.error("--counts needs nvcc (pip install '.[oracle]'); pass --counts '' without it")
    try:
        base, head = (build(name, arguments.builds) for name in (arguments.base, arguments.head))
    except BuildError as error:
        print(error, file=sys.stderr)
        write_summary(f"Not measured:\n\n```\n{error}\n```\n", arguments.summary)
        return 2
    sizes = arguments.sizes.split(",") if counts else []
    comparison = Comparison(base, head, arguments)
    for case in cases(arguments.archs.split(","), sizes, counts):
        comparison.add(case)
        print(f"{case.title}: done", file=sys.stderr)
    text = comparison.text()
    print(text, end="")
    write_summary(text, arguments.summary)
    if comparison.failures:
        return 2
    return 1 if comparison.slower() else 0


if __name__ == "__main__":
    raise SystemExit(main())
