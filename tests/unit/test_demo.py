"""`pylink demo`: true figures in few lines, for people with a wheel and with a checkout."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pylink.command.cli import main
from pylink.demo import command


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ROUNDS", 1)


def test_it_fits_a_screen_and_says_what_came_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", str(tmp_path / "out")]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert len(lines) <= 18
    assert lines[0].endswith("13 cubins compiled apart")
    for arch in ("sm_90a", "sm_100"):
        size = (tmp_path / "out" / f"{arch}.cubin").stat().st_size
        (line,) = [line for line in lines if line.startswith(f"{arch}: ")]
        assert f" {size:,} bytes, as nvlink writes it" in line
    assert len(re.findall(r"pylink \d+\.\d ms", out)) == 2
    assert "pylink error   : Undefined reference to '_Z7uniformRj' in 'step.cubin'" in out
    assert "'_Z7uniformRj' is uniform(unsigned int &)" in out
    assert (tmp_path / "out" / "link.html").stat().st_size


def test_no_figure_of_nvlink_where_it_is_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_cuda_tool", lambda name: None)
    monkeypatch.setattr(command, "show_next_commands", lambda folder, out: None)
    assert main(["demo", str(tmp_path)]) == 0
    assert "nvlink 13" not in capfd.readouterr().out


def test_a_result_that_differs_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(command.CHECKOUT / "cubins", tmp_path / "data" / "cubins")
    (tmp_path / "data" / "linked").mkdir()
    for path in (command.CHECKOUT / "linked").iterdir():
        image = bytearray(path.read_bytes())
        image[-1] ^= 1
        (tmp_path / "data" / "linked" / path.name).write_bytes(image)
    monkeypatch.setattr(command, "PACKAGE", tmp_path / "data")
    monkeypatch.setattr(command, "show_next_commands", lambda folder, out: None)
    assert main(["demo", str(tmp_path / "out")]) == 1
    assert capfd.readouterr().out.count("bytes, differs from nvlink's") == 2


def test_a_program_that_fails_is_named_as_it_was_typed(tmp_path: Path) -> None:
    program = tmp_path / "fails here"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(command.DemoError) as caught:
        command.run_in_terminal([str(program), "-v"])
    assert str(caught.value) == f"`'{program}' -v` ended with status 3"
