"""A link of two inputs on the command line, beside `python -c pass` in turn with it."""

from __future__ import annotations

import sys

import pytest
from helpers import oracle
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import inputs
from benchmarks.contenders import Contest
from benchmarks.report import Report, ratio
from pylink.bench.contenders import CLI
from pylink.bench.launcher import Launcher

ROUNDS = 41


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["100", "90a"])
def test_bench_startup(
    benchmark: BenchmarkFixture, launcher: Launcher, report: Report, arch: str
) -> None:
    folder, names = inputs.cubins(arch, "15KB", 2)
    contest = Contest(launcher, arch, folder, names)
    bare: list[float] = []
    linked: list[float] = []

    def start_python() -> None:
        bare.append(launcher.run([sys.executable, "-c", "pass"], folder).seconds)

    benchmark.group = "start of a process"
    benchmark.pedantic(
        lambda: linked.append(contest.seconds(CLI)), setup=start_python, rounds=ROUNDS
    )
    if benchmark.stats is not None:  # None when benchmarks are disabled
        report.starts[arch] = ratio(linked, bare)
