"""Options that only some releases have, or that nvlink's help does not show."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.side_by_side import OURS, THEIRS, nvlink, pylink

pytestmark = oracle.needs_oracle

ARRAYS = """
extern __shared__ int e[];
__device__ __noinline__ int f(int x) { e[x] = x; __syncthreads(); return e[x ^ 1]; }
extern "C" __global__ void k(int *p) { p[0] = f(p[1]); }
extern "C" __global__ void own(int *p)
{
    __shared__ int t[9];
    e[p[0]] = 2; t[p[1]] = p[2];
    __syncthreads();
    p[1] = t[p[3]] + e[p[4]];
}
"""
VARIABLES = """
__device__ __noinline__ int f(int x)
{
    __shared__ int s[4], big[99];
    s[x & 3] = x; big[x] = 1;
    __syncthreads();
    return s[3 - (x & 3)] + big[x + 1];
}
extern "C" __global__ void k(int *p)
{
    __shared__ int t[8];
    t[p[1]] = p[0];
    __syncthreads();
    p[0] = f(p[0]) + t[p[2]];
}
extern "C" __global__ void k2(int *p) { p[0] = f(p[0]); }
"""
COMMON = """
extern __shared__ int e[];
__shared__ int common[25];
extern "C" __global__ void k(int *p)
{
    common[p[0]] = p[1]; e[p[2]] = p[3];
    __syncthreads();
    p[0] = common[p[4]] + e[p[5]];
}
extern "C" __global__ void l(int *p) { common[p[0]] = p[1]; __syncthreads(); p[0] = common[p[2]]; }
"""
PATCH = """
extern "C" __device__ int other(int);
__device__ int v[4];
extern "C" __device__ __noinline__ int patch(int x) { return other(x) * 3 + v[x]; }
"""
OTHER = 'extern "C" __device__ __noinline__ int other(int x) { return x * 3; }'
TWO = 'extern "C" __device__ int aa(int x) { return x; } __global__ void k(int *p) { *p = 1; }'


def check(folder: Path, words: list[str], release: str) -> None:
    """Both link to the same, or refuse with the same words."""
    ours = pylink(folder, ["--merc-dedup=off", f"--nvlink-version={release}", *words])
    theirs = nvlink(folder, words)
    assert ours == theirs
    assert (folder / OURS).is_file() is (folder / THEIRS).is_file() is (theirs.code == 0)
    if theirs.code == 0:
        assert compare((folder / OURS).read_bytes(), (folder / THEIRS).read_bytes()) == []


@pytest.mark.parametrize(
    "options", [[], ["-r"], ["--preserve-relocs"], ["-g"], ["-v"], ["-r", "-g"]], ids=" ".join
)
@pytest.mark.parametrize("source", [ARRAYS, VARIABLES], ids=["arrays", "variables"])
@pytest.mark.parametrize("arch", ["80", "90", "100", "120"])
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()[-1:]])
def test_shared_memory_without_a_reserve(
    tmp_path: Path, release: str, arch: str, source: str, options: list[str]
) -> None:
    with oracle.release(release):
        (tmp_path / "a.cubin").write_bytes(oracle.compile(source, arch))
        words = [f"-arch=sm_{arch}", "-disable-smem-reservation", "true", *options, "a.cubin"]
        check(tmp_path, words, release)


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("arch", ["80", "90", "100"])
@pytest.mark.parametrize("debug", ["-G", "-lineinfo"])
@pytest.mark.parametrize("options", [[], ["-g"], ["-g", "-suppress-debug-info"]], ids=" ".join)
def test_extern_arrays_beside_common_variables(
    tmp_path: Path, options: list[str], debug: str, arch: str, value: str
) -> None:
    """Debug data of -G refers to the array, which nvlink deletes unless something keeps it."""
    (tmp_path / "a.cubin").write_bytes(oracle.compile(COMMON, arch, (debug,)))
    reserve = f"--disable-smem-reservation={value}"
    words = [f"-arch=sm_{arch}", reserve, "-preserve-relocs", *options, "a.cubin"]
    check(tmp_path, words, oracle.DEFAULT)


@pytest.mark.parametrize("value", ["true", "false"])
@pytest.mark.parametrize("arch", ["80", "90", "100"])
@pytest.mark.parametrize("words", [12288, 12289, 12544, 12545])
def test_the_most_shared_memory_without_a_reserve(
    tmp_path: Path, words: int, arch: str, value: str
) -> None:
    source = f"""
    extern "C" __global__ void k(int *p)
    {{
        __shared__ int s[{words}];
        s[p[0]] = p[1];
        __syncthreads();
        p[0] = s[p[2]];
    }}
    """
    (tmp_path / "a.cubin").write_bytes(oracle.compile(source, arch))
    option = f"--disable-smem-reservation={value}"
    check(tmp_path, [f"-arch=sm_{arch}", option, "a.cubin"], oracle.DEFAULT)


def patch(source: str, arch: str) -> bytes:
    ptx = oracle.compile_ptx(source, oracle.PTX_ARCH[arch])
    return oracle.assemble(ptx, arch, ["-astoolspatch"])


# The releases that link patches.
PATCHING = [name for name in oracle.others() if float(name) >= 13.3]


@pytest.mark.parametrize(
    "options", [[], ["-r"], ["--preserve-relocs"], ["-g"], ["-kernels-used=x"]], ids=" ".join
)
@pytest.mark.parametrize("arch", ["80", "90", "100", "120"])
@pytest.mark.parametrize("release", PATCHING)
def test_patches_of_tools(tmp_path: Path, release: str, arch: str, options: list[str]) -> None:
    with oracle.release(release):
        (tmp_path / "a.cubin").write_bytes(patch(PATCH, arch))
        (tmp_path / "b.cubin").write_bytes(patch(OTHER, arch))
        words = [f"-arch=sm_{arch}", "-astoolspatch", *options, "a.cubin", "b.cubin"]
        check(tmp_path, words, release)


@pytest.mark.parametrize("files", ["two", "a two", "a other", "other a", "a", "variable"])
@pytest.mark.parametrize("release", PATCHING)
def test_code_that_is_no_patch(tmp_path: Path, release: str, files: str) -> None:
    with oracle.release(release):
        (tmp_path / "a").write_bytes(patch(PATCH, "90"))
        for name, text in (("two", TWO), ("other", OTHER), ("variable", "__device__ int v[3];")):
            (tmp_path / name).write_bytes(oracle.compile(text, "90"))
        for name in ("a", "two", "other", "variable"):
            (tmp_path / name).rename(tmp_path / f"{name}.cubin")
        names = [f"{name}.cubin" for name in files.split()]
        check(tmp_path, ["-arch=sm_90", "--link-as-tools-patch", *names], release)


WORDS = """
-disable-smem-reservation
--disable-smem-reservation=1
-force-partial-lto
-force-whole-lto
-force-whole-lto -force-partial-lto
-force-whole-lto -emit-ptx
-force-whole-lto -Ofc 0
-force-whole-lto -r
-force-whole-lto -suppress-debug-info
-lto -force-whole-lto -r
-lto -force-whole-lto -r -nvvmpath x
-lto -force-whole-lto -force-partial-lto -nvvmpath x -Ofc zz
--nvvm-latest
--nvvm-latest -emit-ptx
--nvvm-latest -force-partial-lto
--verbose2
-v2 -w
--link-as-tools-patch
"""


@pytest.mark.parametrize("line", WORDS.strip().splitlines())
@pytest.mark.parametrize("release", [oracle.DEFAULT, *oracle.others()])
def test_options_alone_and_together(tmp_path: Path, release: str, line: str) -> None:
    with oracle.release(release):
        source = "__global__ void k(int *p) { *p = 1; }"
        (tmp_path / "a.cubin").write_bytes(oracle.compile(source, "90"))
        check(tmp_path, ["-arch=sm_90", "a.cubin", *line.split()], release)
