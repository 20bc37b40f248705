"""Links of what -r made, by every release at hand: arrays, copies of functions, shared statics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from differential import check
from differential.cases import Case, Expected, record_link
from differential.variants import Link
from helpers import oracle

RELEASES = [oracle.DEFAULT, *oracle.others()]
ARCHS = ("80", "90a", "100")
OPTIONS = [(), ("-r",), ("-g",), ("-preserve-relocs",)]
# docs/nvlink-differences.md: arrays that stay in the symbol table.
UNEQUAL = [("90a", ("-preserve-relocs",))]
LINKS = [(arch, kind) for arch in ARCHS for kind in OPTIONS if (arch, kind) not in UNEQUAL]

pytestmark = [oracle.needs_oracle, pytest.mark.parametrize("release", RELEASES)]

# Kernels with an array, with own variables, with both, with neither, and with what a function has.
ARRAYS = """
extern __shared__ {align} int array[];
__device__ __noinline__ int part(int x)
{{
    __shared__ short own[4];
    own[x % 4] = x;
    __syncthreads();
    return own[(x + 1) % 4];
}}
__global__ void uses(int *p) {{ array[threadIdx.x] = p[1]; __syncthreads(); p[0] = array[3]; }}
__global__ void plain(int *p) {{ p[0] = 2; }}
__global__ void owns(int *p)
{{
    __shared__ int own[7];
    own[threadIdx.x] = p[2];
    __syncthreads();
    p[0] = own[p[1]];
}}
__global__ void both(int *p)
{{
    __shared__ int own[25];
    own[threadIdx.x] = p[2];
    array[threadIdx.x] = p[1];
    __syncthreads();
    p[0] = array[3] + own[p[1]];
}}
"""
CALLER = "__global__ void {name}(int *p) {{ p[0] = part(p[1]); }}\n"

VIRTUAL = """
struct Base {{
    int tag;
    __device__ virtual int value(int x) {{ return x + tag; }}
    __device__ virtual int other(int x) {{ return x * tag; }}
}};
struct Derived{n} : Base {{ __device__ int value(int x) override {{ return x * {n}; }} }};
__global__ void kernel{n}(int *p)
{{
    Base base;
    Derived{n} derived;
    base.tag = p[3];
    derived.tag = p[4];
    Base *one = p[0] ? &base : (p[1] ? (&base + p[5]) : &derived);
    p[2] = one->value(p[2]) + one->other(1);
}}
"""

COPIED = """
template<int N> __global__ void copied(int *p)
{{
    __shared__ int own[N];
    own[threadIdx.x] = p[0];
    __syncthreads();
    p[1] = own[0];
}}
template __global__ void copied<17>(int *);
__global__ void kernel{n}(int *p) {{ p[0] = {n}; }}
"""


def linked(
    folder: Path, cubins: dict[str, bytes], arch: str, options: Sequence[str], *, both: int
) -> list[str]:
    """Differences of a link of all files, after the first `both` went through -r."""
    for name, data in cubins.items():
        (folder / name).write_bytes(data)
    names = tuple(cubins)
    first = Link(names[:both], ("-r",), arch)
    link = Link(("first.cubin", *names[both:]), tuple(options), arch, (("first.cubin", first),))
    record = record_link(folder, "second", link)
    assert record is not None
    image, code = record["image"], record["code"]
    expected = Expected("second", link, code, image, record["stdout"], record["stderr"])
    return check.check_api(Case(folder, arch, (expected,)), expected)


@pytest.mark.parametrize(("arch", "options"), LINKS)
@pytest.mark.parametrize(("align", "callers"), [("", 0), ("", 1), ("", 2), ("__align__(64)", 2)])
def test_sections_without_variables(
    release: str, arch: str, options: Sequence[str], align: str, callers: int, tmp_path: Path
) -> None:
    text = ARRAYS.format(align=align)
    text += "".join(CALLER.format(name=f"calls{number}") for number in range(callers))
    with oracle.release(release):
        cubins = {"m.cubin": oracle.compile(text, arch)}
        assert linked(tmp_path, cubins, arch, options, both=1) == []


# From sm_100 on debug data of such copies differs (docs/nvlink-differences.md).
@pytest.mark.parametrize("arch", ["80", "90a"])
@pytest.mark.parametrize("options", [(), ("-r",), ("-g",)])
def test_a_copy_that_takes_the_place_of_another(
    release: str, arch: str, options: Sequence[str], tmp_path: Path
) -> None:
    """The copies of the last file stay: it was compiled for the newer virtual architecture.

    Without optimization constructors are functions, with virtual functions as candidates of calls.
    """
    with oracle.release(release):
        cubins = {}
        for number, virtual in enumerate(("75", "75", oracle.PTX_ARCH[arch])):
            ptx = oracle.compile_ptx(VIRTUAL.format(n=number), virtual, ("-G",))
            cubins[f"m{number}.cubin"] = oracle.assemble(ptx, arch, ("-G",))
        assert linked(tmp_path, cubins, arch, options, both=2) == []


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("both", [2, 3])
def test_debug_data_names_the_shared_variable_of_a_copy(
    release: str, arch: str, both: int, tmp_path: Path
) -> None:
    with oracle.release(release):
        cubins = {
            f"m{n}.cubin": oracle.compile(COPIED.format(n=n), arch, ("-G",), name=f"m{n}.cu")
            for n in range(3)
        }
        assert linked(tmp_path, cubins, arch, ["-r"], both=both) == []


# An object of nvlink's -r says -1 for the place of a shared variable with a size that it lacks.
UNDEFINED = """
.extern .shared .align 4 .b8 sized[64];
.extern .shared .align 16 .b8 array[];
.visible .entry uses(.param .u64 p)
{
    .reg .b32 %x; .reg .b64 %a; ld.param.u64 %a, [p];
    ld.shared.u32 %x, [sized+4]; st.global.u32 [%a], %x; ret;
}
.visible .entry both(.param .u64 p)
{
    .reg .b32 %x; .reg .b64 %a; ld.param.u64 %a, [p];
    ld.shared.u32 %x, [sized+8]; st.shared.u32 [array+4], %x; st.global.u32 [%a], %x; ret;
}
"""
DEFINING = ".visible .shared .align 4 .b8 sized[64];\n"


@pytest.mark.parametrize(("arch", "options"), LINKS)
@pytest.mark.parametrize("defined", [False, True])
def test_a_shared_variable_that_the_first_stage_lacked(
    release: str, arch: str, options: Sequence[str], tmp_path: Path, *, defined: bool
) -> None:
    head = f".version 9.0\n.target sm_{arch}\n.address_size 64\n"
    with oracle.release(release):
        cubins = {"m0.cubin": oracle.assemble(head + UNDEFINED, arch)}
        if defined:
            cubins["m1.cubin"] = oracle.assemble(head + DEFINING, arch)
        assert linked(tmp_path, cubins, arch, options, both=1) == []
