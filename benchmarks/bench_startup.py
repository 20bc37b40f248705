"""Small links on the command line.

Links of two inputs run in turn with `python -c pass`. Links of 13 inputs run in turn with nvlink,
as processes of their own and by `pylink serve`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers import demo, oracle
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import inputs
from benchmarks.contenders import Contenders
from benchmarks.report import Report, ratio
from pylink.bench.contenders import CLI, NVLINK, SERVED, this_program
from pylink.bench.processes import Launcher
from pylink.bench.server import Server

ROUNDS = 41


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["100", "90a"])
def test_bench_startup(
    benchmark: BenchmarkFixture, launcher: Launcher, report: Report, arch: str
) -> None:
    folder, names = inputs.cubins(arch, "15KB", 2)
    contenders = Contenders(launcher, arch, folder, names)
    bare: list[float] = []
    linked: list[float] = []

    def start_python() -> None:
        """Measure a start of the interpreter that does nothing."""
        bare.append(launcher.run([sys.executable, "-c", "pass"], folder).seconds)

    benchmark.group = "start of a process"
    benchmark.pedantic(
        lambda: linked.append(contenders.seconds(CLI)), setup=start_python, rounds=ROUNDS
    )
    if benchmark.stats is not None:  # None when benchmarks are disabled
        report.starts[arch] = ratio(linked, bare)


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["100", "90a"])
def test_bench_served(
    benchmark: BenchmarkFixture, launcher: Launcher, report: Report, arch: str, tmp_path: Path
) -> None:
    names = [str(path) for path in demo.cubins(f"sm_{arch}")]
    server = Server(this_program())
    contenders = Contenders(launcher, arch, tmp_path / arch, names, server.launcher)
    contenders.folder.mkdir()
    times: dict[str, list[float]] = {CLI: [], NVLINK: [], SERVED: []}

    def link_with(contender: str) -> None:
        """Measure a link of one contender."""
        times[contender].append(contenders.seconds(contender))

    def others() -> None:
        link_with(CLI)
        link_with(NVLINK)

    benchmark.group = f"{len(names)} cubins of the demo"
    try:
        benchmark.pedantic(lambda: link_with(SERVED), setup=others, rounds=ROUNDS)
    finally:
        server.close()
    if benchmark.stats is not None:
        report.small[arch] = {
            name: ratio(seconds_by_round, times[NVLINK]) for name, seconds_by_round in times.items()
        }
