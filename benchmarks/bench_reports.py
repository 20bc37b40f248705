"""What reading and writing a large report costs, beside Nsight Compute's own module.

`python benchmarks/bench_reports.py` prints seconds and ratios, the best of several runs;
`pytest benchmarks/bench_reports.py --benchmark-enable` times pylink's part alone. The peer is the
module `ncu_report`, which loads the same file and takes the value of every metric in a process of
its own; without it only pylink's times are printed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

if __name__ == "__main__":
    ROOT = Path(__file__).parents[1]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers import ncu

from benchmarks.fastest import fastest
from pylink.report import load_report, parse_report, report_bytes, write_report
from pylink.report.model import Action, NvtxState, Process, Report

ACTIONS, METRICS = 1600, 60
ROUNDS = 5

PEER = """
import sys, time
sys.path.insert(0, sys.argv[1])
import ncu_report
start = time.perf_counter()
context = ncu_report.load_report(sys.argv[2])
total = sum(action[name].as_double() for action in context[0] for name in action)
print(time.perf_counter() - start)
"""


def large_report() -> Report:
    """As many actions as a large link compares pairs of, each with what its phase counts."""
    report = Report(Process(1, "host", "pylink"))
    for number in range(ACTIONS):
        action = Action("dedup", f"dedup(k{number})", f"k{number}", thread_id=1)
        for each in range(METRICS):
            action.set(f"dedup__counter{each}.sum", number * each + each / 2 * (each % 3 == 0))
        action.nvtx = NvtxState()
        action.nvtx.push(1, ["link", "merge"], "pylink")
        report.actions.append(action)
    return report


def walk(path: Path) -> float:
    """Load a report and add up its metrics, as the peer does."""
    context = load_report(path)
    return sum(action[name].as_double() for action in context[0] for name in action)


def peer(path: Path) -> float:
    """Seconds of the fastest round of the real module."""
    command = [ncu.PYTHON, "-c", PEER, str(ncu.MODULES), str(path)]
    said = [
        subprocess.run(
            command, capture_output=True, text=True, check=True, env={"HOME": ncu.home()}
        )
        for _ in range(ROUNDS)
    ]
    return min(float(each.stdout) for each in said)


@pytest.mark.parametrize("part", ["read", "write", "walk"])
def test_bench_reports(part: str, benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    report = large_report()
    data = report_bytes(report)
    path = tmp_path / "large.ncu-rep"
    path.write_bytes(data)
    if part == "walk":
        assert benchmark(walk, path) > 0
    elif part == "read":
        assert len(benchmark(parse_report, data).actions) == ACTIONS
    else:
        assert benchmark(report_bytes, report) == data


def main() -> None:
    """Print the times and their ratios."""
    report = large_report()
    data = report_bytes(report)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.ncu-rep"
        write_report(report, path)
        print(f"{ACTIONS} actions x {METRICS} metrics, {len(data):,} bytes")
        print(f"write                  {fastest(lambda: report_bytes(report)):.3f} s")
        print(f"read                   {fastest(lambda: parse_report(data)):.3f} s")
        ours = fastest(lambda: walk(path))
        print(f"load and take values   {ours:.3f} s")
        if (ncu.MODULES / "ncu_report.py").is_file():
            theirs = peer(path)
            print(f"the same by ncu_report {theirs:.3f} s, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
