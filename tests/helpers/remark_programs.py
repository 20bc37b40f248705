"""A program whose link makes remarks of most passes, and functions to examine remarks."""

from __future__ import annotations

from typing import Any

from helpers import oracle
from helpers.remarked import remarks_of

import pylink
from pylink.inspect.image import Image
from pylink.remarks import Remark

SCALE = """
template <int N> __device__ __noinline__ float scale(float x) {
    float s = x;
    for (int i = 0; i < N; ++i) s = s * x + i;
    return s;
}
template __device__ float scale<3>(float);
"""
MAIN = (
    SCALE
    + """
extern __device__ float other(float);
__device__ __noinline__ float unused(float x) { return x * 3.5f; }
__shared__ float common1[32];
__shared__ float common2[16];
extern __device__ int rec(int n);
__device__ __noinline__ int deep(int n) {
    volatile int a[64];
    a[n] = n;
    return a[n - 1];
}
__global__ void k1(float* p) {
    __shared__ float own[20];
    own[threadIdx.x] = p[1];
    common1[threadIdx.x] = own[3];
    __syncthreads();
    p[threadIdx.x] = scale<3>(other(p[0])) + common1[1] + deep(3);
}
__global__ void k2(float* p) {
    common2[threadIdx.x] = p[1];
    __syncthreads();
    p[threadIdx.x] = scale<3>(p[0]) + common2[1] + rec(int(p[2]));
}
"""
)
OTHER = (
    SCALE
    + """
__device__ __noinline__ float other(float x) { return scale<3>(x) + 1; }
__device__ __noinline__ int rec(int n) { return n < 2 ? n : rec(n - 1) + rec(n - 2); }
extern __shared__ float dyn[];
__global__ void k3(float* p) {
    dyn[threadIdx.x] = p[0];
    __syncthreads();
    p[1] = dyn[2];
}
"""
)
SOURCES = {"main": MAIN, "other": OTHER, "scale": SCALE, "again": SCALE}


def cubins(arch: str, *flags: str) -> dict[str, bytes]:
    """Return the cubins of the program. Two are identical, by the same source and name."""
    names = {"main": "main.cu", "other": "other.cu", "scale": "scale.cu", "again": "scale.cu"}
    return {
        f"{name}.cubin": oracle.compile(source, arch, flags, name=names[name])
        for name, source in SOURCES.items()
    }


class Program:
    """The remarks of a link and the linked file."""

    def __init__(self, cubins: dict[str, bytes], arch: str, **options: Any) -> None:
        self.cubins = cubins
        self.remarks = remarks_of(cubins, arch, options=options)
        self.image = Image(pylink.link(list(cubins.items()), arch=f"sm_{arch}", **options).image)

    def with_names(self, *names: str) -> list[Remark]:
        """Return the remarks with these names."""
        return [remark for remark in self.remarks if remark.name in names]


def args(remark: Remark) -> dict[str, str]:
    """Return the arguments of a remark, without text."""
    return {key: value for key, value, *_ in remark.args if key != "String"}


def size_of(image: Image, name: str) -> int:
    """Return the size of a section in bytes."""
    section = image.section(name)
    assert section is not None, name
    return section.size
