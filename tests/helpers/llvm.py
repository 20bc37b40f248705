"""LLVM's readers of remarks, by release; tests that need a missing one are skipped."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

OPT_VIEWER = Path("/usr/lib/llvm-22/share/opt-viewer/opt-viewer.py")


def remarkutil(release: str) -> Callable[..., Counter[str]]:
    """Return a function that runs llvm-remarkutil and adds up the counts of each row."""
    tool = shutil.which(f"llvm-remarkutil-{release}")
    if tool is None:
        pytest.skip(f"no llvm-remarkutil-{release} (apt install llvm-{release})")

    def run(*words: str, folder: Path) -> Counter[str]:
        done = subprocess.run(
            [tool, *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        counts: Counter[str] = Counter()
        for name, count in list(csv.reader(io.StringIO(done.stdout)))[1:]:
            counts[name] += int(count)
        return counts

    return run


def opt_viewer() -> Callable[..., None]:
    """Return a function that runs opt-viewer on a file of remarks, with pages in `html`."""
    if not OPT_VIEWER.is_file():
        pytest.skip("no opt-viewer (apt install llvm-22-tools)")
    for module in ("yaml", "pygments"):
        if find_spec(module) is None:
            pytest.skip(f"opt-viewer needs the package {module}")
    if shutil.which("c++filt") is None:
        pytest.skip("opt-viewer needs c++filt (apt install binutils)")

    def run(file: str, *, folder: Path) -> None:
        command = [sys.executable, str(OPT_VIEWER), "-j1", "-n", "-o", "html", file]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return run


def run_llvm(tool: str, release: str, *words: str, data: bytes = b"") -> tuple[int, bytes, str]:
    """Return exit status, standard output and errors of an LLVM tool that reads `data`."""
    path = shutil.which(f"{tool}-{release}")
    if path is None:
        pytest.skip(f"no {tool}-{release} (apt install llvm-{release})")
    done = subprocess.run([path, *words], input=data, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")
