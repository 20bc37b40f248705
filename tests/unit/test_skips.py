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


@pytest.mark.parametrize(
    "body",
    [
        "def test_a():\n    pytest.skip('no tool')",
        "@pytest.mark.skipif(True, reason='no tool')\ndef test_a():\n    pass",
        "pytest.skip('no tool', allow_module_level=True)",
        "@pytest.fixture\ndef tool():\n    pytest.skip('no tool')\ndef test_a(tool):\n    pass",
    ],
    ids=["in a test", "by a mark", "a module", "in a fixture"],
)
def test_a_skip_fails_where_the_clients_are_installed(tmp_path: Path, body: str) -> None:
    (tmp_path / "test_one.py").write_text(f"import pytest\ndef test_b():\n    pass\n{body}\n")
    status, out = run(tmp_path, required=True)
    assert status == pytest.ExitCode.TESTS_FAILED, out
    assert "skipped with all clients installed" in out
    assert "no tool" in out
    assert run(tmp_path, required=False)[0] in (
        pytest.ExitCode.OK,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    )


@pytest.mark.parametrize(
    ("place", "reason"),
    [("tests/gpu", "no GPU"), ("tests/unit", "the SARIF schema is not beside the project")],
)
def test_what_no_package_brings_may_be_skipped(tmp_path: Path, place: str, reason: str) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "test_one.py").write_text(
        f"import pytest\ndef test_a():\n    pytest.skip({reason!r})\n"
    )
    status, out = run(tmp_path, required=True)
    assert status == pytest.ExitCode.OK, out
