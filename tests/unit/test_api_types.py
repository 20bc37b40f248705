"""The typed interface: what follows from the option table, and what a type checker finds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import pylink
from pylink.api import generate, optiontypes
from pylink.api.keywords import LinkKeywords
from pylink.api.values import ALIASES
from pylink.options.table import NUMBER, OPTIONS, SIZE, Option

ROOT = Path(__file__).parents[2]

UNITS = ("bits", "bytes", "columns", "errors", "registers", "seconds", "threads", "version")

RIGHT = """\
import asyncio
import io
import pathlib
import threading
import pylink
import pylink.bench
import pylink.dedup

data = pathlib.Path("b.cubin").read_bytes()
options = pylink.LinkOptions(verbose=True, kernels_used="k", color="auto", profile=True)
options = options.replace(error_limit=3, Map=pathlib.Path("map"))
limit: int | None = options.error_limit
inputs: list[str | pylink.Input | tuple[str, bytes]] = ["a", pylink.Input(data), ("b", data)]
result = pylink.link(inputs, options, arch="sm_90a", lto=False, library_path=[pathlib.Path(".")])
image: bytes = result.image
for record in result.diagnostics:
    severity: pylink.Severity = record.severity
    readable: str | None = record.demangled
with pylink.Linker(arch="sm_90a", log=io.StringIO()) as linker:
    linker.add(memoryview(data))
    linker.add(bytearray(data))
    sizes: list[int] = [section.size for section in linker.complete().sections]
jobs = [pylink.LinkJob(inputs, options, arch="sm_90a", output=pathlib.Path("out"), verbose=True)]
for made in pylink.link_many(jobs, threads=2):
    text: str = str(made) if isinstance(made, pylink.LinkError) else made.arch
def tell(phase: str, done: int, total: int) -> None:
    assert phase and done <= total
waited = asyncio.run(pylink.alink(inputs, arch="sm_90a", progress=tell, cancel=threading.Event()))
step = pylink.dlink(inputs, archs=["sm_80"], form="fatbin", progress=True)
cubins: dict[str, bytes] = dict(step.cubins)
code = result.symbols.where(type="FUNC").sorted_by("size", descending=True)[:10]
names: list[str] = [row.demangled for row in code]
units: dict[str, str] = code.units
removed: list[int | None] = [row.hotness for row in result.remarks]
if result.profile is not None:
    spent: list[float] = [row.wall for row in result.profile.tables.steps]
    fit = pylink.growth(result.profile.tables.files, size="size", cost="parse")
    model: str | None = fit.model
twice: float | None = pylink.growth([1, 2, 4, 8, 16], (float(n) for n in range(5))).twice
folds: list[str | None] = [row.folds_into for row in pylink.dedup.study(["build"]).table]
runs: list[float] = [row.seconds for row in pylink.bench.read("a.csv").table]
"""

# Each is one mistake.
WRONG = """\
pylink.link(["a.cubin"], arch="sm_90a", nonsense=3)
pylink.link(["a.cubin"], arch="sm_90a", verbose="yes")
pylink.link(["a.cubin"], arch="sm_90a", error_limit="10")
pylink.link(["a.cubin"], arch="sm_90a", kernels_used=3)
pylink.link(["a.cubin"], arch="sm_90a", color="sometimes")
pylink.link(["a.cubin"], arch=90)
pylink.link(["a.cubin"])
pylink.link([3], arch="sm_90a")
pylink.link("a.cubin", arch="sm_90a").imag
pylink.LinkOptions(Map=True)
pylink.LinkJob(["a.cubin"], arch="sm_90a", nonsense=3)
pylink.link_many([["a.cubin"]])
pylink.link_many([])[0].image
pylink.LinkOptions(verbos=True)
pylink.LinkOptions().verbose = True
pylink.Linker(arch="sm_90a").add_data("a.cubin", "a")
pylink.Linker(arch="sm_90a", output=3)
pylink.Input("a.cubin", kind="elf")
pylink.link(["a.cubin"], arch="sm_90a", progress=lambda phase: None)
pylink.link(["a.cubin"], arch="sm_90a", cancel=True)
asyncio.run(pylink.alink(["a.cubin"], arch="sm_90a", nonsense=3))
pylink.dlink(["a.cubin"], archs=["sm_90a"], form="elf")
pylink.dlink(["a.cubin"], arch="sm_90a")
result.symbols[0].nonsense
result.symbols.column(3)
pylink.growth(3, [1, 2])
pylink.growth([1, 2], [1, 2]).twice + 1
pylink.dedup.study(["build"]).tabel
pylink.bench.measure(["a.cubin"], rounds="10")
"""

# The sequence of phases, as the pipeline calls them: right, then three mistakes.
SEQUENCE = """\
from pylink.inputs.loaded import Loaded
from pylink.phases.layout import layout
from pylink.phases.merge import merge
from pylink.phases.read import read
from pylink.phases.results import Merged, Objects, Placed
from pylink.pipeline import Runner

def link(run: Runner, loaded: Loaded) -> Placed:
    objects: Objects = run("read", read, loaded)
    merged: Merged = run("merge", merge, objects)
    return run("layout", layout, merged)

def mistaken(run: Runner, loaded: Loaded, objects: Objects) -> None:
    run("merge", merge, loaded)
    run("layout", layout)
    merged: Merged = run("read", read, loaded)
"""


def mypy(place: Path) -> list[int]:
    """The lines of program.py in which `mypy --strict` finds something."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "program.py"],
        cwd=place,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^program\.py:(\d+): error:", done.stdout, re.MULTILINE)
    assert done.returncode == bool(found), done.stdout + done.stderr
    return sorted({int(line) for line in found})


def pyright(place: Path) -> list[int]:
    """The lines of program.py in which pyright finds something with its strict rules.

    basedpyright is pyright with its node in a wheel.
    """
    rules = {"typeCheckingMode": "strict", "pythonVersion": "3.10", "include": ["program.py"]}
    (place / "pyrightconfig.json").write_text(
        json.dumps({**rules, "extraPaths": [str(ROOT / "src")]})
    )
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] == 1, done.stdout + done.stderr
    return sorted({record["range"]["start"]["line"] + 1 for record in said["generalDiagnostics"]})


CHECKERS = pytest.mark.parametrize("check", [mypy, pyright])


@CHECKERS
def test_a_type_checker_finds_every_wrong_call_and_no_other(
    tmp_path: Path, check: Callable[[Path], list[int]]
) -> None:
    right, wrong = len(RIGHT.splitlines()), len(WRONG.splitlines())
    # One run for both: the first import of the package takes most of the time.
    (tmp_path / "program.py").write_text(RIGHT + WRONG)
    assert check(tmp_path) == [right + at for at in range(1, wrong + 1)]


@CHECKERS
def test_a_type_checker_finds_results_of_phases_that_are_swapped_or_missing(
    tmp_path: Path, check: Callable[[Path], list[int]]
) -> None:
    lines = len(SEQUENCE.splitlines())
    (tmp_path / "program.py").write_text(SEQUENCE)
    assert check(tmp_path) == [lines - 2, lines - 1, lines]


@pytest.mark.parametrize(
    "path", generate.generated_files(ROOT / "docs"), ids=lambda path: path.name
)
def test_what_is_generated_is_that_of_the_table(path: Path) -> None:
    text = generate.generated_files(ROOT / "docs")[path]
    assert path.read_text(encoding="utf-8") == text, "run python -m pylink.api.generate"


def described(name: str) -> str:
    """The docstring of an option on one line."""
    return " ".join(getattr(pylink.LinkOptions, name).__doc__.split())


def test_every_option_is_a_keyword_and_an_attribute_with_its_words() -> None:
    wanted = {option.attribute for option in OPTIONS if option.in_call and option.built}
    assert set(LinkKeywords.__annotations__) == wanted | set(ALIASES)
    attributes = {
        name for name, value in vars(pylink.LinkOptions).items() if type(value) is property
    }
    assert attributes == wanted
    for name in wanted:
        assert described(name).endswith(".")


@pytest.mark.parametrize(
    "option", [option for option in optiontypes.call_options() if option.takes in (NUMBER, SIZE)]
)
def test_every_number_has_a_unit(option: Option) -> None:
    unit = optiontypes.unit_of(option)
    assert unit in UNITS
    assert described(option.attribute).endswith(f"Unit: {unit}.")


def test_the_reference_names_all_that_is_public() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    for name in set(pylink.__all__) - {"__version__"}:
        assert f"### `pylink.{name}`\n" in page
    for option in optiontypes.call_options():
        assert f"* `{option.attribute}: " in page
