"""Programs of several files with copies of one header's functions, kernels and constants.

Files differ in the macro PLAIN, which removes all jump tables from the copies of a file.
"""

from __future__ import annotations

from random import Random

from helpers.programs_switch import switch

CONSTANTS = """\
inline __device__ __noinline__ int twice(int *p, int x) { return p[x] * 2; }
inline __device__ __noinline__ int thrice(int *p, int x) { return p[x] * 3; }
inline __constant__ int (*calls[2])(int *, int) = {twice, thrice};
inline __constant__ int factors[4] = {4, 3, 2, 1};
template <int N> __device__ __noinline__ int turns(int *p, int x)
{ return x < N ? p[x] : turns<N>(p + 1, x - 1) + turns<N>(p, x - 2); }
inline __device__ int (*roads[2])(int *, int) = {turns<3>, twice};
"""


def generate(*plain: bool) -> list[str]:
    """Return the CUDA sources of a program: `plain` says for each whether it defines PLAIN."""
    rng = Random("copies")
    tables = [f"#ifndef PLAIN\n{switch(rng, cases)}#endif\n" for cases in (7, 9, 5)]
    header = CONSTANTS + (
        f"template <int N> __device__ __noinline__ int wf(int *p, int x) {{\n{tables[0]}"
        "return x + N; }\n"
        f"template <int N> __global__ void wk(int *p, int x) {{\n{tables[1]}p[9] = x; }}\n"
        "template __global__ void wk<2>(int *, int);\n"
    )
    sources = []
    for number, without in enumerate(plain):
        source = f"__constant__ int own{number}[3] = {{5, 6, 7}};\n"
        source += f'extern "C" __global__ void k{number}(int *p, int x) {{\n'
        source += tables[2] if number == 1 else ""
        source += f"p[3] = wf<3>(p, x) + own{number}[x & 1] + factors[x & 3];\n"
        source += "p[4] = calls[x & 1](p, x) + roads[x & 1](p, x); }\n"
        sources.append(("#define PLAIN\n" if without else "") + header + source)
    return sources
