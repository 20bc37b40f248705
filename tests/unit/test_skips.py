"""The policy on skipped tests: a run with all clients fails where one is not used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def run(folder: Path, *, required: bool) -> tuple[int, str]:
    """Exit status and output of pytest on what `folder` holds."""
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            folder,
            folder,
        ],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
            "PYLINK_REQUIRE_CLIENTS": "1" if required else "0",
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


SKIPS = {
    "in_a_test": "def test_a():\n    pytest.skip('no tool')",
    "by_a_mark": "@pytest.mark.skipif(True, reason='no tool')\ndef test_a():\n    pass",
    "a_module": "pytest.skip('no tool', allow_module_level=True)",
    "in_a_fixture": "@pytest.fixture\ndef tool():\n    pytest.skip('no tool')\n"
    "def test_a(tool):\n    pass",
}


def test_skips_fail_where_the_clients_are_installed(tmp_path: Path) -> None:
    for name, body in SKIPS.items():
        text = f"import pytest\ndef test_b():\n    pass\n{body}\n"
        (tmp_path / f"test_{name}.py").write_text(text)
    status, out = run(tmp_path, required=True)
    assert status == pytest.ExitCode.TESTS_FAILED, out
    named = out.partition("skipped with all clients installed")[2].splitlines()
    for name in SKIPS:
        assert any(f"test_{name}.py" in line and "no tool" in line for line in named), name
    assert run(tmp_path, required=False)[0] == pytest.ExitCode.OK


def test_what_no_package_brings_may_be_skipped(tmp_path: Path) -> None:
    allowed = {"gpu": "no GPU", "unit": "the SARIF schema is not beside the project"}
    for place, reason in allowed.items():
        (tmp_path / "tests" / place).mkdir(parents=True)
        (tmp_path / "tests" / place / f"test_{place}.py").write_text(
            f"import pytest\ndef test_a():\n    pytest.skip({reason!r})\n"
        )
    status, out = run(tmp_path, required=True)
    assert status == pytest.ExitCode.OK, out
    assert "2 skipped" in out
