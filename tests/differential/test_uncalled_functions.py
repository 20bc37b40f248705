"""--extra-warnings: functions whose address is taken and that nothing calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.side_by_side import nvlink, pylink

SOURCES = {
    "taken": """
__device__ __noinline__ int last(int x) { return x * 3; }
__device__ __noinline__ int first(int x, int y) { return x * y; }
__device__ int (*one)(int) = last;
__device__ int (*two)(int, int) = first;
__global__ void idle(int *p) { p[0] = p[1]; }
__device__ __noinline__ int deep(int n) { return n < 2 ? n : deep(n - 1) + deep(n - 2) * 3; }
__global__ void recurses(int *p) { p[0] = deep(p[1]); }
""",
    "pointer": """
__device__ __noinline__ int reached(int x) { return x * 3; }
__device__ __noinline__ int other(int x, int y) { return x * y; }
__device__ int (*one)(int) = reached;
__device__ int (*two)(int, int) = other;
__global__ void calls(int *p) { p[0] = one(p[1]); }
""",
    "named": """
__device__ __noinline__ int called(int x) { return x * 3; }
static __device__ __noinline__ int own(int x, char y) { return x * y; }
__device__ int (*one)(int) = called;
__device__ int (*two)(int, char) = own;
__global__ void calls(int *p) { p[0] = called(p[1]); }
""",
    "dead": """
__device__ __noinline__ int inner(int x, int y) { return x * 3 + y; }
__device__ __noinline__ int outer(int x) { return x < 2 ? outer(x + 1) : inner(x, x) * 3; }
__device__ int (*one)(int) = outer;
__device__ int (*two)(int, int) = inner;
__device__ __noinline__ int caller(int x) { return outer(x) + one(x); }
__global__ void idle(int *p) { p[0] = p[1]; }
""",
    "copies": """
template <int N> __device__ __noinline__ int copy(int x) { return x * N; }
__device__ int (*NAME[2])(int) = {copy<1>, copy<2>};
extern __device__ int absent(int);
__device__ int (*NAME2)(int) = absent;
""",
}
LINKS = [
    ("taken",),
    ("pointer",),
    ("named",),
    ("dead",),
    ("taken", "copies", "copies"),
    ("copies", "copies", "taken"),
]
WORDS = [
    (),
    ("-v",),
    ("-w",),
    ("-Werror",),
    ("-disable-infos",),
    ("-r",),
    ("-g",),
    ("--preserve-relocs",),
    ("--kernels-used=none",),
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
@pytest.mark.parametrize("files", LINKS, ids="-".join)
@pytest.mark.parametrize("arch", ["80", "100"])
@oracle.needs_oracle
def test_they_are_named_as_nvlink_names_them(
    tmp_path: Path, arch: str, files: tuple[str, ...], words: tuple[str, ...]
) -> None:
    names = []
    for number, file in enumerate(files):
        names.append(f"{number}.cubin")
        source = SOURCES[file].replace("NAME", f"table{number}")
        (tmp_path / names[-1]).write_bytes(oracle.compile(source, arch))
    command = [f"-arch=sm_{arch}", "--extra-warnings", *words, *names]
    assert nvlink(tmp_path, command) == pylink(tmp_path, command)


@pytest.mark.parametrize("release", oracle.others())
@oracle.needs_oracle
def test_by_each_release(tmp_path: Path, release: str) -> None:
    with oracle.release(release):
        (tmp_path / "m.cubin").write_bytes(oracle.compile(SOURCES["taken"], "90"))
        command = ["-arch=sm_90", "--extra-warnings", "m.cubin"]
        theirs = nvlink(tmp_path, command)
    assert theirs == pylink(tmp_path, [*command, f"--nvlink-version={release}"])
    assert sum("has address taken but no calls" in line for line in theirs.lines) == 2
