"""Code of ptxas and nvlink has no finding: a small part of what `make hazards` goes through."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest
from helpers import oracle

from hazards import measure

pytestmark = oracle.needs_oracle

PROGRAMS = 6


def runtime() -> Path:
    return oracle.device_runtime() / "libcudadevrt.a"


@pytest.mark.parametrize("arch", measure.ARCHS)
def test_no_finding_in_programs_and_the_device_runtime(arch: str) -> None:
    found = measure.measure(arch, PROGRAMS, [runtime()], 1000, measure.LONGEST)
    assert found.unfollowed == []
    assert found.long == 0
    assert found.shown == []
    assert found.findings.keys() <= {"stall"}
    assert found.functions > 60
    assert found.findings["stall"] < found.instructions // 1000


def test_files_of_every_kind_are_looked_through(tmp_path: Path) -> None:
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write(runtime(), "lib/libcudadevrt.a")
        file.writestr("some.py", "pass")
    counts = [
        len(list(measure.distinct(measure.inside(path), "90a"))) for path in (runtime(), wheel)
    ]
    assert counts[0] == counts[1] > 10


def test_the_command_counts_functions_and_findings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measure, "libraries", list)
    words = ["measure", "--archs", "80", "--programs", "2", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", [*words, str(runtime())])
    assert measure.main() == 0
    out = capsys.readouterr().out
    assert "sm_80 " in out
    assert " 0 findings" not in out
    assert "\n0 findings in " in out
