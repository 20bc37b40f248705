"""Rows about first and second stages, executed.

For each row a program whose result is known: nvlink's link is shown to be wrong, pylink's right, on
the architectures that the row names.
"""

from __future__ import annotations

import struct

import pytest
from differential.test_local_names import cubins as local_names
from helpers import oracle

import pylink
from emulator.errors import Fault
from emulator.grid import Grid
from emulator.load import Loaded
from emulator.program import Program
from emulator.rows import ALL, LANES, compiled, executes, ours, result, theirs

pytestmark = oracle.needs_oracle


@executes("`-r` with a reference to a constant")
@pytest.mark.parametrize("arch", ["80", "90a", "100"])
def test_constant_that_a_first_stage_does_not_define(arch: str) -> None:
    """nvlink reads another place."""
    user = """
        extern __constant__ int value[2];
        __constant__ int own = 3;
        extern "C" __global__ void k(int *p) { p[threadIdx.x] = value[1] * 10 + own; }
    """
    definition = """
        __constant__ int before[3] = {1, 2, 3};
        __constant__ int value[2] = {20, 21};
        extern "C" __global__ void other(int *p) { *p = before[*p]; }
    """
    files = compiled([user, definition], arch)
    found = [
        result(link([link(files[:1], arch, ["-r"]), files[1]], arch), arch)
        for link in (theirs, ours)
    ]
    assert found[0] != [213] * LANES
    assert found[1] == [213] * LANES


@executes("several local functions of one name")
@ALL
def test_local_functions_of_one_name_in_a_second_stage(arch: str) -> None:
    """Both kernels of nvlink's link for sm_100 use the variable of the first function."""
    files = local_names(arch)
    right = {}
    for link in (theirs, ours):
        image = link([link(files, arch, ["-r"])], arch)
        loaded = Loaded(image, arch)
        data = loaded.memory.place(bytes(128))
        named = []
        for mark in (1, 2):
            kernel = f"k{mark}"
            grid = Grid(
                Program(loaded), kernel, block=(1, 1, 1), parameters=struct.pack("<Q", data)
            )
            try:
                grid.run()
            except Fault as error:
                named.append(str(error))
                continue
            pointer = int.from_bytes(loaded.memory.read(data, 8), "little")
            named.append(str(pointer == loaded.variables[f"own{mark}"][0]))
        right[link.__name__] = named
    assert right["ours"] == ["True", "True"]
    assert (right["theirs"] == ["True", "True"]) == (arch != "100")


SHARED = """
extern __shared__ unsigned dynamic[];
extern "C" __global__ void k(unsigned *p) {
    __shared__ unsigned own[32];
    unsigned i = threadIdx.x;
    own[i] = i * 3;
    dynamic[i] = p[i];
    __syncthreads();
    p[i] = own[31 - i] * 100 + dynamic[i ^ 1];
}
"""


@executes("a shared variable of a kernel that also uses")
@ALL
def test_shared_variable_beside_extern_arrays_in_a_second_stage(arch: str) -> None:
    """Up to 13.3 a second stage gives such a variable no place of its own, here as in nvlink.

    Both links are wrong in the same way. With --nvlink-version=13.4, as in nvlink 13.4, it has one.
    """
    [cubin] = compiled([SHARED], arch)
    expected = [(31 - i) * 300 + (i ^ 1) for i in range(LANES)]
    for link in (theirs, ours):
        assert result(link([cubin], arch), arch, shared=128) == expected
        stage = link([cubin], arch, ["-r"])
        assert result(link([stage], arch), arch, shared=128) != expected
    stage = pylink.link(
        [("m0.cubin", cubin)], arch=f"sm_{arch}", relocatable_link=True, nvlink_version="13.4"
    ).image
    image = pylink.link([("r.cubin", stage)], arch=f"sm_{arch}", nvlink_version="13.4").image
    assert result(image, arch, shared=128) == expected


@executes("a link without `-g` of an object")
@pytest.mark.parametrize("arch", ["100", "103", "120"])
def test_first_stage_with_and_second_without_debug_data(arch: str) -> None:
    """Barriers that -g puts before EXIT: nvlink takes them out again, pylink leaves them."""
    source = """
        extern "C" __global__ void k(unsigned *p) {
            unsigned i = threadIdx.x;
            if (p[i] == 7) return;
            p[i] = p[i] * 3 + (p[31] > 3 ? 1 : 2);
        }
    """
    [cubin] = compiled([source], arch)
    expected = [i if i == 7 else i * 3 + 1 for i in range(LANES)]
    images = [link([link([cubin], arch, ["-r", "-g"])], arch) for link in (theirs, ours)]
    for image in images:
        assert result(image, arch) == expected


TABLE = """
typedef unsigned u;
typedef u (*F)(u);
inline __device__ __noinline__ u weak(u x) { return x * 7u + (x >> 2); }
MORE
"""


@executes("a weak function that only tables name")
@ALL
def test_weak_function_of_a_lost_copy_in_a_second_stage(arch: str) -> None:
    """Both links have a null pointer in the table."""
    texts = [
        "__device__ u unused(u x) { return weak(x) + 1; }",
        "__device__ F functions[2] = {weak, weak};",
        """extern __device__ F functions[2];
        extern "C" __global__ void k(u *p) {
            p[threadIdx.x] = functions[threadIdx.x & 1](p[threadIdx.x]);
        }""",
    ]
    files = compiled([TABLE.replace("MORE", text) for text in texts], arch)
    assert result(ours(files, arch), arch) == [x * 7 + (x >> 2) for x in range(LANES)]
    for link in (theirs, ours):
        stage = link(files, arch, ["-r"])
        assert result(link([stage], arch), arch) == "jump to 0x0, where there is no code"


@executes("`-r` with a reference to a constant")
@ALL
def test_shared_variable_that_a_first_stage_does_not_define(arch: str) -> None:
    """nvlink reads and writes another place."""
    user = """
        extern __shared__ int other[40];
        __device__ __noinline__ int reads(int i) { return other[i & 31]; }
        extern "C" __global__ void k(int *p) {
            other[threadIdx.x] = p[threadIdx.x] * 5;
            __syncthreads();
            p[threadIdx.x] = reads(threadIdx.x ^ 3);
        }
    """
    definition = """
        __shared__ int before[24];
        __shared__ int other[40];
        extern "C" __global__ void k2(int *p) { before[*p] = 3; other[*p] = before[*p + 1]; }
    """
    files = compiled([user, definition], arch)
    expected = [(i ^ 3) * 5 for i in range(LANES)]
    found = [
        result(link([link(files[:1], arch, ["-r"]), files[1]], arch), arch)
        for link in (theirs, ours)
    ]
    assert found[1] == expected
    assert found[0] != expected
