"""Count the lines and branches that tests reach, in Python and in native code.

    python scripts/measure_coverage.py [--unreached FILE] [TEST ...]

runs the tests (default: all in tests/unit and tests/golden) with the build of `make coverage`, and
prints a table of rooms (packages of src/pylink) and native packages. Without TEST the exit status
is 1 if a share is below its floor. FILE is a source: its lines that the last run did not reach are
printed, and no test runs.

gcov counts lines of C. Comments of Cython say which line of which source they come from. Its
directives `#line` would not do: with them, generated functions would count as further lines of the
source. An inline function of a `.pxd` file is in many objects and counts once. Branches that
Cython adds for exceptions and for types of Python objects do not count. Nor does code that runs
when a module is imported.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "coverage"
PYTHON_COUNTS = BUILD / "python"
TESTS = ("tests/unit", "tests/golden")
# Tests that do not fit the build that counts: of the environment's program `pylink`, which starts
# the normal build, and of native sources, which are not beside the package that counts.
OMITTED = tuple(
    f"--deselect=tests/unit/{test}"
    for test in (
        "test_overlay.py::test_everything_is_the_toolkit_but_the_linker",
        "test_overlay.py::test_its_nvcc_stays_in_the_overlay_when_links_are_resolved",
        "test_readers.py::test_there_are_two_readers_of_cubins",
        "test_stubs.py::test_every_native_module_has_a_stub",
    )
)
# The least percentages that the tests reach.
FLOORS = {"native lines": 93.0, "native branches": 84.0, "Python branches": 85.0}

# Directories that names of sources in Cython's comments may be relative to.
NAMED_FROM = ("", "src/_native", "src")
# Cython's comment in front of the C of a source line, and the first lines of what it generates in a
# function for no source line.
MARK = re.compile(r'\s*/\* "([^"]+)":(\d+)$')
GENERATED = re.compile(
    r"/\* Python wrapper \*/|\s*/\* function exit code \*/|static .*_exec_\w+\(.*\)$"
)
# C whose branches Cython adds.
ADDED_BRANCH = re.compile(r"__PYX_ERR|\b(?:__Pyx_|Py[A-Z])\w*\(")


@dataclass
class Counts:
    """The number of times that each line of a source ran, and each branch, by line and number."""

    lines: dict[int, int] = field(default_factory=dict)
    branches: dict[tuple[int, int], int] = field(default_factory=dict)

    def add_line(self, line: int, count: int) -> None:
        """Record the count of a line in one object file; the largest of all object files stays."""
        self.lines[line] = max(count, self.lines.get(line, 0))

    def add_branch(self, line: int, number: int, count: int) -> None:
        """Record the count of a branch in one object file; the largest of all stays."""
        self.branches[line, number] = max(count, self.branches.get((line, number), 0))


@dataclass
class Row:
    """A row of the table."""

    lines: int = 0
    lines_reached: int = 0
    branches: int = 0
    branches_reached: int = 0

    def add(self, other: Row) -> None:
        """Add the counts of another row."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)


def map_lines(text: str) -> dict[int, tuple[str, int, bool]]:
    """Map lines of a kernel's C to a source, its line, and whether branches come from that line.

    Lines that Cython generated for no source line are omitted.
    """
    places = {}
    place: tuple[str, int] | None = None
    is_generated = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("}"):
            place, is_generated = None, False
        elif GENERATED.match(line):
            is_generated = True
        elif mark := MARK.match(line):
            place = mark[1], int(mark[2])
        elif place is not None and not is_generated:
            places[number] = (*place, ADDED_BRANCH.search(line) is None)
    return places


@cache
def find_source(name: str) -> str | None:
    """Return the path of a source from the root of the project; None if it is not a source."""
    for folder in NAMED_FROM:
        path = Path(folder, name)
        if path.parts[0] == "src" and (ROOT / path).is_file():
            return str(path)
    matches = [path for path in (ROOT / "src/_native").glob("*/*.p[xy][dx]") if path.name == name]
    return str(matches[0].relative_to(ROOT)) if len(matches) == 1 else None


def merge_counts(
    documents: Iterable[Mapping[str, Any]], kernels: Mapping[str, str]
) -> dict[str, Counts]:
    """Merge the counts of gcov's documents, one for each object, by source.

    `kernels` are the texts of C files by their names in the documents. Other files are sources, or
    not of this project.
    """
    merged: dict[str, Counts] = {}
    for document in documents:
        for file in document["files"]:
            name = file["file"]
            places = map_lines(kernels[name]) if name in kernels else None
            numbers = Counter[tuple[str, int]]()  # of branches, by source and line
            for line in file["lines"]:
                number = line["line_number"]
                place = (name, number, True) if places is None else places.get(number)
                if place is None:
                    continue
                name_in_c, source_line, has_branches = place
                if (source := find_source(name_in_c)) is None:
                    continue
                counts = merged.setdefault(source, Counts())
                counts.add_line(source_line, line["count"])
                for branch in line["branches"] if has_branches else ():
                    counts.add_branch(source_line, numbers[source, source_line], branch["count"])
                    numbers[source, source_line] += 1
    return merged


def count_native() -> dict[str, Counts]:
    """Return the counts of the native sources in the objects of the build."""
    notes = sorted(map(str, (BUILD / "temp").rglob("*.gcno")))
    command = ["gcov", "--json-format", "--stdout", "--branch-probabilities", *notes]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    kernels = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in (ROOT / "build/cython").rglob("*.c")
    }
    return merge_counts(map(json.loads, done.stdout.splitlines()), kernels)


def count_python() -> dict[str, Any]:
    """Return what coverage.py says of each module, by its path."""
    # An earlier call may have combined them. Counts of processes that were killed stay, unreadable.
    if not (PYTHON_COUNTS / "counts").exists():
        run_coverage("combine", "--quiet", "--append", str(PYTHON_COUNTS))
    run_coverage("json", "--quiet", "-o", str(BUILD / "python.json"))
    files: dict[str, Any] = json.loads((BUILD / "python.json").read_bytes())["files"]
    return files


def run_coverage(*words: str) -> None:
    """Run a command of coverage.py that must succeed."""
    subprocess.run([sys.executable, "-m", "coverage", *words], cwd=ROOT, check=True)


def run_tests(words: Iterable[str]) -> int:
    """Run the tests with new counts, and return the exit status of pytest."""
    for path in [*(BUILD / "temp").rglob("*.gcda"), *PYTHON_COUNTS.glob("*")]:
        path.unlink()
    places = [BUILD / "src", ROOT / "scripts", *filter(None, [os.environ.get("PYTHONPATH")])]
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-n", "auto"]
    command += ["-p", "write_native_counts", *OMITTED, *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
    return subprocess.run(command, cwd=ROOT, check=False, env=environment).returncode


def make_rows(native: Mapping[str, Counts], modules: Mapping[str, Any]) -> dict[str, Row]:
    """Return the rows of the table by name, with `Python` and `native` for all of each."""
    rows: dict[str, Row] = {"Python": Row(), "native": Row()}
    for name, module in sorted(modules.items()):
        summary = module["summary"]
        row = Row(
            summary["num_statements"],
            summary["covered_lines"],
            summary["num_branches"],
            summary["covered_branches"],
        )
        folder = "/".join(Path(name).parts[1:3]) if len(Path(name).parts) > 3 else "pylink"
        rows.setdefault(folder, Row()).add(row)
        rows["Python"].add(row)
    for name, counts in sorted(native.items()):
        row = Row(
            len(counts.lines),
            sum(map(bool, counts.lines.values())),
            len(counts.branches),
            sum(map(bool, counts.branches.values())),
        )
        rows.setdefault("/".join(Path(name).parts[1:3]), Row()).add(row)
        rows["native"].add(row)
    return rows


def table_lines(rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield the table in Markdown, with all of Python and all native code at the end."""
    yield "| room or package | lines | reached | branches | reached |"
    yield "|---|---|---|---|---|"
    for name in [*(name for name in rows if "/" in name or name == "pylink"), "Python", "native"]:
        yield (
            f"| {name} | " + " | ".join(f"{count:,}" for count in vars(rows[name]).values()) + " |"
        )


def share_lines(rows: Mapping[str, Row]) -> Iterator[tuple[str, bool]]:
    """Yield a line for each floor, and whether the share is below it."""
    shares = {
        "native lines": (rows["native"].lines_reached, rows["native"].lines),
        "native branches": (rows["native"].branches_reached, rows["native"].branches),
        "Python branches": (rows["Python"].branches_reached, rows["Python"].branches),
    }
    for name, (reached, count) in shares.items():
        share = 100 * reached / max(count, 1)
        is_low = share < FLOORS[name]
        note = " TOO FEW" if is_low else ""
        yield f"{name}: {share:.2f} % (at least {FLOORS[name]} %){note}", is_low


def unreached_lines(
    name: str, native: Mapping[str, Counts], modules: Mapping[str, Any]
) -> list[int]:
    """Return the numbers of the lines of a source that no test reaches."""
    if name in native:
        return sorted(line for line, count in native[name].lines.items() if not count)
    if name not in modules:
        sys.exit(f"nothing is counted in '{name}'")
    return list(modules[name]["missing_lines"])


def main() -> int:
    """Read the command line, run the tests, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--unreached", default="", metavar="FILE", help="print its lines")
    arguments, words = parser.parse_known_args()
    if arguments.unreached:
        texts = (ROOT / arguments.unreached).read_text(encoding="utf-8").splitlines()
        for line in unreached_lines(arguments.unreached, count_native(), count_python()):
            print(f"{arguments.unreached}:{line}: {texts[line - 1].strip()}")
        return 0
    status = run_tests(words or TESTS)
    rows = make_rows(count_native(), count_python())
    print("\n".join(table_lines(rows)))
    shares = list(share_lines(rows))
    print("\n".join(text for text, _ in shares))
    return status or int(not words and any(is_low for _, is_low in shares))


if __name__ == "__main__":
    raise SystemExit(main())
