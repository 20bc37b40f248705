"""`python -m hazards` names what it does not follow."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from emulator.kernels import images
from helpers import oracle

from hazards import __main__ as command

pytestmark = oracle.needs_oracle


def test_the_command_names_what_goes_on_after_its_scoreboards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "copies.cubin"
    path.write_bytes(images("80")[1])
    monkeypatch.setattr(sys, "argv", ["hazards", str(path), "--brief"])
    command.main()
    lines = capsys.readouterr().out.splitlines()
    assert any(
        "not followed beyond their scoreboards: " in line and "LDGSTS" in line for line in lines
    )
