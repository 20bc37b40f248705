"""What a profile counts, against nvlink's files, `pylink inspect` and clang's traces."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import demo, oracle

import pylink
from pylink.command.inspection import main as inspect
from pylink.profile.timetrace import load

CALLER = """
__device__ float helper(float x);
__constant__ float scale[4];
__global__ void kernel(float *p) { p[threadIdx.x] = helper(p[threadIdx.x]) * scale[1]; }
"""
CALLEE = """
__device__ int calls;
__device__ __noinline__ float helper(float x) { atomicAdd(&calls, 1); return x * x; }
"""
CLANG = next(filter(None, map(shutil.which, ("clang-22", "clang-19", "clang"))), None)


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["75", "90a", "100", "120"])
@pytest.mark.parametrize("flags", [(), ("-lineinfo",), ("-G",)], ids=["plain", "lineinfo", "G"])
def test_sections_and_their_bytes_are_those_of_nvlink(
    arch: str, flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cubins = [oracle.compile(text, arch, flags) for text in (CALLER, CALLEE)]
    expected = oracle.link(cubins, arch)
    assert expected.image is not None
    output = tmp_path / "ours.cubin"
    profile = pylink.link(cubins, arch=f"sm_{arch}", output=output, profile=True).profile
    assert profile is not None
    assert profile.output_bytes == profile["write"].bytes_written == output.stat().st_size
    (tmp_path / "theirs.cubin").write_bytes(expected.image)
    assert inspect(["--json", str(tmp_path / "theirs.cubin")]) == 0
    theirs = json.loads(capsys.readouterr().out)
    families = {family.name: family for family in profile.families}
    kinds = {".text.*": ".text.", ".nv.info.*": ".nv.info.", ".nv.constant0.*": ".nv.constant0."}
    for name, prefix in kinds.items():
        found = [section for section in theirs["sections"] if section["name"].startswith(prefix)]
        assert families[name].output_sections == len(found)
        assert families[name].output_bytes == sum(section["sh_size"] for section in found)


@pytest.mark.skipif(CLANG is None, reason="needs clang: apt install clang-22")
def test_traces_of_clang_are_read(tmp_path: Path) -> None:
    assert CLANG is not None
    (tmp_path / "a.c").write_text("int f(int x) { return x; }\n")
    argv = [CLANG, "-c", "-ftime-trace", "-ftime-trace-granularity=0", "a.c", "-o", "a.o"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    events = load(tmp_path / "a.json")
    assert {"X", "M"} <= {str(event["ph"]) for event in events}
    totals = [event for event in events if str(event["name"]).startswith("Total ")]
    theirs = {key for event in totals for key in event}
    pylink.link(demo.cubins("sm_100"), arch="sm_100", time_trace=tmp_path / "ours.json")
    ours = [event for event in load(tmp_path / "ours.json") if event["ph"] == "X"]
    assert {frozenset(event) for event in ours} == {frozenset(theirs)}
