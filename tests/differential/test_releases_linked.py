"""Programs of each release of CUDA, linked as by nvlink of that release.

`make test` has 13.0 and 13.5 at hand; `make test-releases` installs all and runs this file. The
whole matrix: `python -m differential.run --releases all --archs all --variants all`.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from differential import cases, check
from helpers import oracle, programs, words
from helpers.compare import compare

from pylink.facts import releases

# Seed, arch and kind of link: from a lone kernel to several files with debug data and weak copies,
# on the three families.
ARCHS = ("80", "90a", "100")
LINKS = [
    *(
        (seed, arch, kind)
        for seed in (0, 3, 5, 8)
        for arch in ARCHS
        for kind in ("exec", "r", "relink")
    ),
    *((12, arch, kind) for arch in ARCHS for kind in ("exec", "relink2", "relink-g")),
    *((3, "110", kind) for kind in ("exec", "r", "relink", "g")),
    (310, "103", "exec"),  # lines that go to an address behind their last row
    *((402, arch, kind) for arch in ARCHS for kind in ("kernels-used", "r-g", "r-preserve")),
    *((408, "110", kind) for kind in ("exec", "r", "relink2")),  # what the finalizer starts from
]
RELEASES = oracle.others()

COMMON_SIZES = (("one", 12), ("two", 20), ("three", 8))
COMMON = """.version 9.0
.target sm_75
.address_size 64
{variables}
.visible .entry {name}(.param .u64 p) {{
    .reg .b64 %a;
    .reg .b32 %v;
    ld.param.u64 %a, [p];
{reads}    ret;
}}
"""
READ = "    ld.global.u32 %v, [{name}];\n    st.global.u32 [%a], %v;\n"
# Linkage, alignment, name, bytes and value of the variables of each file.
COMMON_FILES = {
    "common": ((".common", 4, "one", 12, ""),),
    "other": ((".common", 4, "one", 12, ""),),
    "three": tuple((".common", 4, name, size, "") for name, size in COMMON_SIZES),
    "aligned": ((".common", 32, "one", 12, ""), (".common", 4, "two", 20, "")),
    "strong": ((".visible", 4, "one", 12, ""),),
    "larger": ((".visible", 4, "one", 16, ""),),
    "valued": ((".visible", 4, "one", 12, " = {1, 2, 3}"),),
    "all": tuple((".visible", 16, name, size, "") for name, size in COMMON_SIZES),
    "apart": ((".visible", 4, "apart", 24, ""), (".common", 8, "four", 20, "")),
}
COMMON_ORDERS = [
    ("common", "strong"),
    ("strong", "common"),
    ("common", "other"),
    ("common", "other", "strong"),
    ("common", "larger"),
    ("larger", "common"),
    ("common", "valued"),
    ("aligned", "strong"),
    ("three", "apart", "strong"),
    ("three", "all"),
    ("apart", "three", "all"),
]


def common_file(kernel: str, variables: Sequence[tuple[str, int, str, int, str]]) -> str:
    """PTX of a kernel that reads global variables, and of these."""
    return COMMON.format(
        name=f"kernel_{kernel}",
        variables="\n".join(
            f"{linkage} .global .align {align} .b8 {name}[{size}]{value};"
            for linkage, align, name, size, value in variables
        ),
        reads="".join(READ.format(name=name) for _, _, name, _, _ in variables),
    )


ARRAYS = """
extern __shared__ int plain[];
extern __shared__ __align__(64) char aligned[];
__shared__ int fixed[3];
__global__ void one(int *p) { plain[threadIdx.x] = 1; p[0] = plain[3]; }
__global__ void two(int *p)
{
    fixed[threadIdx.x] = p[2];
    __syncthreads();
    p[0] = plain[3] + aligned[3] + fixed[1];
}
"""
SHARED = """
__shared__ int one[9];
__shared__ int two[5];
__global__ void k1(int *p)
{
    one[threadIdx.x] = p[1];
    two[threadIdx.x] = 2;
    __syncthreads();
    p[0] = one[3] + two[2];
}
__global__ void k2(int *p) { two[threadIdx.x] = 2; __syncthreads(); p[0] = two[2]; }
"""
# Arrays of two alignments, in kernels and in what these call.
DEEP_ARRAYS = """
extern __shared__ __align__(128) char far[];
extern __shared__ int near[];
__device__ __noinline__ int reads(int i)
{
    __shared__ int own[5];
    own[i % 5] = i;
    __syncthreads();
    return far[i] + own[(i + 2) % 5];
}
__global__ void calls(int *p) { p[0] = reads(p[1]); }
__global__ void both(int *p)
{
    __shared__ char own[33];
    own[p[1]] = p[2];
    __syncthreads();
    p[0] = reads(p[1]) + own[p[3]] + far[3];
}
__global__ void lone(int *p) { p[0] = near[p[1]]; }
__global__ void none(int *p) { p[0] = 3; }
"""
LONE_ARRAY = """
extern __shared__ float4 array[];
__global__ void lone(char *p, int n)
{
    char *bytes = (char *)array;
    bytes[n] = p[0];
    __syncthreads();
    p[1] = bytes[3];
}
"""
# Debug data of functions that no link keeps, and of a copy that loses.
KEPT = """
template <int N> __device__ __noinline__ int copied(int x) { return x * N + 3; }
__global__ void kernel(int *p) { p[0] = copied<4>(p[1]); }
"""
LOST = """
template <int N> __device__ __noinline__ int copied(int x) { return x * N + 3; }
template __device__ int copied<4>(int);
"""
DEAD = "__device__ int dead(int x) { return x * 7; }\n"
BARE = "__device__ int variable = 3;\n"

# In the symbol table of 13.0 the weak function stands ahead of the local one.
MIXED = """
template <class T> __device__ __noinline__ T copied(T x) { return x * 3; }
static __device__ __noinline__ int own(int x) { return x + 5; }
static __device__ __noinline__ int other(int x) { return x ^ 9; }
__device__ int (*pointers[2])(int) = {own, copied<int>};
__global__ void first(int *p) { p[0] = copied(p[1]) + own(p[2]); }
template <class T> __global__ void second(T *p)
{
    p[0] = own(p[1]) + other(p[2]) + pointers[p[4]](p[3]);
}
template __global__ void second<int>(int *);
"""


@functools.cache
def program(seed: int) -> programs.Program:
    return programs.generate(seed)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("seed", "arch", "kind"), LINKS)
def test_a_link_is_that_of_the_release(
    release: str, seed: int, arch: str, kind: str, tmp_path: Path
) -> None:
    with oracle.release(release):
        case = cases.prepare(program(seed), arch, [kind], tmp_path)
        (expected,) = case.links
        assert check.check_api(case, expected) == []


def compared(
    files: dict[str, bytes],
    inputs: list[str],
    options: list[str],
    folder: Path,
    arch: str = "80",
    following: Sequence[str] = (),
) -> None:
    """Both linkers refuse a link, or make the same of it."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    argv = [f"-arch=sm_{arch}", *options, *inputs]
    theirs = oracle.run_nvlink([*argv, "-o", "nvlink.out"], folder, "nvlink.out")
    command = [sys.executable, "-m", "pylink", *argv, *following, "-o", "pylink.out"]
    ours = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ours.returncode == theirs.code
    if theirs.image is not None and not theirs.code:
        assert compare((folder / "pylink.out").read_bytes(), theirs.image) == []


@pytest.mark.parametrize("release", [oracle.DEFAULT, *RELEASES])
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("options", [[], ["-r"]])
@pytest.mark.parametrize("order", COMMON_ORDERS, ids="-".join)
def test_common_symbols_beside_definitions(
    release: str, arch: str, options: list[str], order: tuple[str, ...], tmp_path: Path
) -> None:
    with oracle.release(release):
        files = {
            f"{name}.o": oracle.assemble(common_file(name, COMMON_FILES[name]), arch)
            for name in order
        }
        compared(files, list(files), options, tmp_path, arch)


@pytest.mark.parametrize("release", [oracle.DEFAULT, *RELEASES])
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("options", [[], ["-r"], ["-g"], ["-r", "-g"], ["-r", "-preserve-relocs"]])
@pytest.mark.parametrize("source", [ARRAYS, DEEP_ARRAYS, LONE_ARRAY], ids=["one", "deep", "lone"])
def test_shared_arrays_that_say_their_alignment(
    release: str, arch: str, options: list[str], source: str, tmp_path: Path
) -> None:
    with oracle.release(release):
        compared({"m.o": oracle.compile(source, arch)}, ["m.o"], options, tmp_path, arch)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("options", [[], ["-r"]])
@pytest.mark.parametrize("flag", ["-lineinfo", "-G"])
@pytest.mark.parametrize("names", [("kept", "lost"), ("kept", "dead"), ("kept", "bare")])
def test_units_of_lines_without_functions(
    release: str, options: list[str], flag: str, names: Sequence[str], tmp_path: Path
) -> None:
    sources = {"kept": KEPT, "lost": LOST, "dead": DEAD, "bare": BARE}
    with oracle.release(release):
        files = {
            f"{name}.o": oracle.compile(sources[name], "100", (flag,), name=f"{name}.cu")
            for name in names
        }
        compared(files, list(files), options, tmp_path, "100")


@pytest.mark.parametrize("release", [oracle.DEFAULT, *RELEASES])
@pytest.mark.parametrize("arch", ["90", "100", "120"])
@pytest.mark.parametrize("source", [DEAD, BARE], ids=["dead", "bare"])
def test_links_without_code(release: str, arch: str, source: str, tmp_path: Path) -> None:
    with oracle.release(release):
        compared({"m.o": oracle.compile(source, arch)}, ["m.o"], [], tmp_path, arch)


@pytest.mark.parametrize("release", [oracle.DEFAULT, *RELEASES])
@pytest.mark.parametrize("arch", ["90a", "100a", "100f"])
@pytest.mark.parametrize("target", ["80", "90", "90a", "100", "100a", "100f", "103", "120f"])
def test_what_takes_code_of_accelerated_targets(
    release: str, arch: str, target: str, tmp_path: Path
) -> None:
    with oracle.release(release):
        (tmp_path / "m.cubin").write_bytes(oracle.compile("__global__ void k() {}\n", arch))
        argv = [f"-arch=sm_{target}", "m.cubin", "-o", "out.cubin"]
        theirs = oracle.run_nvlink(argv, tmp_path)
    command = [sys.executable, "-m", "pylink", *argv]
    ours = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = words.without_notes(ours.stderr).replace(" (m.cubin)", "")
    assert (ours.returncode, said) == (theirs.code, check.as_pylink(theirs.stderr))


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("option", ["-g", "-preserve-relocs"])
def test_symbols_of_shared_variables_of_one_kernel_and_of_two(
    release: str, arch: str, option: str, tmp_path: Path
) -> None:
    with oracle.release(release):
        compared({"m.o": oracle.compile(SHARED, arch)}, ["m.o"], [option], tmp_path, arch)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("arch", ARCHS)
def test_the_order_of_functions_of_older_objects(release: str, arch: str, tmp_path: Path) -> None:
    older = oracle.compile(MIXED, arch)
    with oracle.release(release):
        following = [f"--nvlink-version={release}"]
        compared({"m.o": older}, ["m.o"], [], tmp_path, arch, following)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("arch", ["80", "90a", "100"])
def test_objects_of_a_newer_release_are_refused_as_nvlink_refuses_them(
    release: str, arch: str, tmp_path: Path
) -> None:
    with oracle.release(release):
        (tmp_path / "m.cubin").write_bytes(oracle.compile("__global__ void k() {}\n", arch))
    # Patch levels of one release take each other's objects.
    made = releases.BY_NAME[release].toolkit
    older = [row.name for row in releases.RELEASES if row.toolkit < made][-1]
    argv = [f"-arch=sm_{arch}", "m.cubin", "-o", "out.cubin"]
    if oracle.find_release(older) is None:
        older = oracle.DEFAULT
    with oracle.release(older):
        theirs = oracle.run_nvlink(argv, tmp_path)
    ours = subprocess.run(
        [sys.executable, "-m", "pylink", f"--nvlink-version={older}", *argv],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ours.returncode == theirs.code == 1
    assert ours.stderr.splitlines()[0] == check.as_pylink(theirs.stderr).strip()
