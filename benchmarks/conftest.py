"""Options and fixtures of the benchmarks, and the report at their end."""

from __future__ import annotations

import compileall
from collections.abc import Iterator
from pathlib import Path

import pytest

import pylink
from benchmarks.figures import current_block
from benchmarks.report import Report
from pylink.bench import machine
from pylink.bench.processes import Launcher

REPORT = pytest.StashKey[Report]()
# The machine's load when the session begins; later the benchmarks themselves are a load.
LOAD = pytest.StashKey[float]()
# Number of inputs of the links that run only with --bench-large.
LARGE = 10000


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bench-large",
        action="store_true",
        help=f"also link {LARGE} cubins (nvlink needs minutes), and 100,000 and 5 GB of them",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REPORT] = Report()
    config.stash[LOAD] = machine.load()
    config.addinivalue_line("markers", "bench_large: runs with --bench-large only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--bench-large"):
        return
    large = [
        item for item in items if _count(item) == LARGE or item.get_closest_marker("bench_large")
    ]
    if large:
        config.hook.pytest_deselected(items=large)
        items[:] = [item for item in items if item not in large]


def _count(item: pytest.Item) -> object:
    """Return the parameter `count` of a benchmark; None without one."""
    call = getattr(item, "callspec", None)
    return call.params.get("count") if call else None


@pytest.fixture
def report(pytestconfig: pytest.Config) -> Report:
    """Return the object to which benchmarks add their results."""
    return pytestconfig.stash[REPORT]


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """Yield a process that starts the measured programs."""
    # Installed packages have compiled modules. In an environment that forbids writing bytecode,
    # the measured programs would compile them.
    compileall.compile_dir(str(Path(pylink.__file__).parent), quiet=2)
    process = Launcher()
    yield process
    process.close()


@pytest.hookimpl(trylast=True)  # below the tables of pytest-benchmark
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    lines = config.stash[REPORT].lines()
    if lines:
        terminalreporter.section("medians, and ratios within a round")
    for line in lines:
        terminalreporter.write_line(line)
    figures = current_block(config.stash[REPORT], config.stash[LOAD])
    if figures:
        terminalreporter.section("this machine, for docs/benchmarks.md")
    for line in figures:
        terminalreporter.write_line(line)
