"""What make installs, from which file, and what it prints while somebody waits."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fuzz.__main__ import parser as fuzz_parser

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
STEP = ROOT / "scripts" / "step.py"
sys.path.append(str(ROOT / "scripts"))

import install  # noqa: E402 -- a script, found by the line above
import test_versions as versions  # noqa: E402 -- the same

PROJECT = install.read_project()
SAMPLE = """# Recorded on 2026-01-02 by `make constraints`; what make installs. Do not edit.
Alpha_One==1.0 ; python_full_version < '3.11' \\
    --hash=sha256:00
    # via pylink-cuda (pyproject.toml)
Alpha_One==2.0 ; python_full_version >= '3.11' \\
    --hash=sha256:11
    # via pylink-cuda (pyproject.toml)
beta==1 \\
    --hash=sha256:22
    # via
    #   alpha-one
    #   gamma
delta==4 \\
    --hash=sha256:33
    # via gamma
gamma==3 \\
    --hash=sha256:44
    # via pylink-cuda (pyproject.toml)
"""


def names(extras: str) -> set[str]:
    found = install.requirements(PROJECT, extras.split(","))
    return {
        install.canonical(match[1]) for line in found if (match := install.REQUIREMENT.match(line))
    }


def run_step(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(STEP), "doing it", *command],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def test_extras_that_name_extras_are_resolved() -> None:
    assert names("plot") >= {"matplotlib", "protobuf", "pyelftools", "lz4"}
    assert "pylink-cuda" not in names("plot,test")


def test_an_unknown_extra_is_named() -> None:
    with pytest.raises(SystemExit, match="no extra 'plto'"):
        install.requirements(PROJECT, ["plto"])


def test_what_some_extras_need_is_found_in_the_file_of_all() -> None:
    pins = list(install.read_pins(SAMPLE))
    assert [pin.name for pin in pins] == ["alpha-one", "alpha-one", "beta", "delta", "gamma"]
    chosen = install.select_pins(pins, {"alpha-one"})
    assert [pin.text.split(" ")[0] for pin in chosen] == [
        "Alpha_One==1.0",
        "Alpha_One==2.0",
        "beta==1",
    ]
    assert all("--hash=sha256:" in pin.text and "via" not in pin.text for pin in chosen)
    assert {pin.name for pin in install.select_pins(pins, {"gamma"})} == {
        "beta",
        "delta",
        "gamma",
    }


def test_a_package_that_is_not_recorded_is_named() -> None:
    with pytest.raises(SystemExit, match="lacks zeta: make constraints"):
        install.select_pins(list(install.read_pins(SAMPLE)), {"zeta", "beta"})


@pytest.mark.parametrize("extras", ["build,plot", "build,test,oracle,cuda", "constraints"])
def test_the_recorded_versions_fit_what_the_project_requires(extras: str) -> None:
    """Also after a bound was changed without `make constraints`."""
    packaging = pytest.importorskip("packaging.requirements")
    pins = list(install.read_pins((ROOT / "constraints.txt").read_text(encoding="utf-8")))
    found = install.select_pins(pins, names(extras))
    recorded: dict[str, set[str]] = {}
    for pin in found:
        assert "--hash=sha256:" in pin.text, pin.name
        recorded.setdefault(pin.name, set()).add(pin.text.split("==")[1].split()[0])
    for text in install.requirements(PROJECT, extras.split(",")):
        requirement = packaging.Requirement(text)
        for version in recorded[install.canonical(requirement.name)]:
            assert requirement.specifier.contains(version), f"{text}: {version} is recorded"


def test_packages_with_other_versions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "recorded_versions", lambda: {"pytest": {"0.1"}, "ruff": {"9"}})
    (line, *_) = [line for line in versions.list_changed(Path(sys.executable)) if "pytest" in line]
    assert re.fullmatch(r"pytest [\d.]+ \(recorded: 0\.1\)", line)


def test_a_step_says_what_it_does_and_no_more() -> None:
    done = run_step(sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)")
    assert re.fullmatch(r"doing it \.\.\. \d+ s\n", done.stdout)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_step_that_fails_shows_what_it_printed() -> None:
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    done = run_step(sys.executable, "-c", code)
    assert done.returncode == 3
    head, *rest = done.stdout.splitlines()
    assert head == "doing it ... failed with exit status 3:"
    assert rest[:2] == ["out", "err"]
    assert rest[2].startswith("+ ")


def test_a_step_that_cannot_start_is_an_error() -> None:
    done = run_step("/nowhere/program")
    assert (done.returncode, done.stdout) == (
        127,
        "doing it ... failed\n/nowhere/program: No such file or directory\n",
    )


def test_a_step_can_show_everything() -> None:
    done = run_step(sys.executable, "-c", "print('out')", VERBOSE="1")
    assert done.stdout.startswith("doing it: ")
    assert done.stdout.endswith("out\n")


def test_the_guide_names_the_programs_that_check_a_change() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    programs = re.findall(r"^\t(?:PATH=\S+ |\$\(BIN\)/)([\w-]+)", recipe, re.MULTILINE)
    assert sorted(set(programs)) == ["clang-format", "cython-lint", "lint-imports", "ruff"]
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in programs if f"`{name}`" not in guide] == []


def test_the_workflow_runs_what_every_change_must_pass() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    commands = [step.get("run") for job in workflow["jobs"].values() for step in job["steps"]]
    assert ".ci/run" in commands


def test_a_workflow_runs_each_week_what_takes_long() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8"))
    assert workflow[True].keys() == {"schedule", "workflow_dispatch"}  # YAML reads `on` as true
    jobs = workflow["jobs"]
    targets = jobs["make"]["strategy"]["matrix"]["target"]
    assert targets == ["races", "features", "hazards", "test-wheels", "coverage"]
    assert jobs["make"]["steps"][-1]["run"] == "make ${{ matrix.target }}"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
    (command,) = [step["run"] for step in jobs["fuzz"]["steps"] if "run" in step]
    make, target, options = shlex.split(command.replace("${{ github.run_number }}", "17"))
    assert (make, target) == ("make", "fuzz")
    parsed = fuzz_parser().parse_args(shlex.split(options.removeprefix("FUZZ=")))
    assert parsed.seed == 17
    assert parsed.seconds < 60 * jobs["fuzz"]["timeout-minutes"] - 1800
    (stored,) = [step["with"]["path"] for step in jobs["fuzz"]["steps"] if "if" in step]
    assert stored == str(parsed.found)


def test_workflows_run_what_was_reviewed() -> None:
    """A tag of an action can be moved, so each is a commit, with its version for readers."""
    texts = [path.read_text(encoding="utf-8") for path in WORKFLOWS]
    actions = re.findall(r"^ *(?:- )?uses: *(.*)$", "\n".join(texts), re.MULTILINE)
    assert len(actions) > 20
    pinned = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [action for action in actions if not pinned.fullmatch(action)] == []
    # All workflows have the same commit of an action.
    assert len({action.partition("@")[0] for action in actions}) == len(set(actions))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_of_a_workflow_have_limits(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 300, name
        for step in job["steps"]:
            # What a later step runs could use a token that is left in .git/config.
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, name


def test_other_versions_need_no_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYLINK_REQUIRE_CLIENTS", "1")
    monkeypatch.setenv("MAKEFLAGS", "-n")
    for wanted in ("newest", "lowest"):
        environment = versions.unit_environment(wanted)
        assert "PYLINK_REQUIRE_CLIENTS" not in environment
        assert "MAKEFLAGS" not in environment
        assert environment["PATH"] == os.environ["PATH"]
