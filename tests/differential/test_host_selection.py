"""Kernels that no host code names, in links that keep all code or drop debug data."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.side_by_side import output_differences

SOURCES = {
    "user": """
__constant__ int first[5] = {1, 2, 3, 4, 5};
__shared__ int common[20];
extern __device__ int reads(int *p);
__device__ __noinline__ int shares(int *p)
{
    common[p[0]] = 3;
    __syncthreads();
    return common[p[1]] + first[p[2]];
}
__global__ void named(int *p, int n) { p[n] = shares(p); }
__global__ void unnamed(int *p, int n) { p[n] = reads(p) + shares(p); }
template <int N> __global__ void instance(int *p, int n) { p[n] = N + reads(p); }
template __global__ void instance<3>(int *, int);
static __global__ void own(int *p, int n) { p[n] = 2 + first[n]; }
void launch(int *p) { named<<<1, 1>>>(p, 2); }
""",
    "other": """
__constant__ int second[5] = {1, 2, 3, 4, 5};
__device__ __noinline__ int reads(int *p) { return p[3] + second[p[0]]; }
__device__ int (*table)(int *) = reads;
__global__ void alone(int *p, int n) { p[n] = reads(p); }
template <int N> __global__ void instance(int *p, int n) { p[n] = N + reads(p); }
template __global__ void instance<3>(int *, int);
""",
}
WORDS = [
    (),
    ("--preserve-relocs",),
    ("-g", "--suppress-debug-info"),
    ("--preserve-relocs", "-g", "--suppress-debug-info"),
    ("--preserve-relocs", "-ignore-host-info"),
    ("-g",),
    ("-r",),
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize("names", [("user", "other"), ("other", "user")], ids="-".join)
@pytest.mark.parametrize("arch", ["80", "100"])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
@oracle.needs_oracle
def test_what_host_code_names_counts(
    tmp_path: Path, release: str, arch: str, names: tuple[str, ...], words: tuple[str, ...]
) -> None:
    with oracle.release(release):
        for name in names:
            (tmp_path / f"{name}.o").write_bytes(oracle.compile_host(SOURCES[name], arch))
        command = [f"-arch=sm_{arch}", *words, *(f"{name}.o" for name in names)]
        assert output_differences(tmp_path, command) == []
