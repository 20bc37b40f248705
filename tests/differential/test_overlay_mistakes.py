"""Mistakes that people make with device links, and what the nvcc of an overlay says of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.through_nvcc import both, build, output_of

pytestmark = oracle.needs_oracle

SOURCES = {
    "user": "__device__ int f(int); __global__ void k(int *p) { *p = f(*p); }",
    "one": "__device__ int f(int x) { return x + 1; }",
    "two": "__device__ int f(int x) { return x + 2; }",
    "scoped": "namespace lib { __device__ int f(int x) { return x + 1; } }",
    "asks": "template <class T> __device__ T g(T);\n__global__ void h(float *p) { *p = g(*p); }",
    "makes": "template <class T> __device__ T g(T x) { return x; }\n"
    "template __device__ int g<int>(int);",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mistakes")
    build(made, **SOURCES)
    oracle.run(["ar", "crD", "libone.a", "one.o"], made)
    shutil.copy(made / "libone.a", made / "libcopy.a")
    (made / "text.o").write_text("#include <cstdio>\n__global__ void k() {}\n" + " " * 40)
    return made


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["one.o", "one.o"], "'one.o' is linked twice; name it once"),
        (
            ["one.o", "libone.a"],
            "'libone.a:one.o' and 'one.o' have the same contents; link one of them",
        ),
        (
            ["libone.a", "libcopy.a"],
            "'libcopy.a:one.o' and 'libone.a:one.o' have the same contents; link one of them",
        ),
        (
            ["one.o", "two.o"],
            "define '_Z1fi' in one file, or make it static; in a header, declare functions inline "
            "and variables extern",
        ),
        (["user.o", "scoped.o"], "did you mean 'lib::f(int)', defined in scoped.o?"),
        (["asks.o", "makes.o"], "did you mean 'T1 g<int>(T1)', defined in makes.o?"),
    ],
    ids=["twice", "in an archive", "copy", "header", "namespace", "template"],
)
def test_names_that_clash_or_are_undefined(
    folder: Path, overlay: Path, words: list[str], said: str
) -> None:
    found = both(folder, overlay, "-dlink", *words)
    assert found.code
    assert said in found.notes


def test_a_library_that_is_nowhere(folder: Path, overlay: Path) -> None:
    found = both(folder, overlay, "-dlink", "user.o", "-L.", "-lnone", "-lm")
    assert found.lines == ["nvlink error   : Undefined reference to '_Z1fi' in 'user.o'"]
    assert found.notes[-1].startswith("-lnone is not found in '.', ")
    assert found.notes[-1].endswith("; name its directory with -L")


def test_code_for_link_time_optimization(tmp_path: Path, overlay: Path) -> None:
    build(tmp_path, "-code=lto_90", arch="compute_90", b=SOURCES["one"])
    found = both(tmp_path, overlay, "-dlink", "b.o")
    assert found.lines == ["nvlink fatal   : LTO objects found, use -dlto"]
    assert found.notes == ["at b.o"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-O3"], "'-O3' is an option of nvcc, not of the device linker"),
        (["-Wl,-z,now"], "'-Wl,-z,now' is an option of the host linker, not of the device linker"),
        (["-gencode"], "'-gencode' is an option of nvcc, not of the device linker"),
        (["text.o"], "it is source code (compile it with nvcc -dc)"),
        (["-o", "none/made"], "No such file or directory"),
    ],
    ids=["-O3", "-Wl", "-gencode", "source", "output"],
)
def test_the_command_of_its_own(folder: Path, words: list[str], said: str) -> None:
    command = [sys.executable, "-m", "pylink", "-arch=sm_90", "one.o", *words]
    found = output_of(folder, command if "-o" in words else [*command, "-o", "made"])
    assert found.code
    assert said in found.notes
