"""The action of examples/size: its steps as a runner starts them, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from helpers.fatbin_builder import container, entry
from helpers.sized import library, linked, wheel

ACTION = Path(__file__).parents[2] / "examples" / "size" / "action.yml"

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")


def step(name: str) -> str:
    """The shell's text of a step."""
    text = ACTION.read_text(encoding="utf-8").partition(f"    - name: {name}\n")[2]
    return textwrap.dedent(text.partition("      run: |\n")[2].partition("\n    - ")[0])


@pytest.fixture
def builds(tmp_path: Path) -> Path:
    """Folders `old` and `new` with a library that grew by a target, and `pylink` in `bin`."""
    for name, targets in (("old", (80,)), ("new", (80, 90))):
        (tmp_path / name).mkdir()
        entries = [entry(linked(sm), sm) for sm in targets]
        data = library([(".nv_fatbin", container(*entries))])
        (tmp_path / name / "libfoo.so").write_bytes(data)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "pylink"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pylink "$@"\n')
    program.chmod(0o755)
    return tmp_path


def compare(folder: Path, budget: str) -> tuple[str, str, str]:
    """The comment, the log and the outputs of the step that compares."""
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "NEW": "new",
        "OLD": "old",
        "BUDGET": budget,
        "GITHUB_STEP_SUMMARY": "summary.md",
        "GITHUB_OUTPUT": "outputs",
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step("Compare")]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    comment = (folder / "size.md").read_text()
    assert (folder / "summary.md").read_text() == comment
    return comment, (folder / "size.log").read_text(), (folder / "outputs").read_text()


def test_the_comment_says_what_grew_and_a_broken_limit_is_the_status(builds: Path) -> None:
    (builds / "limits.toml").write_text('installed = "1 MB"\n"libfoo*.so:sm_90" = "100 B"\n')
    comment, log, outputs = compare(builds, "limits.toml")
    assert comment.startswith("**Size of device code and files: ")
    assert "| sm\\_90 |" in comment
    (line,) = log.splitlines()
    assert "over budget: libfoo*.so:sm_90" in line
    assert f"    {line}" in comment.splitlines()
    assert outputs == "status=1\n"
    limits = step("Limits").replace("${{ steps.compare.outputs.status }}", "1")
    done = subprocess.run(
        ["bash", "-e", "-c", limits], cwd=builds, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, log)


def test_without_limits_it_passes_and_what_is_unreadable_is_2(builds: Path) -> None:
    assert compare(builds, "")[1:] == ("", "status=0\n")
    (builds / "outputs").unlink()
    (builds / "summary.md").unlink()
    (builds / "new" / "cut.whl").write_bytes(b"PK\3\4cut")
    comment, log, outputs = compare(builds, "")
    assert "new/cut.whl" in log
    assert log.strip() in comment
    assert outputs == "status=2\n"


def test_the_budget_beside_it_is_read(builds: Path) -> None:
    shutil.copy(ACTION.with_name("budget.toml"), builds / "budget.toml")
    for name in ("old", "new"):  # a limit of the download is for wheels
        file = builds / name / "libfoo.so"
        wheel(file.with_name("foo-1.0-py3-none-any.whl"), {"libfoo.so": file.read_bytes()})
        file.unlink()
    assert compare(builds, "budget.toml")[2] == "status=1\n"  # growth of more than 2 %
