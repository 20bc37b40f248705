"""EXITs of kernels without a schedule that a barrier could use, and of functions; traps."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.side_by_side import output_differences

SOURCE = """
__global__ void plain(int *p) { *p = 1; }
__global__ void returns(int *p, int n)
{
    if (threadIdx.x > n) return;
    p[threadIdx.x] = n;
    __threadfence();
    if (n == 3) return;
    atomicAdd(p, n);
}
__global__ void shares(int *p, int n)
{
    __shared__ int s[32];
    s[threadIdx.x] = n;
    __syncthreads();
    for (int i = 0; i < n; i++) p[i] = s[i & 31];
}
__global__ void stores(cudaSurfaceObject_t s, int n)
{
    surf1Dwrite(n, s, 4);
    if (n > 3) asm volatile("exit;");
    surf1Dwrite(n, s, 8);
}
__global__ void last(int *p) { *p = 1; __nanosleep(100); }
"""


@pytest.mark.parametrize("words", [(), ("-g",), ("-r",), ("-r", "-g")], ids=" ".join)
@pytest.mark.parametrize("level", ["-O0", "-O1"])
@pytest.mark.parametrize("arch", ["100", "110", "120"])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
@oracle.needs_oracle
def test_their_barriers_are_nvlinks(
    tmp_path: Path, release: str, arch: str, level: str, words: tuple[str, ...]
) -> None:
    with oracle.release(release):
        cubin = oracle.compile(SOURCE, arch, [level])
        (tmp_path / "m.cubin").write_bytes(cubin)
        assert output_differences(tmp_path, (f"-arch=sm_{arch}", *words, "m.cubin")) == []


FUNCTIONS = """
__device__ __noinline__ void exits(int *p, int n)
{
    if (n == 3) asm volatile("exit;");
    p[n] = 2;
    __threadfence();
    if (n == 4) asm volatile("exit;");
}
__device__ __noinline__ void returns(int *p, int n) { p[n] = 2; __threadfence(); p[3] = 4; }
static __device__ __noinline__ int pointed(int *p) { if (p[2]) asm volatile("exit;"); return 3; }
__device__ int (*table)(int *) = pointed;
"""
CALLERS = """
extern __device__ void exits(int *p, int n);
extern __device__ void returns(int *p, int n);
extern __device__ int (*table)(int *);
__global__ void calls(int *p, int n) { exits(p, n); returns(p, n); p[3] = table(p); }
__global__ void alone(int *p, int n) { p[3] = 1; __threadfence(); p[4] = n; }
"""


@pytest.mark.parametrize("words", [(), ("-g",), ("-r",), ("-r", "-g")], ids=" ".join)
@pytest.mark.parametrize("flags", [("", ""), ("", "-G"), ("-G", ""), ("-lineinfo", "-lineinfo")])
@pytest.mark.parametrize("arch", ["100", "120"])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
@oracle.needs_oracle
def test_functions_that_exit(
    tmp_path: Path, release: str, arch: str, flags: tuple[str, str], words: tuple[str, ...]
) -> None:
    """Their barriers are those of a kernel that calls others, if any input asks for barriers."""
    with oracle.release(release):
        for name, source, flag in zip("fk", (FUNCTIONS, CALLERS), flags, strict=True):
            cubin = oracle.compile(source, arch, [flag] if flag else [])
            (tmp_path / f"{name}.cubin").write_bytes(cubin)
        command = [f"-arch=sm_{arch}", *words, "f.cubin", "k.cubin"]
        assert output_differences(tmp_path, command) == []


TRAPS = """
extern __shared__ int array[];
__global__ void only(int *p) { __trap(); }
template <int N> __global__ void instance(int *p, int n) { __trap(); array[0] = p[n]; }
template __global__ void instance<3>(int *, int);
__global__ void stores(int *p) { p[2] = 3; __trap(); }
__global__ void perhaps(int *p) { if (p[0]) __trap(); }
"""


@pytest.mark.parametrize("words", [(), ("-g",), ("-r",), ("--preserve-relocs",)], ids=" ".join)
@pytest.mark.parametrize("flag", ["-O3", "-O0", "-lineinfo"])
@pytest.mark.parametrize("arch", ["100", "120"])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others(), *oracle.by_library()])
@oracle.needs_oracle
def test_kernels_that_trap(
    tmp_path: Path, release: str, arch: str, flag: str, words: tuple[str, ...]
) -> None:
    """Nobody needs the stack pointer of one that does nothing else."""
    with oracle.release(release):
        cubin = oracle.compile(TRAPS, arch, [flag])
        (tmp_path / "m.cubin").write_bytes(cubin)
        try:
            found = output_differences(tmp_path, (f"-arch=sm_{arch}", *words, "m.cubin"))
        except oracle.NotLinkable:
            return  # nvJitLink 12.9 has no such option
    assert found == []
