"""Links where the system lacks what most have: a home, a working directory, device code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.cubin_builder import one_kernel
from helpers.fatbin_builder import host_object

from pylink.command.cli import main
from pylink.options.table import OPTIONS, Option

HOST = host_object([(".text", bytes(16))])
SIDE_OUTPUTS = [row for row in OPTIONS if row.writes and row.attribute != "output_file"]


@pytest.mark.parametrize("option", SIDE_OUTPUTS, ids=lambda option: option.long)
@pytest.mark.parametrize("arch", ["sm_80", "sm_100"])
@pytest.mark.parametrize("host", [True, False])
def test_links_without_device_code(
    tmp_path: Path, option: Option, arch: str, host: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "side"
    words = [f"-arch={arch}", "--allow-empty", "-o", str(tmp_path / "o"), f"--{option.long}={file}"]
    if host:
        (tmp_path / "h.o").write_bytes(HOST)
        words.append(str(tmp_path / "h.o"))
    assert main(words) == 0
    assert "error" not in capsys.readouterr().err
    assert file.exists()
    if option.long == "time-trace":
        assert json.loads(file.read_bytes())["traceEvents"]


def started(folder: Path, before: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Link in a folder where a shell has run `before`."""
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    environment.pop("XDG_DATA_HOME", None)
    environment.pop("PYLINK_SECTIONS", None)
    command = [sys.executable, "-m", "pylink", "-arch=sm_80", *words]
    return subprocess.run(
        ["bash", "-c", f'{before}\nexec "$@"', "bash", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_user_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOME is unset and no user database knows the number."""

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    for variable in ("XDG_DATA_HOME", "PYLINK_SECTIONS", "PYLINK_DISABLE_SECTION_DEPLOYMENT"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    profile = tmp_path / "p"
    words = ["-arch=sm_80", str(tmp_path / "a.cubin"), "-o", str(tmp_path / "o")]
    assert main([*words, f"--profile={profile}"]) == 0
    assert profile.exists()
    assert main(["--list-sections"]) == 0


@pytest.mark.parametrize("option", SIDE_OUTPUTS, ids=lambda option: option.long)
def test_a_working_directory_that_was_deleted(tmp_path: Path, option: Option) -> None:
    """As after the removal of a build folder by another process."""
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    (tmp_path / "gone").mkdir()
    done = started(
        tmp_path,
        'mkdir -p gone && cd gone && rmdir "$PWD"',
        str(tmp_path / "a.cubin"),
        *("-o", str(tmp_path / "o")),
        f"--{option.long}={tmp_path / 'side'}",
        "--diagnostics_format=text",
    )
    assert (done.returncode, "fatal" in done.stderr, "error" in done.stderr) == (0, False, False)
    assert (tmp_path / "o").exists()
    assert (tmp_path / "side").exists()


def test_an_output_in_a_working_directory_that_was_deleted(tmp_path: Path) -> None:
    (tmp_path / "a.cubin").write_bytes(one_kernel().build())
    words = [str(tmp_path / "a.cubin"), "-o", "o"]
    done = started(tmp_path, 'mkdir gone && cd gone && rmdir "$PWD"', *words)
    assert done.returncode == 1
    assert done.stderr.startswith("pylink fatal   : Could not open output file 'o'\n")
