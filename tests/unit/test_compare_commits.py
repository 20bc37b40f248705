"""The comparison of two commits: planted truth, and whole runs with planted builds."""

from __future__ import annotations

import random
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import yaml
from helpers import demo

import pylink.bench
from benchmarks import builds, compare_commits
from benchmarks.builds import Build
from benchmarks.compare_commits import BASE, HEAD, WAYS, Case, Row
from pylink.bench.estimates import Estimate
from pylink.bench.processes import Run
from pylink.bench.results import WARM, Results

ROOT = Path(__file__).parents[2]
LIMIT = 1.1
TRIALS = 400
CASE = Case("a link", "sm_90a", ("a.cubin",))
GIT = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]


def planted(random_numbers: random.Random, factor: float, rounds: int = 21) -> Results:
    """Return the times of a link that takes `factor` times as long with the head.

    Other work on the machine makes a round up to three times as long, and each run longer by a
    fifth on average.
    """
    results = Results()
    for turn in range(rounds):
        load = 1 + 2 * random_numbers.random() ** 4
        for way in WAYS:
            for side, truth in ((BASE, 1.0), (HEAD, factor)):
                seconds = 0.01 * truth * load * (1 + 0.2 * random_numbers.expovariate(1))
                run = Run(seconds, seconds, 1, "")
                results.add_run(f"{way} {side}", WARM, Fraction(1), 1, turn, run)
    return results


def share_called_slower(factor: float, way: str | None = None) -> float:
    """Return the share of trials in which a link is called slower; `way` is a way of linking."""
    random_numbers = random.Random(7)
    found = 0
    for _ in range(TRIALS):
        rows = compare_commits.compare(CASE, LIMIT, lambda: planted(random_numbers, factor))
        found += any(row.is_slower for row in rows if way in (None, row.way))
    return found / TRIALS


def test_equal_commits_are_not_called_slower() -> None:
    assert share_called_slower(1.0) <= 0.05


@pytest.mark.parametrize("way", WAYS)
def test_a_slower_commit_is_found(way: str) -> None:
    assert share_called_slower(1.4, way) >= 0.95


def test_a_commit_that_is_slower_within_the_limit_passes() -> None:
    assert share_called_slower(1.02) <= 0.05


def test_a_faster_commit_is_not_called_slower() -> None:
    assert share_called_slower(0.7) == 0


def test_what_is_slower_only_once_is_not_called_slower() -> None:
    slow, equal = planted(random.Random(1), 1.5), planted(random.Random(2), 1.0)
    measurements = iter([slow, equal])
    rows = compare_commits.compare(CASE, LIMIT, lambda: next(measurements))
    assert {row.verdict for row in rows} == {"no difference seen: not slower when measured again"}


def test_too_few_rounds_call_nothing_slower() -> None:
    few = planted(random.Random(1), 3.0, rounds=4)
    rows = compare_commits.compare(CASE, LIMIT, lambda: few)
    assert {row.verdict for row in rows} == {"too few rounds to tell"}


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Estimate(1.05, 1.01, 1.08), "slower, but within the limit"),
        (Estimate(1.2, 0.99, 1.3), "no difference seen"),
        (Estimate(0.8, 0.7, 0.9), "faster"),
    ],
)
def test_verdicts(ratio: Estimate, verdict: str) -> None:
    assert Row("a link", WAYS[0], 1.0, ratio.value, ratio, None, LIMIT).verdict == verdict


def plant_build(folder: Path, milliseconds: int) -> Build:
    """Return a build whose program and Python interface take so long, and write a file."""
    program = folder / ".venv/bin/pylink"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\nsleep 0.{milliseconds:03}\necho x > $1\n"
    )
    program.chmod(0o755)
    package = folder / "src/pylink"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import time\n"
        "def Input(name, whole_archive): return name\n"
        "def link(inputs, *, arch, output):\n"
        f"    time.sleep(0.{milliseconds:03})\n"
        "    open(output, 'w').close()\n"
    )
    return Build(folder.name, folder)


def run(
    monkeypatch: pytest.MonkeyPatch, folder: Path, base: int, head: int, *words: str
) -> tuple[int, str]:
    """Return the exit status and the summary of a comparison of two planted builds."""
    planted_builds = {
        "base": plant_build(folder / "base", base),
        "head": plant_build(folder / "head", head),
    }
    monkeypatch.setattr(compare_commits, "build", lambda name, _builds: planted_builds[name])
    summary = folder / "summary.md"
    argv = ["base", "head", "--archs", "90a", "--counts", "", "--rounds", "6"]
    argv += ["--summary", str(summary), "--csv", str(folder / "csv"), *words]
    return compare_commits.main(argv), summary.read_text()


def test_a_slower_build_fails_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status, text = run(monkeypatch, tmp_path, 10, 60, "--no-instructions")
    assert status == 1
    assert "Slower: demo, sm_90a, pylink CLI; demo, sm_90a, pylink API.\n" in text
    rows = [line for line in text.splitlines() if line.startswith("| demo, sm_90a |")]
    assert [row.endswith(" | slower |") for row in rows] == [True, True]
    # Each measurement is a file that pylink bench reads; the second one confirms the first.
    files = sorted(path.name for path in (tmp_path / "csv").iterdir())
    assert files == ["demo-sm_90a-1.csv", "demo-sm_90a-2.csv"]
    results = pylink.bench.read(tmp_path / "csv" / files[0])
    assert len(results.ratios("pylink API head", "pylink API base")) == 6
    assert results.facts["head"] == "head"


def test_equal_builds_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status, text = run(monkeypatch, tmp_path, 20, 20, "--no-instructions")
    assert status == 0
    assert text.endswith("No link is slower.\n")


def test_a_build_that_cannot_link_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = plant_build(tmp_path / "broken", 10)
    broken.program.write_text("#!/bin/sh\necho nothing works >&2; exit 3\n")
    monkeypatch.setattr(compare_commits, "build", lambda _name, _builds: broken)
    summary = tmp_path / "summary.md"
    words = ["--archs", "90a", "--counts", "", "--no-instructions", "--summary", str(summary)]
    assert compare_commits.main(["base", *words]) == 2
    assert "Not measured: demo, sm_90a, pylink CLI base: nothing works" in summary.read_text()


def test_instructions_are_those_of_one_link(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The start of Python, which both runs contain, does not count."""
    valgrind = tmp_path / "valgrind"
    valgrind.write_text(
        '#!/bin/sh\nwhile [ "$1" != -c ]; do shift; done\n'
        'echo "==1== I   refs:      $((9000000 + 2000000 * $3))" >&2\n'
    )
    valgrind.chmod(0o755)
    build = plant_build(tmp_path / "build", 10)
    assert compare_commits.count_instructions(CASE, build, str(valgrind)) == 2.0


@pytest.mark.parametrize("rounds", ["0", "5"])
def test_too_few_rounds_are_refused(rounds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare_commits.main(["base", "--rounds", rounds])
    assert "--rounds: at least 6, or there is no interval" in capsys.readouterr().err


def test_an_unknown_commit_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--counts", "", "--builds", str(tmp_path)]
    assert compare_commits.main(["no-such-commit", *words]) == 2
    assert "no-such-commit" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_working_tree_is_a_tree_of_its_own(tmp_path: Path) -> None:
    """Changes that are not committed are measured, and do not change the repository."""
    for words in (["init", "-q"], ["config", "user.name", "n"], ["config", "user.email", "e"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "a.py").write_text("1\n")
    for words in (["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*GIT, *words], cwd=tmp_path, check=True)
    committed = builds.resolve("HEAD", tmp_path)
    assert builds.resolve(None, tmp_path) == committed
    (tmp_path / "a.py").write_text("2\n")
    tree, name = builds.resolve(None, tmp_path)
    assert tree != committed[0]
    assert name == f"{committed[1]} with changes"
    assert builds.git("show", f"{tree}:a.py", root=tmp_path) == "2"
    assert builds.git("stash", "list", root=tmp_path) == ""


def test_the_workflow_passes_options_that_exist() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/bench.yml").read_text(encoding="utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    (command,) = [step["run"] for step in steps if "bench-compare" in step.get("run", "")]
    words = dict(word.split("=", 1) for word in shlex.split(command) if "=" in word)
    assert sorted(words) == ["BASE", "COMPARE", "HEAD"]
    options = [*shlex.split(words["COMPARE"]), words["BASE"], words["HEAD"]]
    arguments = compare_commits.parser().parse_args(options)
    # What the summary shows and what is kept.
    stored = [step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", "")]
    assert stored == [str(arguments.csv)] == [str(arguments.summary.parent)]
    assert any(f"cat {arguments.summary} " in step.get("run", "") for step in steps)
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nbench-compare:")[2]
    assert "-m benchmarks.compare_commits $(COMPARE) $(BASE) $(HEAD)\n" in recipe


# Links without site, so that nothing but the interpreter itself has loaded a module before.
LINK = """
import os, sys
sys.path[:0] = [{package!r}]
from pylink.command.cli import main
assert main({argv!r}) == 0
names = [name for name in sys.modules if name.partition(".")[0] == "pylink"]
print(*sorted(name.replace(".", "/") for name in names))
"""


def test_the_workflow_compares_what_a_small_link_runs(tmp_path: Path) -> None:
    """A pull request that changes a module of a link must not pass unmeasured."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/bench.yml").read_text(encoding="utf-8"))
    (step,) = [step for step in workflow["jobs"]["choose"]["steps"] if "run" in step]
    assert "-- $PARTS;" in step["run"]
    folders = [part for part in step["env"]["PARTS"].split() if (ROOT / part).is_dir()]
    rest = [part for part in step["env"]["PARTS"].split() if part not in folders]
    assert rest == ["setup.py", ":(glob)src/pylink/*.py"]
    cubins = map(str, demo.cubins("sm_100"))
    program = LINK.format(
        package=str(ROOT / "src"), argv=["-arch=sm_100", *cubins, "-o", str(tmp_path / "out.cubin")]
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    modules = [f"src/{name}" for name in done.stdout.split()]
    assert {"src/pylink/pipeline", "src/pylink/phases/merge"} <= set(modules)
    nested = [name for name in modules if name.count("/") > 2]
    assert [name for name in nested if not name.startswith(tuple(f"{f}/" for f in folders))] == []
