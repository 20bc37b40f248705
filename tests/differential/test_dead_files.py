"""Files without a live function: what their debug data leaves is what nvlink leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare

from pylink.command.cli import main

pytestmark = oracle.needs_oracle
DEAD = "__device__ int dead(int n) { return n + 1; }\n"
LIVE = "__global__ void live(int *p) { *p = 1; }\n"


@pytest.mark.parametrize("arch", ["75", "80", "90a"])
@pytest.mark.parametrize("flags", [[], ["-lineinfo"], ["-G"]])
@pytest.mark.parametrize("texts", [[DEAD], [DEAD, LIVE], [LIVE, DEAD]])
def test_dead_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, flags: list[str], texts: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for number, text in enumerate(texts):
        names.append(f"m{number}.cubin")
        Path(names[-1]).write_bytes(oracle.compile(text, arch, flags, name=f"m{number}.cu"))
    argv = [f"-arch=sm_{arch}", *names, "-o", "out.cubin"]
    expected = oracle.run_nvlink(argv, tmp_path, "out.cubin").image
    assert expected is not None
    assert main(argv) == 0
    assert compare(Path("out.cubin").read_bytes(), expected) == []
