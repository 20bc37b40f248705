"""The benchmarks of the project: every one can be collected, though the tests run none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks import figures
from benchmarks.report import Outcome, Report
from pylink.bench.contenders import API, CLI, COPY, NVLINK

ROOT = Path(__file__).parents[2]


def test_every_benchmark_can_be_collected() -> None:
    """A benchmark whose parameters have old names would stop all of them."""
    arguments = ["benchmarks", "--collect-only", "--bench-large", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("::") > 80


# By architecture and module size: bytes of a module, and nvlink / API, API / copy.
FIGURES = {
    ("100", "15KB"): (16_400, 67, 1.3),
    ("100", "50KB"): (53_600, 119, 1.9),
    ("90a", "15KB"): (11_300, 9.2, 1.02),
    ("90a", "50KB"): (39_100, 9.6, 1.57),
}


def planted_report() -> Report:
    """A report in which a copy takes 0.1 s in all three rounds, and archives are measured."""
    report = Report()
    for (arch, size), (module_bytes, speedup, per_copy) in FIGURES.items():
        times = {COPY: 0.1, API: 0.1 * per_copy, NVLINK: 0.1 * per_copy * speedup}
        times[CLI] = times[API] * 2
        by_round = {name: [seconds] * 3 for name, seconds in times.items()}
        peaks = {CLI: 77_000_000, NVLINK: 728_000_000}
        report.outcomes.append(
            Outcome(arch, size, 1600, 1600 * module_bytes, by_round, peaks, by_round)
        )
    for arch, value in {"100": 67.2, "75": 10.4, "90a": 10.2}.items():
        for name in (API, CLI):
            report.archives[f"sm_{arch}, 15KB, {name}"] = (value, 100.0, 10.0)
    return report


MACHINE = {"processor": "EPYC", "cores": "8", "memory": "16 GB", "kernel": "Linux 6", "Python": "3"}
MACHINE |= {"file system": "ext4", "C library": "glibc", "large pages": "never", "pylink": "1"}
MACHINE |= {"date": "2026-11-23 10:00 UTC"}


def test_the_figures_of_a_machine_can_be_pasted() -> None:
    lines = figures.block(planted_report(), MACHINE, "ed9941aa", 0.5)
    page = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    assert lines[0] == "### EPYC, 8 cores"
    assert lines[2].startswith("The machine: 8 cores of EPYC, 16 GB, Linux 6, ext4, glibc, large ")
    assert (
        "nvlink 13.0.88, pylink 1 of ed9941aa, 2026-11-23 10:00 UTC, load 0.50 at the start."
        in lines[2]
    )
    assert lines[4] in page.splitlines()
    assert "| sm_100, 16.4 kB | 67 | 34 | - | 1.30 | 1.30, 2.60 | 77 (728) |" in lines
    assert "Archive, sm_75: nvlink / API 10.4, / CLI 10.4." in lines
    # The row of this state in the history of the page.
    assert lines[-1] in page.splitlines()


def test_what_was_not_measured_is_a_dash() -> None:
    report = planted_report()
    del report.outcomes[1]
    report.archives.clear()
    row = figures.history_row(report, "2026-11-23", "ed9941aa")
    assert row == "| 2026-11-23 | ed9941aa | 67, 1.30 | - | 9.2, 1.02 | 9.6, 1.57 | - |"
    assert figures.block(Report(), MACHINE, "ed9941aa", 0.5) == []
