"""Times of reading and writing a large report, beside Nsight Compute's own module.

`python benchmarks/bench_reports.py` prints seconds and ratios, the best of several runs;
`pytest benchmarks/bench_reports.py --benchmark-enable` measures only pylink. The module
`ncu_report` loads the same file and reads the value of every metric in a process of its own;
without it only pylink's times are printed.
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

# A program that loads a report with the module `ncu_report`, and prints the seconds of that.
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
    """Return a report with as many actions as a large link compares pairs of files."""
    report = Report(Process(1, "host", "pylink"))
    for number in range(ACTIONS):
        action = Action("dedup", f"dedup(k{number})", f"k{number}", thread_id=1)
        for metric in range(METRICS):
            action.set(
                f"dedup__counter{metric}.sum",
                number * metric + metric / 2 * (metric % 3 == 0),
            )
        action.nvtx = NvtxState()
        action.nvtx.push(1, ["link", "merge"], "pylink")
        report.actions.append(action)
    return report


def sum_metrics(path: Path) -> float:
    """Load a report and add up the values of its metrics, as PEER does."""
    context = load_report(path)
    return sum(action[name].as_double() for action in context[0] for name in action)


def peer_seconds(path: Path) -> float:
    """Return seconds of the fastest run of PEER."""
    command = [ncu.PYTHON, "-c", PEER, str(ncu.MODULES), str(path)]
    runs = [
        subprocess.run(
            command, capture_output=True, text=True, check=True, env={"HOME": ncu.home()}
        )
        for _ in range(ROUNDS)
    ]
    return min(float(run.stdout) for run in runs)


@pytest.mark.parametrize("part", ["read", "write", "walk"])
def test_bench_reports(part: str, benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    report = large_report()
    data = report_bytes(report)
    path = tmp_path / "large.ncu-rep"
    path.write_bytes(data)
    if part == "walk":
        assert benchmark(sum_metrics, path) > 0
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
        pylink_seconds = fastest(lambda: sum_metrics(path))
        print(f"load and take values   {pylink_seconds:.3f} s")
        if (ncu.MODULES / "ncu_report.py").is_file():
            ncu_seconds = peer_seconds(path)
            ratio = pylink_seconds / ncu_seconds
            print(f"the same by ncu_report {ncu_seconds:.3f} s, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
