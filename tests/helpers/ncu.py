"""The readers of report files in Nsight Compute: `ncu` and the module `ncu_report`.

Tests that need them carry `needs_ncu` or `needs_ncu_report` and are skipped, with that reason,
where Debian's nsight-compute is not installed.
"""

from __future__ import annotations

import atexit
import csv
import functools
import io
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

PYTHON = "/usr/bin/python3"
MODULES = Path("/usr/lib/python3/dist-packages")
EXAMPLES = Path("/usr/share/doc/nsight-compute/examples/uncoalescedGlobalAccesses")
SAMPLES = sorted(EXAMPLES.glob("*.ncu-rep"))
DEFINITIONS = Path("/usr/lib/nsight-compute/extras/FileFormat")
# Sections and rules of Nsight Compute.
SECTIONS = Path("/usr/lib/x86_64-linux-gnu/nsight-compute/sections")

needs_ncu = pytest.mark.skipif(
    shutil.which("ncu") is None, reason="needs ncu: apt install nsight-compute"
)
needs_ncu_report = pytest.mark.skipif(
    not (MODULES / "ncu_report.py").is_file(),
    reason="needs the module ncu_report: apt install nsight-compute",
)
needs_sections = pytest.mark.skipif(
    not SECTIONS.is_dir(), reason="needs the sections of ncu: apt install nsight-compute"
)
needs_samples = pytest.mark.skipif(
    not SAMPLES, reason="needs the sample reports of ncu: apt install nsight-compute"
)


@functools.cache
def home() -> str:
    """Return a home directory of the tests' own: ncu deploys files into it."""
    folder = tempfile.mkdtemp(prefix="pylink-ncu-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def ncu(path: Path, *options: str) -> str:
    """Return the output of `ncu --import`; fails the test if it refuses the file."""
    result = subprocess.run(
        ["ncu", "--import", str(path), *options],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "HOME": home()},
        check=False,
    )
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    assert "==ERROR==" not in output, output
    assert "libprotobuf" not in output, output
    return result.stdout


def ncu_csv(path: Path, *options: str) -> list[list[str]]:
    """Return the rows that `ncu --import ... --csv` prints, without its notes."""
    output = ncu(path, *options, "--csv")
    lines = [line for line in output.splitlines(keepends=True) if not line.startswith("==")]
    return list(csv.reader(io.StringIO("".join(lines))))


def real_dump(
    path: Path, skipped: Sequence[str] = (), filters: Sequence[tuple[list[str], list[str]]] = ()
) -> Any:
    """Return the result of `ncu_dump.dump` with the module `ncu_report`."""
    return real("dump", str(path), list(skipped), [list(pair) for pair in filters])


def real(function: str, *arguments: Any) -> Any:
    """Call a function of `ncu_dump` with the module `ncu_report`, in a process of its own."""
    script = Path(__file__).with_name("ncu_dump.py")
    result = subprocess.run(
        [PYTHON, str(script), str(MODULES), function, json.dumps(arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={"HOME": home(), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
