"""The cost of a profile in processor time: profiled links in turn with plain ones.

Wall time would not do: other programs change it by more than collecting a profile costs.
`collected` is `pylink.link(..., profile=True)`: it includes all work during the link, and the
counts at its end. The others also write their file, whose time grows with the number of inputs.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from helpers import oracle
from pytest_benchmark.fixture import BenchmarkFixture

import pylink
from benchmarks import inputs
from benchmarks.report import Report

COUNT = 1600
ROUNDS = 15
FILE_ROUNDS = 3  # of links that write a file: these are not close to any goal
PLAIN, COLLECTED = "plain", "collected"


def files(folder: Path) -> dict[str, dict[str, Any]]:
    """Return, by name on the command line, options of `pylink.link` that write a profile."""
    return {
        "--time-trace": {"time_trace": folder / "link.json"},
        "--profile": {"profile": folder / "link.ncu-rep"},
        "--profile-aprof": {"profile_aprof": folder / "link.aprof"},
    }


@oracle.needs_oracle
@pytest.mark.parametrize("size", ["15KB", "50KB"])
@pytest.mark.parametrize("arch", ["100", "90a"])
def test_bench_profile(
    benchmark: BenchmarkFixture,
    report: Report,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arch: str,
    size: str,
) -> None:
    folder, names = inputs.cubins(arch, size, COUNT)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYLINK_SECTIONS", str(tmp_path / "sections"))
    output = tmp_path / "linked.cubin"
    writing = files(tmp_path)
    options = {PLAIN: {}, COLLECTED: {"profile": True}, **writing}
    times: dict[str, list[float]] = {name: [] for name in options}

    def link(name: str) -> None:
        """Link once with the options of this name, and keep the processor time."""
        output.unlink(missing_ok=True)
        start = time.process_time()
        pylink.link(names, arch=f"sm_{arch}", output=output, **options[name])
        times[name].append(time.process_time() - start)

    for name in options:  # loads the modules, and the inputs into the page cache
        link(name)
        times[name].clear()
    benchmark.group = f"profiles, sm_{arch}, {size} modules, {COUNT} inputs"
    benchmark.pedantic(link, args=(PLAIN,), setup=lambda: link(COLLECTED), rounds=ROUNDS)
    for name in writing:
        for _ in range(FILE_ROUNDS):
            link(name)
    if benchmark.stats is not None:  # None when benchmarks are disabled
        report.profiles[f"sm_{arch}, {size}, {COUNT} inputs"] = times
