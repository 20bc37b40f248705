"""Causes of failures that nvlink does not name, through the nvcc of an overlay and in a pipe.

What is printed without the lines of `pylink note` is what nvcc with nvlink prints, to the byte.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers import oracle
from helpers.side_by_side import nvlink, pylink

from pylink.command.overlay import make_overlay

pytestmark = oracle.needs_oracle

NOTE = "pylink note    : "


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The nvcc of an overlay over the toolkit of the oracle."""
    folder = tmp_path_factory.mktemp("overlay") / "cuda"
    make_overlay(str(folder), str(Path(oracle.toolchain().tool("nvcc")).parents[1]))
    return folder / "bin" / "nvcc"


@dataclass(frozen=True)
class Printed:
    """What a program printed to pipes, and its status."""

    code: int
    lines: list[str]
    notes: list[str]


def build(folder: Path, *options: str, arch: str = "sm_90", **sources: str) -> None:
    """Objects of CUDA sources, by name."""
    for name, text in sources.items():
        (folder / f"{name}.cu").write_text(text)
    words = [oracle.toolchain().tool("nvcc"), f"-arch={arch}", "-dc", *options]
    oracle.run([*words, *(f"{name}.cu" for name in sources)], folder)


def printed(folder: Path, words: Sequence[str]) -> Printed:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).splitlines()
    notes = [line.removeprefix(NOTE) for line in lines if line.startswith(NOTE)]
    return Printed(done.returncode, [line for line in lines if not line.startswith(NOTE)], notes)


def both(folder: Path, overlay: Path, *words: str, arch: str = "sm_90") -> Printed:
    """What the nvcc of the overlay prints, which but for notes is what the real one does."""
    given = [f"-arch={arch}", *words, "-o", "made"]
    theirs = printed(folder, [oracle.toolchain().tool("nvcc"), *given])
    ours = printed(folder, [str(overlay), *given])
    assert (ours.code, ours.lines) == (theirs.code, theirs.lines)
    assert theirs.notes == []
    return ours


HOSTED = """
__global__ void used(int *p) { *p = 1; }
__global__ void lost(int *p) { *p = 2; }
template<typename T> __global__ void made(T *p) { *p = 3; }
template __global__ void made<int>(int *);
int main() { used<<<1, 1>>>(nullptr); }
"""


USER = "__device__ int f(int); __global__ void k(int *p) { *p = f(*p); }"


def test_libraries_that_are_skipped_say_what_they_are(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, a="__global__ void k() {}")
    (tmp_path / "x.txt").write_text("text\n")
    arm = bytearray((tmp_path / "a.o").read_bytes())
    arm[18:20] = (183).to_bytes(2, "little")
    (tmp_path / "arm.o").write_bytes(arm)
    for name, members in (("arm", ["arm.o"]), ("text", ["x.txt", "a.o"]), ("rt", [])):
        oracle.run(["ar", "crD", f"lib{name}.a", *members], tmp_path)
    for library, note in (
        ("arm", "it contains objects for AArch64; the host of this link is x86-64 (-cpu-arch)"),
        ("text", "nvlink looks at no members from 'x.txt' on, which is not an object"),
        ("rt", "it is an archive without members"),
    ):
        said = both(tmp_path, overlay, "-dlink", "a.o", "-L.", f"-l{library}")
        assert said.code == 0
        assert said.lines == [
            f"nvlink warning : Skipping incompatible './lib{library}.a' when searching for "
            f"-l{library}"
        ]
        assert said.notes == [note]


def test_kernels_that_no_host_code_names(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, a=HOSTED)
    said = both(tmp_path, overlay, "-dlink", "-cubin", "a.o")
    assert (said.code, said.lines) == (0, [])
    assert said.notes[0] == (
        "Kernels removed because no host code names them: 2 (first: '_Z4madeIiEvPT_'); use "
        "--ignore-host-info to keep all kernels"
    )
    assert "a.o: .text._Z4lostPi+0x0: '_Z4lostPi' is defined here" in said.notes
    # What registers the output with the program launches kernels by their names.
    assert both(tmp_path, overlay, "-dlink", "a.o").notes == []
    kept = both(tmp_path, overlay, "-dlink", "-cubin", "a.o", "-Xnvlink", "--ignore-host-info")
    assert kept.notes == []


CALLER = 'extern "C" __device__ float f(int, float); __global__ void k(float *p) { *p = f(1, *p); }'
TAKER = 'extern "C" __device__ double f(double); __device__ double (*t)(double) = f;'
OTHER = 'extern "C" __device__ double f(double); __global__ void o(double *p) { *p = f(*p); }'
DEFINER = 'extern "C" __device__ __noinline__ int f(int x) { return x + 1; }'
TAKEN = DEFINER + "__device__ int (*p)(int) = f;"


def test_prototypes_that_differ_name_both_files(tmp_path: Path, overlay: Path) -> None:
    """nvlink names the file that defines the function twice."""
    build(tmp_path, caller=CALLER, definer=DEFINER)
    said = both(tmp_path, overlay, "-dlink", "caller.o", "definer.o")
    assert said.lines[0] == (
        "nvlink error   : Prototype doesn't match for 'f' in 'definer.o', first defined in "
        "'definer.o'"
    )
    assert said.notes[-2:] == [
        "its prototype is #ii in 'definer.o' and #iii in 'caller.o' (the result comes first)",
        "caller.o: 'f' is declared here",
    ]


def test_prototypes_of_functions_whose_address_is_taken(tmp_path: Path) -> None:
    """Such a row is compared with none, and later ones are compared with it."""
    names = {"caller": CALLER, "taker": TAKER, "other": OTHER, "definer": DEFINER, "taken": TAKEN}
    build(tmp_path, **names)
    orders: list[tuple[str, ...]] = [*itertools.permutations(names, 2)]
    orders += [("definer", "taker", "caller"), ("definer", "taker", "other")]
    seen = set()
    for order in orders:
        words = ["-arch=sm_90", *(f"{name}.o" for name in order)]
        theirs = nvlink(tmp_path, words)
        assert pylink(tmp_path, words) == theirs
        seen.add(any("Prototype" in line for line in theirs.lines))
    assert seen == {False, True}


DECLARES = """
extern __constant__ int v;
extern __device__ int w;
extern __managed__ int m;
__device__ int q(int);
__global__ void k(int *p) { *p = v + w + m + q(3); }
"""
DEFINES = "__device__ int v = 1, q = 4, m; __constant__ int w = 3;"


def test_clashes_say_both_values(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, a=DECLARES, b=DEFINES)
    said = both(tmp_path, overlay, "-dlink", "a.o", "b.o")
    for note in (
        "it is a variable of global memory in 'b.o' and a variable of constant memory in 'a.o'",
        "it is a variable of constant memory in 'b.o' and a variable of global memory in 'a.o'",
        "it is a variable that is not managed in 'b.o' and a managed variable in 'a.o'",
        "a.o: 'v' is declared here",
    ):
        assert note in said.notes
    again = both(tmp_path, overlay, "-dlink", "b.o", "a.o").notes
    assert "b.o: .nv.global.init+0x0: 'v' is first defined here" in "\n".join(again)


@pytest.mark.parametrize("container", ["b.o", "libb.a"])
def test_device_code_in_bytecode_of_gcc(tmp_path: Path, overlay: Path, container: str) -> None:
    build(tmp_path, a=USER)
    build(tmp_path, "-Xcompiler", "-flto", b="__device__ int f(int x) { return x + 1; }")
    oracle.run(["ar", "crD", "libb.a", "b.o"], tmp_path)
    said = both(tmp_path, overlay, "-dlink", "a.o", container)
    assert said.lines == ["nvlink error   : Undefined reference to '_Z1fi' in 'a.o'"]
    name = "b.o" if container == "b.o" else "libb.a:b.o"
    assert said.notes[-1] == (
        f"'{name}' contains only bytecode of GCC's -flto, which hides its device code; compile it "
        "without -flto, or with -ffat-lto-objects"
    )
    inspect = [sys.executable, "-m", "pylink", "inspect", "b.o"]
    assert "b.o: only bytecode of GCC's -flto" in "".join(printed(tmp_path, inspect).lines)
    build(
        tmp_path,
        *("-Xcompiler", "-flto,-ffat-lto-objects"),
        b="__device__ int f(int x) { return x + 1; }",
    )
    oracle.run(["ar", "crD", "libb.a", "b.o"], tmp_path)
    assert both(tmp_path, overlay, "-dlink", "a.o", container).code == 0


def test_a_function_that_is_local_to_another_file(tmp_path: Path, overlay: Path) -> None:
    build(
        tmp_path,
        a=USER,
        b="static __device__ __noinline__ int f(int x) { return x + 1; }\n"
        "__global__ void l(int *p) { *p = f(*p); }",
    )
    said = both(tmp_path, overlay, "-dlink", "a.o", "b.o")
    assert said.lines == ["nvlink error   : Undefined reference to '_Z1fi' in 'a.o'"]
    assert said.notes[-1] == (
        "'f(int)' in b.o is local to that file (static, or in an anonymous namespace)"
    )
