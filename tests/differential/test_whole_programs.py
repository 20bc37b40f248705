"""Whole programs that may call the device runtime (`nvcc -ewp`), linked as nvlink links them.

Their functions lie inside of the kernels that call them, and their shared variables have no
symbols. docs/format-notes/whole-programs.md has the rules.
"""

from __future__ import annotations

import io
import struct
import tempfile
from pathlib import Path

import pytest
from differential import check
from helpers import oracle
from helpers.compare import compare
from helpers.keywords import keywords
from helpers.words import without_notes

import pylink
from pylink.inspect.image import Image

pytestmark = oracle.needs_oracle

ARCHS = ("80", "90a", "100", "121")
RELEASES = ["13.0", *(name for name in oracle.others() if name not in oracle.BY_LIBRARY)]

PROGRAMS = {
    # Calls of a runtime function and a stack frame, both in functions.
    "frames": r"""
#include <cstdio>
__device__ __noinline__ void say(int x) { printf("%d\n", x); }
__device__ __noinline__ int stack(int x) { volatile int a[20]; a[x & 15] = x; return a[3]; }
__global__ void k(int *p) { say(p[0]); p[1] = stack(p[2]); }
""",
    # Tables of functions, in constants and in globals; one function in two kernels.
    "pointers": r"""
typedef int (*fn)(int);
__device__ __noinline__ int f(int x) { return x + 1; }
__device__ __noinline__ int g(int x) { return x * 2; }
__device__ fn table[2] = {f, g};
__constant__ fn constants[2] = {g, f};
__global__ void k(int *p) { p[0] = table[p[1] & 1](p[2]) + constants[p[1] & 1](p[3]); }
__global__ void k2(int *p) { p[0] = f(p[1]); }
""",
    "virtual": r"""
struct B { __device__ virtual int v(int) = 0; __device__ virtual ~B() {} };
struct D : B { int q; __device__ D(int q) : q(q) {} __device__ int v(int x) { return x + q; } };
__global__ void k(int *p) { B *b = new D(p[0]); p[1] = b->v(p[2]); delete b; }
""",
    "recursion": r"""
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__global__ void k(int *p) { p[0] = fib(p[1]); }
__global__ void k2(int *p) { p[0] = fib(p[1]) + 2; }
""",
    "switch": r"""
__device__ __noinline__ int pick(int x, int y)
{
    switch (x) {
    case 0: return y * 3;
    case 1: return y / 7;
    case 2: return y ^ 5;
    case 3: return y << 2;
    case 4: return y % 13;
    case 5: return y - 9;
    case 6: return y * y;
    default: return ~y;
    }
}
__global__ void k(int *p, double *d) { p[0] = pick(p[1], p[2]); d[0] = d[1] * 3.1415926535; }
""",
    # Variables of a kernel, of a function and of the file, and an extern array.
    "shared": r"""
__shared__ int file[7];
__device__ __noinline__ int uses(int x)
{
    __shared__ int own[5];
    own[x % 5] = x;
    __syncthreads();
    file[x % 7] = 2;
    return own[(x + 1) % 5] + file[0];
}
__global__ void k(int *p) { p[0] = uses(p[1]); }
__global__ void k2(int *p)
{
    __shared__ double own[3];
    extern __shared__ float4 array[];
    own[p[0]] = p[1];
    array[p[2]].x = own[p[3]];
    p[0] = uses(array[p[3]].y);
}
__global__ void k3(int *p) { p[0] = 3; }
""",
    "variables": r"""
__managed__ int managed[3];
__device__ int zeros[10];
static __device__ int four = 4;
__constant__ float constants[5];
extern __device__ int other;
static __global__ void local(int *p) { p[0] = four + managed[1]; }
template <int N> __global__ void sums(int *p) { p[0] = zeros[N] + constants[N]; }
template __global__ void sums<1>(int *);
template __global__ void sums<2>(int *);
__global__ void k(int *p) { p[0] = other; }
void host() { local<<<1, 1>>>(0); }
""",
    "data": "__device__ int only[4] = {1, 2};",
    # Functions that the compiler brings itself.
    "arithmetic": r"""
__global__ void k(double *d, float *f)
{
    d[0] = sin(d[1]) + d[2] / d[4];
    f[0] = sqrtf(f[1]) / f[2];
    d[5] = sqrt(d[6]);
    __threadfence();
}
__global__ void k2(long long *p) { p[0] = p[1] / p[2]; p[3] = p[4] % p[5]; }
""",
}
LINES = ("-lineinfo",)
UNSCHEDULED = ("-Xptxas=-O0",)
OTHER = r"__global__ void other%s(int *p) { p[0] = 3; }"
# Programs that no option changes.
LAUNCHES = r"""
__global__ void child(int *p) { p[0] = 1; }
__global__ void parent(int *p) { child<<<1, 32>>>(p); }
"""


def links(names: list[str], files: dict[str, bytes], arch: str, options: list[str]) -> None:
    """Link with both; messages and bytes have to be equal."""
    with tempfile.TemporaryDirectory(prefix="pylink-whole-") as folder:
        for name in names:
            (Path(folder) / name).write_bytes(files[name])
        argv = [f"-arch=sm_{arch}", *options, *names, "-o", "out.cubin"]
        theirs = oracle.run_nvlink(argv, Path(folder), "out.cubin")
    log = io.StringIO()
    image = None
    asked = {"nvlink_version": oracle.current(), **keywords(options)}
    try:
        image = pylink.link(
            [(name, files[name]) for name in names],
            arch=f"sm_{arch}",
            log=log,
            **asked,
        ).image
    except pylink.LinkError:
        assert theirs.code
    assert without_notes(log.getvalue()) == check.as_pylink(theirs.stderr)
    assert (image is None) == (theirs.image is None)
    if image is not None and theirs.image is not None:
        assert compare(image, theirs.image) == []


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program(name: str, arch: str, release: str) -> None:
    with oracle.release(release):
        for flags in ((), LINES, UNSCHEDULED):
            files = {"m.cubin": oracle.compile_whole(PROGRAMS[name], arch, flags)}
            links(["m.cubin"], files, arch, [])
            if not flags:
                links(["m.cubin"], files, arch, ["-preserve-relocs"])
            if arch in ("80", "90a") and not flags:
                links(["m.cubin"], files, arch, ["-r"])
            if name in ("variables", "data") or (name != "shared" and arch in ("80", "90a")):
                links(["m.cubin"], files, arch, ["-g"])


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("arch", ARCHS)
def test_several_files(arch: str, release: str) -> None:
    """Each has names of its own, and code that is not relocatable otherwise is warned of."""
    with oracle.release(release):
        files = {
            "a.cubin": oracle.compile_whole(PROGRAMS["shared"], arch),
            "b.cubin": oracle.compile_whole(OTHER % "b", arch),
            "c.cubin": oracle.compile(OTHER % "c", arch),
            "d.cubin": oracle.compile(OTHER % "d", arch),
        }
        for names in ("ab", "ba", "ac", "cad", "abcd"):
            for options in ([], ["-w"], ["-Werror"], ["-disable-infos"]):
                links([f"{name}.cubin" for name in names], files, arch, options)


@pytest.mark.parametrize("arch", ["80", "90a", "100", "121"])
def test_the_device_runtime_is_no_other_program(arch: str) -> None:
    library = oracle.device_runtime() / "libcudadevrt.a"
    files = {
        "m.cubin": oracle.compile_whole(LAUNCHES, arch),
        "libcudadevrt.a": library.read_bytes(),
        "o.cubin": oracle.compile(OTHER % "", arch),
    }
    links(["m.cubin", "libcudadevrt.a"], files, arch, [])
    links(["m.cubin", "libcudadevrt.a", "o.cubin"], files, arch, [])


@pytest.mark.parametrize("release", RELEASES[1:])
def test_older_inputs_are_refused_with_and_behind_whole_programs(release: str) -> None:
    files = {
        "old.cubin": oracle.compile_whole(OTHER % "_old", "80"),
        "part.cubin": oracle.compile(OTHER % "_part", "80"),
    }
    with oracle.release(release):
        files["new.cubin"] = oracle.compile_whole(OTHER % "_new", "80")
        for names in (("old",), ("old", "new"), ("new", "old"), ("new", "part"), ("part", "new")):
            links([f"{name}.cubin" for name in names], files, "80", [])


@pytest.mark.parametrize("arch", ["80", "90a"])
def test_shared_memory_stays_in_debug_links(arch: str) -> None:
    """nvlink loses it there, and the kernel would have none."""
    cubin = oracle.compile_whole(PROGRAMS["shared"], arch)
    plain, debug = (
        {
            section.name: section.size
            for section in Image(pylink.link([cubin], arch=f"sm_{arch}", debug=flag).image).sections
        }
        for flag in (False, True)
    )
    names = {name for name in plain if name.startswith(".nv.shared._Z")}
    assert len(names) == 3
    assert {name: debug[name] for name in names} == {name: plain[name] for name in names}


@pytest.mark.parametrize("arch", ["100", "121"])
def test_links_that_would_move_functions_inside_of_kernels_are_refused(arch: str) -> None:
    """With -g every EXIT gets a barrier in front of it."""
    cubin = oracle.compile_whole(PROGRAMS["recursion"], arch)
    with pytest.raises(pylink.LinkError, match=r"m.cubin: .text._Z.*-ewp calls this function"):
        pylink.link([("m.cubin", cubin)], arch=f"sm_{arch}", debug=True)


@pytest.mark.parametrize("arch", ["100", "121"])
def test_frames_of_relocatable_outputs_keep_their_places(arch: str) -> None:
    """nvlink moves relocations of CIEs to offset 0 there; a second stage needs the right ones."""
    cubin = oracle.compile_whole(PROGRAMS["frames"], arch)
    whole = pylink.link([cubin], arch=f"sm_{arch}").image
    part = pylink.link([cubin], arch=f"sm_{arch}", relocatable_link=True).image
    staged = pylink.link([part], arch=f"sm_{arch}").image
    offsets = [frame_offsets(image) for image in (whole, staged)]
    assert offsets[0] == offsets[1]
    assert 0 not in offsets[0]


def frame_offsets(image: bytes) -> list[int]:
    """Where the relocations of .debug_frame are."""
    section = next(
        candidate for candidate in Image(image).sections if candidate.name == ".rela.debug_frame"
    )
    rows = struct.iter_unpack("<QQq", image[section.offset : section.offset + section.size])
    return sorted(offset for offset, _, _ in rows)
