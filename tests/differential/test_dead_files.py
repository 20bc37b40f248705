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
NONE = "int of_the_host;\n"
INLINED = "__device__ int half(int n) { return n / 2 + n * n; }\n" + LIVE.replace("1", "half(*p)")


@pytest.mark.parametrize("arch", ["75", "80", "90a", "100", "120"])
@pytest.mark.parametrize("option", [[], ["-r"], ["-g"], ["--kernels-used=other"]])
@pytest.mark.parametrize("flags", ["plain", "lineinfo", "G", "G plain", "plain G", "lineinfo G"])
@pytest.mark.parametrize(
    "texts", [[DEAD], [DEAD, LIVE], [LIVE, DEAD], [INLINED], [DEAD, INLINED], [NONE], [NONE, LIVE]]
)
def test_dead_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arch: str,
    flags: str,
    texts: list[str],
    option: list[str],
) -> None:
    """`flags` are those of the first file and of the second."""
    monkeypatch.chdir(tmp_path)
    names = []
    for number, text in enumerate(texts):
        names.append(f"m{number}.cubin")
        flag = flags.split()[min(number, flags.count(" "))]
        how = [] if flag == "plain" else [f"-{flag}"]
        Path(names[-1]).write_bytes(oracle.compile(text, arch, how, name=f"m{number}.cu"))
    argv = [f"-arch=sm_{arch}", *option, *names, "-o", "out.cubin"]
    expected = oracle.run_nvlink(argv, tmp_path, "out.cubin").image
    assert expected is not None
    assert main(["--merc-dedup=off", *argv]) == 0
    assert compare(Path("out.cubin").read_bytes(), expected) == []
