"""The builds in examples/: nvcc, CMake and clang drive pylink, which makes what nvlink makes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers import oracle
from helpers.clients import needs_cmake
from helpers.toolkit import Toolkit, run

EXAMPLES = Path(__file__).parents[2] / "examples"
WRAPPERS = sorted(Path("/usr/lib").glob("llvm-*/bin/clang-nvlink-wrapper"))
ARCHS = ["sm_75", "sm_90", "sm_100"]

pytestmark = oracle.needs_oracle


@pytest.fixture
def toolkit(tmp_path: Path) -> Toolkit:
    return Toolkit(tmp_path)


@pytest.mark.parametrize("arch", ARCHS)
def test_nvcc(toolkit: Toolkit, tmp_path: Path, arch: str) -> None:
    run(EXAMPLES / "nvcc" / "build.sh", toolkit.root, tmp_path / "squares", ARCH=arch)
    assert toolkit.check() >= 1
    assert (tmp_path / "squares").read_bytes().startswith(b"\x7fELF")


@needs_cmake
@pytest.mark.parametrize("arch", ARCHS)
def test_cmake(toolkit: Toolkit, tmp_path: Path, arch: str) -> None:
    run(
        *("cmake", "-G", "Ninja", "-S", EXAMPLES / "cmake", "-B", tmp_path / "build"),
        f"-DCMAKE_CUDA_COMPILER={toolkit.root}/bin/nvcc",
        f"-DCMAKE_CUDA_ARCHITECTURES={arch.removeprefix('sm_')}",
    )
    run("cmake", "--build", tmp_path / "build")
    assert toolkit.check() >= 1
    assert (tmp_path / "build" / "waves").read_bytes().startswith(b"\x7fELF")


@pytest.mark.skipif(not WRAPPERS, reason="needs clang-nvlink-wrapper: apt install clang-tools-22")
def test_clang(toolkit: Toolkit, tmp_path: Path) -> None:
    llvm = str(WRAPPERS[-1].parent)
    path = f"{llvm}:{os.environ['PATH']}"
    output = tmp_path / "squares.cubin"
    run(EXAMPLES / "clang" / "build.sh", toolkit.root, output, LLVM=llvm, PATH=path)
    assert toolkit.check() >= 1
    assert output.read_bytes() == (toolkit.outputs / "0.pylink.cubin").read_bytes()
