"""Causes of failures that nvlink does not name, through the nvcc of an overlay and in a pipe.

What is printed without the lines of `pylink note` is what nvcc with nvlink prints, to the byte.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.side_by_side import nvlink, pylink
from helpers.through_nvcc import both, build, output_of

pytestmark = oracle.needs_oracle


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
        ("text", "nvlink ignores 'x.txt', which is not an object, and all members after it"),
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
    assert "'b.o' contains only bytecode of GCC's -flto" in "".join(
        output_of(tmp_path, inspect).lines
    )
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


@pytest.mark.parametrize(
    ("contents", "what"),
    [
        (b"BC\xc0\xde" + bytes(100), "LLVM bitcode"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n",
            "a pointer of Git LFS (run 'git lfs pull' to get the file)",
        ),
        (b"/* GNU ld script */\nGROUP ( /usr/lib/libf.so.1 )\n", "a linker script of the host"),
        (
            b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n" + b" " * 20,
            "an HTML page, which a download may have ended at",
        ),
    ],
    ids=["bitcode", "lfs", "script", "page"],
)
def test_files_in_the_place_of_objects(
    tmp_path: Path, overlay: Path, contents: bytes, what: str
) -> None:
    """nvlink ignores them without a message."""
    build(tmp_path, a=USER)
    for name in ("b.o", "libs.so"):
        (tmp_path / name).write_bytes(contents)
    oracle.run(["ar", "crDS", "libb.a", "b.o"], tmp_path)
    for words, name in ((["libb.a"], "libb.a:b.o"), (["-L.", "-ls"], "./libs.so")):
        said = both(tmp_path, overlay, "-dlink", "a.o", *words)
        assert said.lines == ["nvlink error   : Undefined reference to '_Z1fi' in 'a.o'"]
        note = f"'{name}' is {what}; no device code is found in it"
        assert said.notes[-1] == note
    for name, shown in (("libb.a", "libb.a:b.o"), ("b.o", "b.o")):
        inspect = [sys.executable, "-m", "pylink", "inspect", "--list", name]
        assert "".join(output_of(tmp_path, inspect).lines) == (
            f"pylink inspect: '{shown}' is {what}; no device code is found in it"
        )


def test_objects_for_another_host(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, a=USER, b=DEFINER.replace('extern "C"', ""))
    arm = bytearray((tmp_path / "b.o").read_bytes())
    arm[18:20] = (183).to_bytes(2, "little")
    (tmp_path / "b.o").write_bytes(arm)
    oracle.run(["ar", "crDS", "libb.a", "b.o"], tmp_path)
    said = both(tmp_path, overlay, "-dlink", "a.o", "libb.a")
    note = (
        "'libb.a:b.o' contains host code for AArch64, and the host of this link is x86-64 "
        "(-cpu-arch); its device code is linked, but the host linker will refuse it"
    )
    assert (said.code, said.lines, said.notes) == (0, [], [note])
    # A cubin of one object alone is for no host.
    assert pylink(tmp_path, ["-arch=sm_90", "b.o", "-r"]).lines == []
    inspect = [sys.executable, "-m", "pylink", "inspect", "--list", "libb.a"]
    assert output_of(tmp_path, inspect).lines[0].endswith(" bytes, in host code for AArch64")
