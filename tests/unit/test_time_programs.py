"""The programs that time and compare public CUDA programs: options, caches and tables."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import program_sources
import pytest
from helpers import oracle

from benchmarks import time_programs
from benchmarks.time_programs import Inputs, Report
from pylink.bench.answers import DIFFERS
from pylink.bench.commandline import BadLink
from pylink.bench.contenders import API, CLI, NVLINK, SERVED
from pylink.bench.processes import Run
from pylink.bench.results import WARM, Results

ROOT = Path(__file__).parents[2]
TIME, COMPARE = "benchmarks/time_programs.py", "scripts/real_programs.py"
GIT = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]


@pytest.mark.parametrize("program", [TIME, COMPARE])
def test_packages_of_the_tests_are_not_needed(program: str, tmp_path: Path) -> None:
    """Users install the extra `oracle`, which has none of these."""
    for name in ("pytest", "_pytest", "hypothesis", "numpy"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('{name}')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, ROOT / program, "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "--checkouts" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "pass --checkouts or --binary"),
        (["--binary", "b", "--checkouts", "c"], "--checkouts is for programs that are compiled"),
        (["--binary", "b", "--step"], "--step is for programs that are compiled"),
        (["--binary", "b", "--flavors", "host"], "--flavors is for programs that are compiled"),
        (["--binary", "b", "--library-path", "c"], "--library-path is for programs that are"),
        (["--checkouts", "c", "--compile", "--rounds", "3"], "--rounds is for measurements"),
        (["--checkouts", "c", "--flavors", "hots"], "--flavors: no 'hots' among plain, "),
        (["--checkouts", "c", "--step", "--flavors", "lto"], "--step needs host objects"),
        (["--checkouts", "c", "--rounds", "0"], "--rounds: at least 1"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = time_programs.parser()
    with pytest.raises(SystemExit) as ended:
        time_programs.check(options, options.parse_args(words))
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler whose object is the source and its header; returns the folder of the cache."""
    program = tmp_path / "bin/nvcc"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do source=$last; last=$1; shift; done\n'
        'cat "$last" f.h > "$2"\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(oracle, "toolchain", lambda: oracle.Toolchain(program.parent))
    program_sources.state_of.cache_clear()
    return tmp_path / "cache"


def commit(checkout: Path, files: dict[str, str]) -> None:
    """Write files and commit them."""
    checkout.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (checkout / name).write_text(text)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "files"]):
        subprocess.run([*GIT, *words], cwd=checkout, check=True)


PROGRAM = program_sources.Program("small", "someone/small", ("*.cu",))


def compiled(checkouts: Path, cache: Path) -> str:
    """The object of the program, compiled if its sources are new."""
    program_sources.state_of.cache_clear()  # as in a new process
    places = program_sources.find_places(PROGRAM, checkouts, cache)
    assert not isinstance(places, str)
    flavor = program_sources.FLAVORS["plain"]
    objects, failures = program_sources.compile_all(PROGRAM, places, flavor, "80", cache)
    assert not failures
    return objects[0].read_text()


def test_a_changed_source_or_header_is_compiled_again(tmp_path: Path, compiler: Path) -> None:
    checkout = tmp_path / "repositories/small"
    commit(checkout, {"a.cu": "one ", "f.h": "first"})
    assert compiled(checkout.parent, compiler) == "one first"
    (checkout / "a.cu").write_text("two ")
    assert compiled(checkout.parent, compiler) == "two first"
    (checkout / "f.h").write_text("second")
    assert compiled(checkout.parent, compiler) == "two second"
    commit(checkout, {"f.h": "third"})
    assert compiled(checkout.parent, compiler) == "two third"
    assert program_sources.commit_of("someone/small", checkout.parent) != ""


def test_what_did_not_change_is_not_compiled_again(tmp_path: Path, compiler: Path) -> None:
    checkout = tmp_path / "repositories/small"
    commit(checkout, {"a.cu": "one ", "f.h": "first"})
    compiled(checkout.parent, compiler)
    (tmp_path / "bin/nvcc").unlink()
    assert compiled(checkout.parent, compiler) == "one first"


def test_changes_that_are_not_committed_are_told(tmp_path: Path, compiler: Path) -> None:
    checkout = tmp_path / "repositories/small"
    commit(checkout, {"a.cu": "one ", "f.h": "first"})
    name = program_sources.commit_of("someone/small", checkout.parent)
    assert len(name) == 8
    (checkout / "f.h").write_text("second")
    program_sources.state_of.cache_clear()
    assert program_sources.commit_of("someone/small", checkout.parent) == f"{name} with changes"


def test_a_bare_clone_with_a_newer_commit_is_unpacked_again(tmp_path: Path, compiler: Path) -> None:
    source = tmp_path / "source"
    commit(source, {"a.cu": "one ", "f.h": "first"})
    clone = tmp_path / "repositories/small.git"
    subprocess.run(["git", "clone", "-q", "--bare", source, clone], check=True)
    assert compiled(clone.parent, compiler) == "one first"
    before = program_sources.commit_of("someone/small", clone.parent)
    commit(source, {"f.h": "second"})
    subprocess.run(
        ["git", "fetch", "-q", source, "+refs/heads/*:refs/heads/*"], cwd=clone, check=True
    )
    assert compiled(clone.parent, compiler) == "one second"
    assert program_sources.commit_of("someone/small", clone.parent) != before


def test_a_rebuilt_binary_is_extracted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is the same, its code is not."""
    program = tmp_path / "pylink"
    program.write_text('#!/bin/sh\ncp "$6" "$5/code.cubin"\n')
    program.chmod(0o755)
    monkeypatch.setattr(time_programs, "this_program", lambda: str(program))
    monkeypatch.setattr(oracle, "device_runtime", lambda: tmp_path)
    binary, contents = tmp_path / "lib.so", []
    for text in (b"first", b"second"):
        binary.write_bytes(b"\x7fELF" + bytes(12) + b"\1\0" + text)  # ET_REL
        inputs = time_programs.extract(binary, "90", tmp_path / "cache")
        assert inputs is not None
        contents.append(inputs.objects[0].read_bytes()[18:])
    assert contents == [b"first", b"second"]


def measured(answers: dict[str, str]) -> Results:
    """Results of one round in which all contenders took a millisecond."""
    results = Results(answers=answers)
    for name in (NVLINK, CLI, SERVED, API):
        results.add_run(name, WARM, Fraction(1), 1, 0, Run(1e-3, 1e-3, 1, ""))
    return results


def test_a_differing_result_leaves_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One program's outputs differ, one cannot be linked, and the last is measured."""
    cubin = tmp_path / "a.cubin"
    cubin.write_bytes(bytes(1_500_000))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libmore.a").write_bytes(b"!<arch>\n" + bytes(1_000_000))

    def link(inputs: Inputs, _rounds: int, _folder: Path) -> Results:
        if inputs.name == "third":
            raise BadLink("no contender could link this")
        wrong = inputs.name == "first"
        return measured({CLI: f"{DIFFERS} .text" if wrong else "equal", API: "equal"})

    def step(inputs: Inputs, _rounds: int, _folder: Path) -> object:
        run = Run(1e-3, 1e-3, 1, "")
        return [(run, run)], ["entry 0"] if inputs.name == "second" else []

    linker = tmp_path / "bin/nvlink"
    linker.parent.mkdir()
    linker.write_text(f"#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\ncp {cubin} $1\n")
    linker.chmod(0o755)
    monkeypatch.setattr(oracle, "toolchain", lambda: oracle.Toolchain(linker.parent))
    monkeypatch.setattr(time_programs, "measure_link", link)
    monkeypatch.setattr(time_programs, "measure_step", step)
    report = Report(1, None, with_step=True)
    options = [f"-L{tmp_path / 'lib'}", "-lmore"]
    for name in ("first", "second", "third", "last"):
        report.measure(Inputs(name, "90a", "host", [cubin], [], options, 1))
    report.print()
    lines = capsys.readouterr().out.splitlines()
    links = [line for line in lines if line.startswith("| ") and line.count("|") == 14]
    assert [line.split(" | ")[0] for line in links[2:]] == ["| first", "| second", "| last"]
    assert links[2].count("differs") == 1
    assert links[4].count("differs") == 0
    # The size of the inputs contains the library.
    assert " | 2.50 | 1.500 | " in links[4]
    steps = [line for line in lines if line.startswith("| ") and line.count("|") == 7]
    assert [line.endswith("differs |") for line in steps[2:]] == [False, True, False]
    assert report.wrong == [
        f"first sm_90a: pylink CLI {DIFFERS} .text",
        "second sm_90a: pylink dlink entry 0",
        "third sm_90a: not measured: no contender could link this",
    ]
    assert lines[-3:] == report.wrong
