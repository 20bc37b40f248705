"""Symbols that no input of a link defines: variables with `-r`, labels of debug data."""

from __future__ import annotations

import pytest
from helpers import oracle
from helpers.side_by_side import differences

import pylink
from pylink.inspect.image import Image

pytestmark = [oracle.needs_oracle, pytest.mark.parametrize("arch", ["75", "90a", "100", "120"])]

GLOBALS = """
extern __device__ int x;
extern __device__ int list[];
extern __managed__ int m;
__device__ int *place = &x;
__global__ void k(int *p) { *p = x + list[3] + m + (place != 0); }
"""
CONSTANTS = """
extern __constant__ int c;
__constant__ int own = 3;
__global__ void k(int *p) { *p = c + own; }
"""
DEFINITIONS = """
__constant__ int first[3] = {1, 2, 3};
__constant__ int c = 5;
__global__ void other(int *p) { *p = first[*p]; }
"""

# Debug data of this program refers to labels of code that ptxas does not keep.
LABELS = """
#include <cooperative_groups.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
template <int N> struct Vector {
    float v[N];
    __device__ float dot(const Vector &o) const
    {
        float s = 0;
        for (int i = 0; i < N; i++)
            s += v[i] * o.v[i];
        return s;
    }
};
static __device__ float reduce(cg::thread_group g, float x)
{
    for (int i = g.size() / 2; i > 0; i /= 2) {
        x += i;
        g.sync();
    }
    return x;
}
__global__ void NAME(float *p, int n)
{
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    Vector<4> a, c;
    for (int i = 0; i < 4; i++) {
        a.v[i] = p[i];
        c.v[i] = p[i + 4];
    }
    float d = reduce(block, a.dot(c));
    d += tile.shfl_down(d, 1);
    half h = __float2half(d);
    p[0] = __half2float(__hadd(h, h)) + sinf(d) + powf(d, 2.5f);
}
"""


@pytest.mark.parametrize("options", [["-r"], ["-r", "-g"]], ids=str)
def test_variables_of_a_later_stage_have_no_value(arch: str, options: list[str]) -> None:
    cubin = oracle.compile(GLOBALS, arch)
    assert differences([cubin], arch, options) == []
    assert differences([cubin, oracle.compile(DEFINITIONS, arch)], arch, options) == []


def test_constants_of_a_later_stage_are_found_there(arch: str) -> None:
    """nvlink resolves references to them with -1 at once: its program reads something else."""
    user, definitions = (oracle.compile(text, arch) for text in (CONSTANTS, DEFINITIONS))
    first = bytes(pylink.link([user], arch=f"sm_{arch}", relocatable_link=True).image)
    at_once = pylink.link([user, definitions], arch=f"sm_{arch}")
    later = pylink.link([first, definitions], arch=f"sm_{arch}")
    assert code(bytes(later.image)) == code(bytes(at_once.image))
    assert code(bytes(at_once.image)) == code(oracle.link([user, definitions], arch).image or b"")


def code(image: bytes) -> dict[str, list[bytes]]:
    """By section of code: its instructions without their scoreboards."""
    cubin = Image(image)
    found = {}
    for section in cubin.sections:
        if section.name.startswith(".text."):
            data = cubin.content(section)
            words = (data[at : at + 16] for at in range(0, len(data), 16))
            found[section.name] = [word[:13] + bytes([word[13] & 0x3F]) for word in words]
    return found


@pytest.mark.parametrize(
    "options", [[], ["-r"], ["-g"], ["-preserve-relocs"], ["--kernels-used=k"]], ids=str
)
@pytest.mark.parametrize("other", [["-G"], ["-lineinfo"], []], ids=str)
def test_labels_of_debug_data_are_nobodys(arch: str, options: list[str], other: list[str]) -> None:
    cubins = [
        oracle.compile(LABELS.replace("NAME", name), arch, flags, name=f"{name}.cu")
        for name, flags in (("k", ["-G"]), ("other", other))
    ]
    assert any(label_count(cubin) for cubin in cubins), "no label is undefined"
    assert differences(cubins[:1], arch, options) == []
    assert differences(cubins, arch, options) == []
    assert differences(cubins[::-1], arch, options) == []


def label_count(cubin: bytes) -> int:
    return sum(name.startswith("$L__tmp") for name in Image(cubin).symbols)


IMAGES = """
.version 9.0
.target sm_ARCH
.address_size 64
.global .texref tex;
.visible .entry k(.param .u64 p)
{
    .reg .b64 %p;
    .reg .f32 %f<5>;
    ld.param.u64 %p, [p];
    mov.f32 %f0, 0f3f800000;
    tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [tex, {%f0}];
    st.f32 [%p], %f1;
    ret;
}
"""


def test_references_to_images_are_refused_for_what_they_are(arch: str) -> None:
    """nvlink links them: docs/nvlink-differences.md."""
    cubin = oracle.assemble(IMAGES.replace("ARCH", arch), arch)
    assert oracle.link([cubin], arch).image is not None
    with pytest.raises(pylink.LinkError, match="surface reference 'tex' in"):
        pylink.link([cubin], arch=f"sm_{arch}")
