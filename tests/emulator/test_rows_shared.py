"""Rows about shared memory, executed."""

from __future__ import annotations

import pytest
from helpers import oracle

from emulator.rows import ALL, LANES, compiled, executes, ours, result, theirs

pytestmark = oracle.needs_oracle
LATER = pytest.mark.skipif(not oracle.others(), reason="needs nvlink 13.1 or later")

ALIGNMENT = 64
WIDE = """
struct __align__(ALIGNMENT) Block { int a[16]; };
extern __shared__ Block far[];
__device__ __noinline__ int wide(int i) {
    volatile int *bytes = (volatile int *)far;
    bytes[i] = i * 3;
    __syncthreads();
    return (int)__cvta_generic_to_shared(far) * 4096 + bytes[i];
}
""".replace("ALIGNMENT", str(ALIGNMENT))
NARROW = """
extern __shared__ int near[];
extern __device__ int wide(int);
extern "C" __global__ void k(int *p) {
    __shared__ int own[5];
    int i = threadIdx.x;
    own[i % 5] = i % 5;
    __syncthreads();
    p[i] = wide(i) + own[(i + 1) % 5] + near[i];
}
"""


@executes("kernels of 13.1 and later that reach")
@LATER
@ALL
def test_extern_arrays_of_several_alignments(arch: str) -> None:
    """nvlink aligns them as the one of the first file asks for."""
    with oracle.release(oracle.others()[-1]):
        files = compiled([WIDE, NARROW], arch)
        aligned = []
        for link in (theirs, ours):
            for order in (files, files[::-1]):
                values = result(link(order, arch), arch, shared=256)
                assert not isinstance(values, str)
                assert [x % 4096 for x in values] == [6 * i + (i + 1) % 5 for i in range(LANES)]
                aligned.append(values[0] // 4096 % ALIGNMENT == 0)
    assert aligned == [True, False, True, True]


@executes("`-g` with a whole program")
@ALL
def test_whole_program_with_debug_information(arch: str) -> None:
    """Kernels of nvlink's link have no shared memory."""
    source = """
        extern "C" __global__ void k(int *p) {
            __shared__ int mine[32];
            mine[threadIdx.x] = p[threadIdx.x] + 7;
            __syncthreads();
            p[threadIdx.x] = mine[31 - threadIdx.x] * 3;
        }
    """
    file = oracle.compile_whole(source, arch)
    expected = [(31 - i + 7) * 3 for i in range(LANES)]
    for link in (theirs, ours):
        assert result(link([file], arch), arch) == expected
    assert result(ours([file], arch, ["-g"]), arch) == expected
    assert result(theirs([file], arch, ["-g"]), arch) != expected


@executes("`--preserve-relocs` with an extern array")
@pytest.mark.parametrize("arch", ["80", "100", "120"])
def test_preserved_relocations_beside_an_array_of_a_function_that_went(arch: str) -> None:
    """nvlink ends with an internal error."""
    kernel = """
        extern "C" __global__ void NAME(int *p) {
            one[threadIdx.x] = p[threadIdx.x] * 5;
            __syncthreads();
            p[threadIdx.x] = one[threadIdx.x ^ 3];
        }
    """
    source = """
        __shared__ int one[40];
        __device__ __noinline__ int unused(int i) {
            extern __shared__ int array[];
            return array[i] + one[i];
        }
    """ + "".join(kernel.replace("NAME", name) for name in ("k", "k2"))
    files = compiled([source], arch)
    refused = oracle.link(files, arch, ["-preserve-relocs"])
    assert "Internal error: reference to deleted symbol" in refused.stderr
    expected = [(i ^ 3) * 5 for i in range(LANES)]
    assert result(ours(files, arch, ["-preserve-relocs"]), arch) == expected


@executes("that omits a kernel of a whole program")
@ALL
def test_selected_kernel_of_a_whole_program(arch: str) -> None:
    """nvlink ends by a signal."""
    source = """
        __device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        __device__ __noinline__ int gone(int n) { return n < 2 ? n : gone(n - 1) + gone(n / 2); }
        extern "C" __global__ void k(int *p) { p[threadIdx.x] = gone(p[threadIdx.x] & 7); }
        extern "C" __global__ void k2(int *p) { p[threadIdx.x] = fib(p[threadIdx.x] & 7) + 2; }
    """
    files = [oracle.compile_whole(source, arch)]
    numbers = (0, 1, 1, 2, 3, 5, 8, 13)
    assert oracle.link(files, arch, ["--kernels-used=k2"]).code < 0
    image = ours(files, arch, ["--kernels-used=k2"])
    assert result(image, arch, "k2") == [numbers[i & 7] + 2 for i in range(LANES)]
