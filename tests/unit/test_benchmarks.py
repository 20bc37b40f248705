"""The benchmarks of the project: every one can be collected, though the tests run none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_benchmark_can_be_collected() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "benchmarks",
        "--collect-only",
        "--bench-large",
        "-q",
    ]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert files == {f"benchmarks/{path.name}" for path in ROOT.glob("benchmarks/bench_*.py")}
