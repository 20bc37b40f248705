"""Whole links of generated cubins, all contenders in turn in every round."""

from __future__ import annotations

import time

import pytest
from helpers import oracle
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import inputs
from benchmarks.contenders import Contenders
from benchmarks.report import Outcome, Report
from pylink.bench.contenders import API, CLI, COPY
from pylink.bench.processes import Launcher

# Number of rounds by number of inputs.
ROUNDS = {2: 21, 10: 21, 100: 11, 400: 7, 1600: 7, 10000: 3}
# Memory that was free for a while takes longer to allocate, so links of this number of inputs or
# more are also measured after a rest.
RESTED = 400
REST = 5.0  # seconds
RESTED_ROUNDS = 3
SLOW = 2.0  # seconds; after a round in which it takes that long, a contender runs in no other


@oracle.needs_oracle
@pytest.mark.parametrize("count", ROUNDS)
@pytest.mark.parametrize("size", ["15KB", "50KB"])
@pytest.mark.parametrize("arch", ["100", "90a"])
def test_bench_link(
    benchmark: BenchmarkFixture,
    launcher: Launcher,
    report: Report,
    monkeypatch: pytest.MonkeyPatch,
    arch: str,
    size: str,
    count: int,
) -> None:
    folder, names = inputs.cubins(arch, size, count)
    contenders = Contenders(launcher, arch, folder, names)
    times: dict[str, list[float]] = {name: [] for name in contenders.names_in_turn()}

    def others() -> None:
        """Measure a link by each other tool, again only if its last one took less than SLOW."""
        for name, seconds_by_round in times.items():
            if not seconds_by_round or seconds_by_round[-1] < SLOW:
                seconds_by_round.append(contenders.seconds(name))
        contenders.clear()

    monkeypatch.chdir(folder)
    contenders.link()  # loads pylink, and the inputs into the page cache
    benchmark.group = f"sm_{arch}, {size} modules, {count} inputs"
    benchmark.pedantic(contenders.link, setup=others, rounds=ROUNDS[count])
    contenders.measure_api()
    contenders.close()

    if benchmark.stats is not None:  # None when benchmarks are disabled
        times[API] = list(benchmark.stats.stats.data)
    rested: dict[str, list[float]] = {CLI: [], API: [], COPY: []}
    if benchmark.stats is not None and count >= RESTED:
        for _ in range(RESTED_ROUNDS):
            for name, seconds_by_round in rested.items():
                time.sleep(REST)
                seconds_by_round.append(contenders.seconds(name))
    input_bytes = sum((folder / name).stat().st_size for name in names)
    report.outcomes.append(Outcome(arch, size, count, input_bytes, times, contenders.peaks, rested))
