"""`pylink doctor`: what is missing or slow, each with the command that fixes it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest
from helpers.installed import Installed, build_scripts

from pylink.command.cli import main
from pylink.doctor import checks


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_scripts(tmp_path_factory.mktemp("scripts"))


@pytest.fixture
def installed(tmp_path: Path, scripts: Path) -> Installed:
    return Installed(tmp_path / "prefix", scripts)


def findings(installed: Installed, **variables: str) -> dict[str, dict[str, str]]:
    """What the doctor of an installation finds, by name."""
    script = ["-c", "import sys; from pylink.doctor.command import main; main(['--json'])"]
    done = installed.run(*script, name=sys.executable, **variables)
    assert done.stderr == ""
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_it_tells_which_bundle_is_good(installed: Installed) -> None:
    unwritten = {"PYTHONDONTWRITEBYTECODE": "1"}
    found = findings(installed)["bundle"]
    assert (found["state"], found["text"]) == ("slow", "none yet; the next link writes one")
    assert "HOME" in findings(installed, **unwritten)["bundle"]["text"]
    installed.ship()
    assert (
        findings(installed, **unwritten)["bundle"]["text"] == f"{installed.shipped} (of the wheel)"
    )
    installed.link()
    found = findings(installed)["bundle"]
    assert (found["state"], found["text"]) == ("ok", f"{installed.bundle} (in the package)")
    os.utime(installed.package / "timing.py")
    assert findings(installed)["bundle"]["state"] == "ok"  # the bytes are the same
    with (installed.package / "timing.py").open("a") as stream:
        stream.write("# changed\n")
    found = findings(installed)["bundle"]
    assert found["state"] == "slow"
    assert "each link starts twice" in found["text"]
    assert found["fix"] == f"{sys.executable} -m pylink.startup.bundle"
    done = installed.run(*found["fix"].split()[1:], name=sys.executable)
    assert (done.returncode, done.stderr) == (0, "")
    assert findings(installed)["bundle"]["state"] == "ok"


def test_the_program_of_an_environment_is_found(installed: Installed) -> None:
    """A quick start runs without `site`, which alone knows where an environment has packages."""
    binaries = installed.folder / "bin"
    python = binaries / "python3"
    python.symlink_to(Path(sys.executable).resolve())
    (installed.folder / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    script = binaries / "pylink-python"
    script.write_text(script.read_text().replace(sys.executable, str(python)))
    installed.link()
    done = installed.run("doctor", "--json")
    assert done.stderr == ""
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert found["program"]["state"] == "ok", found["program"]
    assert found["program"]["text"] == str(installed.program)


def test_the_users_cache_counts(installed: Installed) -> None:
    home = installed.folder / "home"
    home.mkdir()
    variables = {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    installed.link(**variables)
    assert findings(installed, **variables)["bundle"]["text"].endswith("(in the user's cache)")


def test_a_server_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path / "socket")
    monkeypatch.setenv("PYLINK_SERVER", place)
    assert checks.check_server().state == checks.SLOW
    monkeypatch.setenv("PYLINK_SERVER", "auto")
    assert checks.check_server().state == checks.OK
    monkeypatch.setenv("PYLINK_SERVER", place)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen(1)
        assert checks.check_server() == checks.Check("server", checks.OK, place)


def test_what_is_missing_has_a_fix_and_a_status(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["doctor"]) == 0
    there = capfd.readouterr().out
    assert "\nok       zstandard " in there
    monkeypatch.setattr(checks, "is_installed", lambda module: False)
    monkeypatch.setattr(checks, "cuda_tools", lambda name: iter(()))
    monkeypatch.setattr(checks, "find_nvjitlink", list)
    assert main(["doctor"]) == 1
    lines = capfd.readouterr().out.splitlines()
    for name, state in (("zstandard", "missing"), ("ptxas", "note"), ("[report]", "note")):
        (at,) = [at for at, line in enumerate(lines) if line.split()[:2] == [state, name]]
        assert lines[at + 1].lstrip().startswith(f"fix: {sys.executable} -m pip install ")


def test_an_overlay_in_the_path_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    shutil.copy(shutil.which("true") or "", binaries / "nvcc")
    (binaries / "nvlink.release").write_text("13.2\n")
    monkeypatch.setenv("PATH", str(binaries))
    found = {check.name: check for check in checks.check_toolkit()}["overlay"]
    assert found.text == "nvcc of PATH links with pylink as CUDA 13.2, plain"
    for unknown in ("13.99\n", "\xfc"):
        (binaries / "nvlink.release").write_text(unknown, encoding="latin-1")
        found = {check.name: check for check in checks.check_toolkit()}["overlay"]
        assert (
            found.text == "nvcc of PATH links with pylink by the release of the newest input, plain"
        )
    (binaries / "nvlink.notes").touch()
    assert {check.name: check for check in checks.check_toolkit()}["overlay"].text.endswith("notes")
