"""The directory for the object of a program's device-link step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers.cubin_builder import one_kernel

from pylink.command.cli import main


def test_no_directory_for_the_object_is_said_as_nvcc_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """nvcc ends with the status 1 and this message, too, with the name of its own file."""
    binaries = tmp_path / "cuda" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "nvcc.profile").touch()
    (binaries / "nvcc").write_text('#!/bin/sh\nls -d "$2" && echo runs\n')
    (binaries / "nvcc").chmod(0o755)
    (tmp_path / "a.o").write_bytes(one_kernel().build())
    monkeypatch.chdir(tmp_path)
    words = [f"--cuda={tmp_path / 'cuda'}", "--as-nvcc", "-arch=sm_80", "a.o", "-cudadevrt=none"]

    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    assert main(["dlink", *words], tool="pylink") == 1
    output, errors = capfd.readouterr()
    start = f"nvlink fatal   : Could not open output file '{tmp_path}/missing/pylink-"
    assert (output, errors.count("\n")) == ("", 1)
    assert errors.startswith(start)

    (tmp_path / "missing").mkdir()
    assert main(["dlink", *words], tool="pylink") == 0
    assert capfd.readouterr().out.endswith("/a_dlink.o\nruns\n")
    assert not os.listdir(tmp_path / "missing")
