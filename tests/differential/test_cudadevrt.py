"""Kernels that launch kernels: links with the device runtime library equal nvlink's."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare

from pylink.command.cli import main

pytestmark = oracle.needs_oracle
LAUNCH = """
__global__ void child(int *p) { *p = 1; }
__global__ void parent(int *p) { child<<<1, 1>>>(p); }
"""
CALLS = """
__global__ void parent(int *p) {
    int device;
    cudaMemsetAsync(p, 0, 16, 0);
    cudaGetDevice(&device);
    p[1] = device;
}
"""
CONSTANTS = "__constant__ int c[3] = {1, 2, 3}; __global__ void k(int *p) { *p = c[*p]; }\n"
PLAIN = "__global__ void k(int *p) { *p = 1; }\n"
PROGRAMS = {
    "a launch": [LAUNCH],
    "calls": [CALLS],
    "calls with constants": [CALLS, CONSTANTS],
    "a launch, and another file": [PLAIN, LAUNCH],
    "no use": [PLAIN],
}
OPTIONS = ["", "-r", "-g", "-preserve-relocs", "-r -preserve-relocs", "--kernels-used=parent"]
OPTIONS += ["--keep-system-libraries"]


@pytest.mark.parametrize("arch", ["75", "90a", "100"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("options", OPTIONS)
def test_device_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, program: str, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for number, text in enumerate(PROGRAMS[program]):
        names.append(f"m{number}.cubin")
        Path(names[-1]).write_bytes(oracle.compile(text, arch, name=f"m{number}.cu"))
    library = [f"-L{oracle.device_runtime()}", "-lcudadevrt"]
    argv = [f"-arch=sm_{arch}", *options.split(), *names, *library, "-o", "out.cubin"]
    expected = oracle.run_nvlink(argv, tmp_path, "out.cubin").image
    assert expected is not None
    assert main(argv) == 0
    assert compare(Path("out.cubin").read_bytes(), expected) == []
