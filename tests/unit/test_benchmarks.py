"""The benchmarks of the project: every one can be collected, though the tests run none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
