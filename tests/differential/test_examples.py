"""The builds in examples/: nvcc, CMake and clang drive pylink, which makes what nvlink makes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare

from pylink.overlay import make_overlay

EXAMPLES = Path(__file__).parents[2] / "examples"
WRAPPERS = sorted(Path("/usr/lib").glob("llvm-*/bin/clang-nvlink-wrapper"))
ARCHS = ["sm_75", "sm_90", "sm_100"]

# Stands in the place of the overlay's linker: links with that, then the same with the real one.
BOTH = """\
#!{python}
import os, shutil, subprocess, sys

words = sys.argv[1:]
at = words.index("-o") + 1
status = subprocess.call([{linker!r}, *words])
if status == 0:
    shutil.copy(words[at], os.path.join({kept!r}, "pylink.cubin"))
    words[at] = os.path.join({kept!r}, "nvlink.cubin")
    subprocess.check_call([{nvlink!r}, *words])
sys.exit(status)
"""

pytestmark = oracle.needs_oracle


class Toolkit:
    """An overlay whose links are kept, and done again by nvlink, in `kept`."""

    def __init__(self, place: Path) -> None:
        self.root = place / "toolkit"
        self.kept = place / "kept"
        self.kept.mkdir()
        real = oracle.toolchain()
        make_overlay(str(self.root), str(real.bin.parent))
        linker = self.root / "bin" / "nvlink"
        linker.rename(place / "nvlink")
        linker.write_text(
            BOTH.format(
                python=sys.executable,
                linker=str(place / "nvlink"),
                kept=str(self.kept),
                nvlink=real.tool("nvlink"),
            )
        )
        linker.chmod(0o755)

    def check(self) -> None:
        """What was linked equals what nvlink makes."""
        made = (self.kept / "pylink.cubin").read_bytes()
        assert compare(made, (self.kept / "nvlink.cubin").read_bytes()) == []


@pytest.fixture
def toolkit(tmp_path: Path) -> Toolkit:
    return Toolkit(tmp_path)


def run(*command: str | Path, **variables: str) -> None:
    done = subprocess.run(
        command,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr, done.stderr


@pytest.mark.parametrize("arch", ARCHS)
def test_nvcc(toolkit: Toolkit, tmp_path: Path, arch: str) -> None:
    run(EXAMPLES / "nvcc" / "build.sh", toolkit.root, tmp_path / "squares", ARCH=arch)
    toolkit.check()
    assert (tmp_path / "squares").read_bytes().startswith(b"\x7fELF")


@pytest.mark.skipif(
    not (shutil.which("cmake") and shutil.which("ninja")), reason="needs cmake and ninja"
)
@pytest.mark.parametrize("arch", ARCHS)
def test_cmake(toolkit: Toolkit, tmp_path: Path, arch: str) -> None:
    run(
        *("cmake", "-G", "Ninja", "-S", EXAMPLES / "cmake", "-B", tmp_path / "build"),
        f"-DCMAKE_CUDA_COMPILER={toolkit.root}/bin/nvcc",
        f"-DCMAKE_CUDA_ARCHITECTURES={arch.removeprefix('sm_')}",
    )
    run("cmake", "--build", tmp_path / "build")
    toolkit.check()
    assert (tmp_path / "build" / "waves").read_bytes().startswith(b"\x7fELF")


@pytest.mark.skipif(not WRAPPERS, reason="needs clang-nvlink-wrapper (Debian: clang-tools-22)")
def test_clang(toolkit: Toolkit, tmp_path: Path) -> None:
    llvm = str(WRAPPERS[-1].parent)
    path = f"{llvm}:{os.environ['PATH']}"
    output = tmp_path / "squares.cubin"
    run(EXAMPLES / "clang" / "build.sh", toolkit.root, output, LLVM=llvm, PATH=path)
    toolkit.check()
    assert output.read_bytes() == (toolkit.kept / "pylink.cubin").read_bytes()
