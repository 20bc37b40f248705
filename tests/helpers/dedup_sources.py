"""A source whose template instances fold if several modules contain them."""

from __future__ import annotations

TEMPLATES = """
template<typename T> __device__ __noinline__ T square(T x) { return x * x + T(3); }
template<typename T> __global__ void apply(T *p, int n) {
    int i = threadIdx.x;
    if (i < n) p[i] = square(p[i]) + square(p[i + 1]);
}
template __global__ void apply<int>(int *, int);
template __global__ void apply<float>(float *, int);
"""
