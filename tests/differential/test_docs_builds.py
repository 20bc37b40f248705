"""What docs/builds.md and README.md tell people to type works as it stands there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.clients import needs_cmake
from helpers.sessions import blocks

from pylink.command.overlay import make_overlay

pytestmark = oracle.needs_oracle

ROOT = Path(__file__).parents[2]
BUILDS = (ROOT / "docs" / "builds.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")

MAIN = """\
__device__ int square(int);
__global__ void squares(int *p) { *p = square(*p); }
int main() { squares<<<1, 1>>>(nullptr); }
"""
SQUARE = "__device__ int square(int x) { return x * x; }\n"
ARCH = "90a"


def indented(page: str, start: str) -> str:
    """The one command of a page, set off by four blanks, that starts so."""
    (found,) = re.findall(rf"^    (?:\$ )?({re.escape(start)}.*)$", page, re.MULTILINE)
    return str(found).partition("   #")[0]


def block(page: str, language: str) -> str:
    """The text of the one block of a page in a language."""
    (text,) = (block.text for block in blocks(page) if block.language == language)
    return text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sources, cubins and an overlay."""
    (tmp_path / "main.cu").write_text(MAIN)
    (tmp_path / "square.cu").write_text(SQUARE)
    for name, text in (("a", MAIN), ("b", SQUARE)):
        (tmp_path / f"{name}.cubin").write_bytes(oracle.compile(text, ARCH))
    make_overlay(str(tmp_path / "toolkit"), str(oracle.toolchain().bin.parent))
    return tmp_path


def run(command: str, folder: Path, **variables: str) -> str:
    """What a command prints that must succeed, with this pylink in PATH."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_options_through_nvcc(folder: Path) -> None:
    """nvcc links a program for each architecture into a file of its own."""
    run(indented(BUILDS, "toolkit/bin/nvcc"), folder)
    (made,) = folder.glob("program.sm_*.map")
    assert "_Z6squarei" in made.read_text()


@needs_cmake
def test_options_through_cmake(folder: Path) -> None:
    shutil.copytree(ROOT / "examples" / "cmake", folder / "waves")
    with (folder / "waves" / "CMakeLists.txt").open("a") as file:
        file.write(block(BUILDS, "cmake"))
    compiler = f"-DCMAKE_CUDA_COMPILER={folder}/toolkit/bin/nvcc"
    archs = "-DCMAKE_CUDA_ARCHITECTURES='80;90'"
    run(f"cmake -G Ninja -S waves -B made {compiler} {archs}", folder)
    run("cmake --build made", folder)
    maps = sorted(path.name for path in (folder / "made").glob("waves.*.map"))
    assert maps == ["waves.sm_80.map", "waves.sm_90.map"]


def test_options_of_the_environment(folder: Path, tmp_path: Path) -> None:
    rule = "toolkit/bin/nvcc -rdc=true -arch=sm_90 -dlink main.o square.o -o link.o"
    compile = "toolkit/bin/nvcc -rdc=true -arch=sm_90 -c"
    (folder / "Makefile").write_text(
        f"all:\n\t{compile} main.cu\n\t{compile} square.cu\n\t{rule}\n"
    )
    command = indented(BUILDS, "PYLINK_OPTIONS=").replace("/tmp/", f"{tmp_path}/")
    run(command, folder)
    assert (tmp_path / "link.sm_90.log").is_file()
    document = json.loads((tmp_path / "link.sm_90.sarif").read_text())
    (invocation,) = document["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is True


def test_a_link_to_take_along(folder: Path) -> None:
    (folder / "program.rsp").write_text("a.cubin b.cubin")
    run(indented(BUILDS, "pylink -arch=sm_90a @program.rsp"), folder)
    made = (folder / "program.cubin").read_bytes()
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / "program.tar.zst").rename(elsewhere / "program.tar.zst")
    for name in ("a.cubin", "b.cubin", "program.rsp"):
        (folder / name).unlink()
    run(indented(BUILDS, "pylink reproduce"), elsewhere)
    assert (elsewhere / "again.cubin").read_bytes() == made


def test_commands_of_the_readme(folder: Path) -> None:
    nvcc = f"{folder}/toolkit/bin/nvcc -rdc=true -arch=sm_90a"
    run(f"{nvcc} -c square.cu -o b.o && ar rcs libc.a", folder)
    run(indented(README, "pylink -arch=sm_90a a.cubin"), folder)
    assert (folder / "linked.cubin").is_file()
    shutil.rmtree(folder / "toolkit")
    overlay = indented(README, "pylink toolkit-overlay")
    run(overlay.replace("/usr/local/cuda", str(oracle.toolchain().bin.parent)), folder)
    assert "then: toolkit/bin/nvcc -rdc=true ..." in README
    run("toolkit/bin/nvcc -rdc=true main.cu square.cu -o program", folder)
    assert run_python(block(README, "python"), folder) == ""


def run_python(text: str, folder: Path) -> str:
    """What a text of a page prints, with `data` being what the page takes for granted."""
    program = f"data = open('b.cubin', 'rb').read()\n{text}"
    (folder / "page.py").write_text(program)
    return run(f"{sys.executable} page.py", folder)


def test_an_overlay_without_a_toolkit(tmp_path: Path) -> None:
    """A folder for PATH, with the linker alone."""
    run("pylink toolkit-overlay tools", tmp_path)
    names = sorted(path.name for path in (tmp_path / "tools" / "bin").iterdir())
    assert names == ["nvlink", "nvlink.notes"]
    assert "pylink" in run("tools/bin/nvlink --version", tmp_path)
    cubin = oracle.compile("__global__ void k() {}", ARCH)
    (tmp_path / "a.cubin").write_bytes(cubin)
    run(f"PATH=$PWD/tools/bin:$PATH nvlink -arch=sm_{ARCH} a.cubin -o out", tmp_path)
    assert (tmp_path / "out").is_file()
