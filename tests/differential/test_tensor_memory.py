"""Code that allocates tensor memory (tcgen05.alloc) links as with nvlink.

It brings a variable in .nv.shared.reserved.0, beside that of sm_110, and attributes that kernels
take over from functions.
"""

from __future__ import annotations

import io
import struct

import pytest
from elftools.elf.elffile import ELFFile
from helpers import oracle
from helpers.side_by_side import differences

pytestmark = oracle.needs_oracle

HEAD = """
#define ALLOC(G, place) asm volatile( \\
    "tcgen05.alloc.cta_group::" #G ".sync.aligned.shared::cta.b32 [%0], 32;" \\
    :: "r"((unsigned)__cvta_generic_to_shared(place)) : "memory")
"""
SOURCES = {
    "function": """
__device__ __noinline__ int f(int n) { __shared__ unsigned a; ALLOC(1, &a); return n + a; }
extern "C" __global__ void calls(int *p) { *p = f(*p); }
""",
    "permit": """
__device__ __noinline__ void g() {
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}
extern "C" __global__ void gives_up(int *p) { *p = 1; g(); }
""",
    "pair": """
extern "C" __global__ void pair(int *p) { __shared__ unsigned a; ALLOC(2, &a); *p = a; }
""",
    "none": 'extern "C" __global__ void none(int *p) { *p = 3; }',
    "shared": """
extern "C" __global__ void own(int *p) {
    __shared__ int a[40]; a[threadIdx.x] = *p; __syncthreads(); *p = a[3];
}
""",
}
ORDERS = (
    ("function",),
    ("permit",),  # a function whose only relocation names the variable
    ("pair", "function"),
    ("none", "function"),
    ("function", "none"),
    ("shared", "none", "pair", "function"),
)


def compiled(name: str, arch: str, flags: tuple[str, ...]) -> bytes:
    """A cubin; these instructions need PTX for the arch itself."""
    text = oracle.compile_ptx(HEAD + SOURCES[name], arch, flags, name=f"{name}.cu")
    return oracle.assemble(text, arch, flags)


@pytest.mark.parametrize("flags", [(), ("-G",)], ids=["plain", "debug"])
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("arch", ["100a", "103a", "110a"])
def test_files_in_every_order(arch: str, order: tuple[str, ...], flags: tuple[str, ...]) -> None:
    cubins = [compiled(name, arch, flags) for name in order]
    for options in ([], ["-r"], ["-g"]):
        assert differences(cubins, arch, options) == []
    stage = oracle.link(cubins, arch, ["-r"]).image
    assert stage is not None
    assert differences([stage], arch, []) == []


@pytest.mark.parametrize("alignment", [1, 8, 16, 32, 64])
def test_the_greatest_alignment_comes_first(alignment: int) -> None:
    cubins = [compiled(name, "110a", ()) for name in ("none", "function")]
    edited = bytearray(cubins[1])
    for section in ELFFile(io.BytesIO(cubins[1])).iter_sections():
        if section.name not in (".symtab", ".nv.merc.symtab"):
            continue
        for number in range(section["sh_size"] // 24):
            at = section["sh_offset"] + 24 * number
            value, size = struct.unpack_from("<QQ", edited, at + 8)
            if (value, size) == (1, 0x20):
                struct.pack_into("<Q", edited, at + 8, alignment)
    assert (bytes(edited) != cubins[1]) == (alignment != 1)
    for options in ([], ["-r"]):
        assert differences([cubins[0], bytes(edited)], "110a", options) == []
