"""Builds of several files and archives that nvcc drives, with pylink in the linker's place."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.toolkit import Toolkit, run

pytestmark = oracle.needs_oracle

HEADER = """\
#pragma once
template <class T> __device__ __noinline__ T twice(T x) { return x * T(2) + T(1); }
struct Shape { int kind; float size; };
__device__ float area(const Shape &shape);
__device__ int log_call(int what);
extern __device__ int calls;
extern __constant__ float scales[4];
"""

FILES = {
    "shapes.cu": """\
#include "shapes.cuh"
__constant__ float scales[4] = { 1, 2, 3, 4 };
static __device__ float square(const Shape &s) { return s.size * s.size; }
static __device__ __noinline__ float circle(const Shape &s) { return 3.14f * s.size * s.size; }
typedef float (*Area)(const Shape &);
static __device__ Area areas[] = { square, circle };
__device__ float area(const Shape &shape) { return areas[shape.kind](shape) * scales[shape.kind]; }
""",
    "log.cu": """\
#include <cstdio>
#include "shapes.cuh"
__device__ int calls;
__device__ int log_call(int what)
{
    __shared__ int seen;
    if (threadIdx.x == 0)
        seen = atomicAdd(&calls, 1);
    __syncthreads();
    if (what > 100)
        printf("%d: %d\\n", seen, what);
    return twice(seen);
}
""",
    "unused.cu": """\
__global__ void nobody_launches_this(int *p) { *p = 1; }
__device__ int nobody_calls_this(int x) { return x; }
""",
    "main.cu": """\
#include "shapes.cuh"
__global__ void measure(const Shape *shapes, float *out, int count)
{
    extern __shared__ float cache[];
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count)
        return;
    cache[threadIdx.x] = area(shapes[at]);
    __syncthreads();
    out[at] = twice(cache[threadIdx.x ^ 1]) + log_call(at);
}
__global__ void clear() { calls = 0; }
int main()
{
    clear<<<1, 1>>>();
    measure<<<1, 32, 128>>>(nullptr, nullptr, 0);
    return cudaDeviceSynchronize() != cudaSuccess;
}
""",
}

CODE = {
    "one": ["-arch=sm_90"],
    "several": [
        "-gencode=arch=compute_75,code=sm_75",
        "-gencode=arch=compute_86,code=sm_86",
        "-gencode=arch=compute_90a,code=sm_90a",
        "-gencode=arch=compute_100,code=[sm_100,compute_100]",
        "-gencode=arch=compute_120,code=sm_120",
    ],
    "debug": ["-arch=sm_100", "-G", "-g"],
    "lines": ["-arch=sm_120", "-lineinfo"],
    "small": ["-arch=sm_86", "--compress-mode=size"],
    "fast": ["-arch=sm_89", "--compress-mode=speed"],
    "bare": ["-arch=sm_100", "--compress-mode=none"],
}
LINKS = {"one": 1, "several": 5, "debug": 1, "lines": 1, "small": 1, "fast": 1, "bare": 1}


@pytest.fixture
def toolkit(tmp_path: Path) -> Toolkit:
    return Toolkit(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "shapes.cuh").write_text(HEADER)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("code", CODE)
def test_files_and_an_archive(toolkit: Toolkit, source: Path, code: str) -> None:
    """A static library of nvcc, and a program that links it and the device runtime."""
    nvcc = toolkit.root / "bin" / "nvcc"
    flags = ["-rdc=true", *CODE[code]]
    objects = []
    for name in FILES:
        objects.append(source / f"{name}.o")
        run(nvcc, *flags, "-c", source / name, "-o", objects[-1])
    library, program = source / "libshapes.a", source / "program"
    run(nvcc, "-lib", *objects[:3], "-o", library)
    run(nvcc, *flags, objects[3], f"-L{source}", "-lshapes", "-o", program)
    assert program.read_bytes().startswith(b"\x7fELF")
    assert toolkit.check() == LINKS[code]


def test_a_device_link_of_its_own(toolkit: Toolkit, source: Path) -> None:
    """-dlink makes an object for a host linker that nvcc does not drive."""
    nvcc = toolkit.root / "bin" / "nvcc"
    objects = [source / f"{name}.o" for name in FILES]
    for name, target in zip(FILES, objects, strict=True):
        run(nvcc, "-dc", "-arch=sm_100", source / name, "-o", target)
    run(nvcc, "-dlink", "-arch=sm_100", *objects, "-o", source / "device.o")
    libraries = [f"-L{toolkit.root}/lib64", "-lcudadevrt", "-lcudart_static", "-lpthread"]
    run("g++", *objects, source / "device.o", *libraries, "-ldl", "-lrt", "-o", source / "program")
    assert toolkit.check() == 1


def test_a_cubin_of_nvcc(toolkit: Toolkit, source: Path) -> None:
    """nvcc -cubin -dlink writes the linked device code itself."""
    nvcc = toolkit.root / "bin" / "nvcc"
    cubins = []
    for name in ("shapes.cu", "log.cu", "main.cu"):
        cubins.append(source / f"{name}.cubin")
        run(nvcc, "-rdc=true", "-cubin", "-arch=sm_100", source / name, "-o", cubins[-1])
    output = source / "linked.cubin"
    run(nvcc, "-dlink", "-cubin", "-arch=sm_100", *cubins, "-o", output)
    assert toolkit.check() == 1
    assert output.read_bytes() == (toolkit.outputs / "0.pylink.cubin").read_bytes()
