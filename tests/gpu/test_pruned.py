"""Pruned programs compute on a GPU what they did before.

Each program launches all of its kernels and prints the results. It is built for the GPU at
hand, for another target, and with PTX.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from gpu.device import Gpu, needs_gpu
from helpers import oracle

from pylink.prune.command import main
from pylink.size import measure
from pylink.size.reductions import reductions

pytestmark = [
    needs_gpu,
    pytest.mark.skipif(oracle.find() is None, reason="needs nvcc: pip install '.[oracle]'"),
    pytest.mark.skipif(not shutil.which("g++"), reason="needs g++: apt install g++"),
]

SOURCES = {
    "a.cu": """
#include <cstdio>
extern __device__ int scale(int);
void second(int *p);
__global__ void first(int *p) { p[threadIdx.x] = scale(threadIdx.x); }
int main() {
    int *p, back[32];
    if (cudaMalloc(&p, sizeof back)) return 1;
    first<<<1, 32>>>(p);
    second(p);
    if (cudaMemcpy(back, p, sizeof back, cudaMemcpyDeviceToHost)) return 2;
    for (int value : back) printf("%d ", value);
}
""",
    "b.cu": """
__device__ int factor = 3;
__device__ int scale(int x) { return x * factor; }
__global__ void add(int *p) { p[threadIdx.x] += factor; }
void second(int *p) { add<<<1, 32>>>(p); }
""",
}
WANTED = " ".join(str(3 * lane + 3) for lane in range(32)) + " "


class Build:
    """Objects of both sources in a folder, for `codes` of nvcc."""

    def __init__(self, folder: Path, codes: Sequence[str]) -> None:
        self.folder, self.codes = folder, codes
        self.nvcc = oracle.toolchain().tool("nvcc")
        for name, text in SOURCES.items():
            (folder / name).write_text(text)
        self.run(self.nvcc, *codes, "-rdc=true", "-Xcompiler", "-fPIC", "-c", *SOURCES)

    def run(self, *words: str) -> str:
        environment = {**os.environ, "CUDA_CACHE_DISABLE": "1"}
        done = subprocess.run(
            words, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def link(self, codes: Sequence[str]) -> None:
        self.run(self.nvcc, *codes, "-Xcompiler", "-fPIC", "-dlink", "a.o", "b.o", "-o", "d.o")

    def start(self) -> str:
        self.run(self.nvcc, "-nodlink", "a.o", "b.o", "d.o", "-o", "program")
        return self.run("./program")

    def path(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture(scope="module")
def arch() -> int:
    gpu = Gpu()
    return int(gpu.major * 10 + gpu.minor)


def code(arch: int, *, ptx: bool = False) -> str:
    return f"-gencode=arch=compute_{arch},code={'compute' if ptx else 'sm'}_{arch}"


def other(arch: int) -> int:
    """A target whose cubins this GPU does not run."""
    return 75 if arch >= 80 else 90


def test_linked_code_runs_without_the_copies(arch: int, tmp_path: Path) -> None:
    build = Build(tmp_path, [code(arch), code(arch, ptx=True)])
    build.link([code(arch)])
    assert build.start() == WANTED
    linked = build.path("d.o")
    assert main(["--linked", linked, "--in-place", build.path("a.o"), build.path("b.o")]) == 0
    assert build.start() == WANTED


def test_ptx_serves_gpus_without_linked_code(arch: int, tmp_path: Path) -> None:
    """The driver links PTX that is left where the linked code is for other GPUs."""
    build = Build(tmp_path, [code(other(arch)), code(75, ptx=True)])
    build.link([code(other(arch))])
    linked = build.path("d.o")
    assert main(["--linked", linked, "--in-place", build.path("a.o"), build.path("b.o")]) == 0
    assert build.start() == WANTED


@pytest.mark.parametrize("mode", ["default", "size", "speed", "none"])
def test_code_in_another_mode_runs(mode: str, arch: int, tmp_path: Path) -> None:
    build = Build(tmp_path, [code(arch), code(other(arch))])
    for name in ("a.o", "b.o"):
        words = ["--arch", f"sm_{arch}", "--compress-mode", mode, "--in-place"]
        assert main([*words, build.path(name)]) == 0
    build.link([code(arch)])
    assert main(["--compress-mode", mode, "--in-place", build.path("d.o")]) == 0
    assert build.start() == WANTED


def test_a_finished_program_runs_without_the_copies(arch: int, tmp_path: Path) -> None:
    build = Build(tmp_path, [code(arch), code(arch, ptx=True)])
    build.link([code(arch)])
    assert build.start() == WANTED
    words = ["--drop", "linked-copies", "--experimental", "--in-place", build.path("program")]
    assert main(words) == 0
    assert build.run("./program") == WANTED


PLAIN = """
#include <cstdio>
template <int N> __global__ void fill(int *p) { p[threadIdx.x] = N * threadIdx.x; }
__global__ void more(int *p) { p[threadIdx.x] += 3; }
int main() {
    int *p, back[32];
    if (cudaMalloc(&p, sizeof back)) return 1;
    fill<3><<<1, 32>>>(p);
    more<<<1, 32>>>(p);
    if (cudaMemcpy(back, p, sizeof back, cudaMemcpyDeviceToHost)) return 2;
    for (int value : back) printf("%d ", value);
}
"""
TARGETS = (75, 80, 86, 89, 90, 100, 103, 110, 120, 121)


class PlainBuild(Build):
    """A program of one unit, which nobody links for the device."""

    def __init__(self, folder: Path, codes: Sequence[str]) -> None:
        self.folder, self.codes = folder, codes
        self.nvcc = oracle.toolchain().tool("nvcc")
        (folder / "p.cu").write_text(PLAIN)
        self.run(self.nvcc, *codes, "-c", "p.cu", "-o", "p.o")

    def start(self) -> str:
        self.run(self.nvcc, "p.o", "-o", "program")
        return self.run("./program")

    def prune(self, *words: str) -> None:
        before = measured(self.path("p.o"))
        assert main([*words, "--in-place", self.path("p.o")]) == 0
        assert measured(self.path("p.o")) < before


def measured(path: str) -> int:
    return sum(leaf.installed for leaf in measure([path]).leaves if leaf.container >= 0)


def test_a_program_runs_without_the_code_for_other_targets(arch: int, tmp_path: Path) -> None:
    build = PlainBuild(tmp_path, [code(arch), code(other(arch)), code(75, ptx=True)])
    build.prune("--arch", f"sm_{arch}")
    assert build.start() == WANTED


def test_a_program_runs_without_ptx_that_no_gpu_reaches(arch: int, tmp_path: Path) -> None:
    """That for this GPU goes, which has a cubin; that for the next one stays."""
    following = next((target for target in TARGETS if target > arch), None)
    if arch not in TARGETS or following is None:
        pytest.skip(f"needs a GPU of one of {TARGETS[:-1]}")
    codes = [code(arch), code(arch, ptx=True), code(following, ptx=True)]
    build = PlainBuild(tmp_path, codes)
    build.prune("--drop", "unreached-ptx")
    assert build.start() == WANTED


def test_a_gpu_runs_the_cubin_that_its_own_was_a_twin_of(arch: int, tmp_path: Path) -> None:
    lower = [target for target in TARGETS if target // 10 == arch // 10 and target < arch]
    if not lower or arch == 110:
        pytest.skip("needs a GPU of a higher minor: sm_86, sm_89, sm_103 or sm_121")
    words = f"-gencode=arch=compute_{lower[0]},code=[sm_{lower[-1]},sm_{arch}]"
    build = PlainBuild(tmp_path, [words])
    if not any(line.rule == "twins" for line in reductions(measure([build.path("p.o")]))):
        pytest.skip(f"the compiler makes other code for sm_{arch} than for sm_{lower[-1]}")
    build.prune("--drop", "twins")
    assert build.start() == WANTED


@pytest.mark.parametrize("rule", ["stored-cubins", "lz4-cubins"])
def test_a_program_runs_with_cubins_in_zstandard(rule: str, arch: int, tmp_path: Path) -> None:
    mode = {"stored-cubins": "none", "lz4-cubins": "speed"}[rule]
    words = [code(arch), "-Xfatbin", "-compress-all", f"-compress-mode={mode}"]
    build = PlainBuild(tmp_path, words)
    build.prune("--drop", rule)
    assert build.start() == WANTED
