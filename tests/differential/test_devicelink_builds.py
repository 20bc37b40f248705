"""Builds whose device-link steps are done by pylink: CMake by its module, with Ninja and Make."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import oracle
from helpers.clients import needs_cmake
from helpers.containers import differences, split
from helpers.hostlink import contents, run, symbols

from pylink.bench.contenders import this_program
from pylink.command.overlay import make_overlay

pytestmark = [oracle.needs_oracle, needs_cmake]

PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(steps LANGUAGES CXX CUDA)
add_library(parts STATIC part.cu)
add_library(plugin SHARED plugin.cu)
add_executable(program main.cu other.cu plain.cpp)
set_target_properties(parts plugin program PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
target_link_libraries(program PRIVATE parts)
"""
SOURCES = {
    "CMakeLists.txt": PROJECT,
    "part.cu": "__device__ int part(int x) { return x + 1; }\n",
    "other.cu": "__device__ int other(int x) { return x * 3; }\n",
    "plain.cpp": "int plain() { return 4; }\n",
    "plugin.cu": "__global__ void plugin(int *p) { *p = 1; }\nvoid go() { plugin<<<1, 1>>>(0); }\n",
    "main.cu": "__device__ int part(int);\n__device__ int other(int);\nint plain();\n"
    "__global__ void run(int *p) { *p = part(other(*p)); }\n"
    "int main() { if (plain() > 9) run<<<1, 1>>>(0); return 0; }\n",
}
STEPS = ("program", "plugin")
CLANG = next(filter(None, map(shutil.which, ("clang++-22", "clang++-21"))), None)

needs_clang = pytest.mark.skipif(CLANG is None, reason="needs clang: apt install clang-22")


def cmake_version() -> tuple[int, ...]:
    """Of the CMake in PATH."""
    said = subprocess.run(["cmake", "--version"], capture_output=True, text=True, check=False)
    return tuple(int(part) for part in re.findall(r"[0-9]+", said.stdout)[:2])


# CMake 3.25 compiles for architectures that CUDA 13 has no more, to see what clang is.
KNOWS_CUDA_13 = shutil.which("cmake") is not None and cmake_version() >= (4, 0)


def build(folder: Path, generator: str, *settings: str) -> str:
    """Configure and build in `folder`; what the build prints with all commands."""
    source = folder.parent / "source"
    run(folder.parent, "cmake", "-G", generator, "-S", source, "-B", folder, *settings)
    return run(folder.parent, "cmake", "--build", folder, "--verbose")


@pytest.mark.parametrize(("generator", "kind"), [("Ninja", "Release"), ("Unix Makefiles", "Debug")])
def test_cmake_builds_the_same_objects(tmp_path: Path, generator: str, kind: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name, text in SOURCES.items():
        (source / name).write_text(text)
    make_overlay(str(tmp_path / "toolkit"), str(oracle.toolchain().bin.parent))
    said = subprocess.check_output([sys.executable, "-m", "pylink", "cmake-dir"], text=True)
    module = Path(said.rstrip("\n")) / "PylinkDeviceLink.cmake"
    settings = [
        f"-DCMAKE_CUDA_COMPILER={tmp_path}/toolkit/bin/nvcc",
        "-DCMAKE_CUDA_ARCHITECTURES=80-real;90",
        f"-DCMAKE_BUILD_TYPE={kind}",
    ]
    ours = (f"-DCMAKE_PROJECT_INCLUDE={module}", f"-DPYLINK_EXECUTABLE={this_program()}")
    made = build(tmp_path / "made", generator, *settings, *ours)
    build(tmp_path / "real", generator, *settings)
    assert made.count(" dlink --cuda ") == len(STEPS), made
    for name in STEPS:
        file = f"CMakeFiles/{name}.dir/cmake_device_link.o"
        mine, theirs = (contents(tmp_path / at, file, ".nv_fatbin") for at in ("made", "real"))
        assert differences(mine, theirs) == []
        assert len(split(mine)) == 2
        kinds = [
            sorted(
                (symbol[:4], symbol[4].partition("_")[0]) for symbol in symbols(tmp_path / at, file)
            )
            for at in ("made", "real")
        ]
        assert kinds[0] == kinds[1]
    subprocess.run([tmp_path / "made" / "program"], check=True)


@pytest.fixture
def clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """clang, with the header of cuRAND that it includes in every compilation."""
    assert CLANG is not None
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "curand_mtgp32_kernel.h").touch()
    monkeypatch.setenv("CPATH", str(tmp_path / "include"))
    source = tmp_path / "source"
    source.mkdir()
    for name, text in SOURCES.items():
        (source / name).write_text(text)
    make_overlay(str(tmp_path / "toolkit"), str(oracle.toolchain().bin.parent))
    return CLANG


@needs_clang
def test_the_commands_of_cmake_for_clang(tmp_path: Path, clang: str) -> None:
    """Whose fatbinary has words that no fatbinary of CUDA 13 knows."""
    archs = ("80", "90")
    toolkit = tmp_path / "toolkit"
    words = [f"--cuda-path={toolkit}", *(f"--cuda-gpu-arch=sm_{arch}" for arch in archs)]
    objects = ["main.o", "other.o", "part.o"]
    for name in objects:
        file = f"source/{name.replace('.o', '.cu')}"
        run(tmp_path, clang, *words, "-fgpu-rdc", "-x", "cuda", "-c", file, "-o", name)
    images: list[str] = []
    for arch in archs:
        register = [] if images else ["--register-link-binaries=register.h"]
        link = [f"-arch=sm_{arch}", *register, f"-o=sm_{arch}.cubin", *objects]
        run(tmp_path, toolkit / "bin" / "nvlink", *link)
        images.append(f"-im=profile=sm_{arch},file=sm_{arch}.cubin")
    options = ("-64", "-cmdline=--compile-only", "-compress-all", "-link")
    pack = (*options, "--embedded-fatbin=fatbin.h", *images)
    said = run(tmp_path, oracle.toolchain().tool("fatbinary"), *pack, status=1)
    assert "Unknown option" in said
    run(tmp_path, toolkit / "bin" / "fatbinary", *pack)
    macros = [
        "-D__CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__",
        "-D__NV_EXTRA_INITIALIZATION=",
        "-D__NV_EXTRA_FINALIZATION=",
        f'-DREGISTERLINKBINARYFILE="{tmp_path}/register.h"',
        f'-DFATBINFILE="{tmp_path}/fatbin.h"',
    ]
    stub = toolkit / "bin" / "crt" / "link.stub"
    run(tmp_path, clang, *words, *macros, "-x", "cuda", "-c", stub, "-o", "step.o")
    assert len(split(contents(tmp_path, "step.o", ".nv_fatbin"))) == 2


if KNOWS_CUDA_13:

    @needs_clang
    @pytest.mark.parametrize("by", ["module", "overlay"])
    def test_cmake_with_clang(tmp_path: Path, by: str, clang: str) -> None:
        toolkit, home = tmp_path / "toolkit", oracle.toolchain().bin.parent
        settings = [
            f"-DCMAKE_CUDA_COMPILER={clang}",
            f"-DCUDAToolkit_ROOT={toolkit}",
            "-DCMAKE_CUDA_ARCHITECTURES=80-real;90-real",
        ]
        if by == "module":  # of a toolkit with the real programs
            for name in ("nvcc", "nvlink", "fatbinary"):
                (toolkit / "bin" / name).unlink()
                (toolkit / "bin" / name).symlink_to(home / "bin" / name)
            said = subprocess.check_output([sys.executable, "-m", "pylink", "cmake-dir"], text=True)
            module = Path(said.rstrip("\n")) / "PylinkDeviceLink.cmake"
            settings += [
                f"-DCMAKE_PROJECT_INCLUDE={module}",
                f"-DPYLINK_EXECUTABLE={this_program()}",
            ]
        said = build(tmp_path / "made", "Ninja", *settings)
        assert "-im=profile=sm_90" in said
        data = contents(
            tmp_path / "made", "CMakeFiles/program.dir/cmake_device_link.o", ".nv_fatbin"
        )
        assert len(split(data)) == 2
        assert (tmp_path / "made" / "program").is_file()
