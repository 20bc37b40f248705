"""Device code of shared libraries in CMake projects with ordinary targets, by PylinkDeviceLink."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from helpers import oracle
from helpers.host_build import HostBuild, Log

from pylink.audit.command import main
from pylink.bench.contenders import this_program
from pylink.devicelink.command_cmakedir import CMAKE_DIRECTORY

pytestmark = [
    oracle.needs_oracle,
    pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake: pip install cmake"),
]

LIBRARIES = """\
cmake_minimum_required(VERSION 3.25)
project(land LANGUAGES CXX CUDA)
set(PYLINK_SHARED_LIBRARIES ON)
include(PylinkDeviceLink)
add_subdirectory(deep)
add_library(hills hills.cu)
target_link_libraries(hills PRIVATE noise)
add_library(roads_objects OBJECT roads.cu)
add_library(roads $<TARGET_OBJECTS:roads_objects>)
target_link_libraries(roads PUBLIC hills)
set_target_properties(hills PROPERTIES VERSION 1.2 SOVERSION 1)
add_executable(device main.cu)
target_link_libraries(device PRIVATE roads)
add_executable(host main.cpp)
target_link_libraries(host PRIVATE roads)
include(GNUInstallDirs)
install(TARGETS noise hills roads EXPORT landTargets)
install(EXPORT landTargets NAMESPACE land:: DESTINATION lib/cmake/land)
install(FILES landConfig.cmake DESTINATION lib/cmake/land)
"""
CONFIG = """\
set(PYLINK_SHARED_LIBRARIES ON)
include(PylinkDeviceLink)
include("${CMAKE_CURRENT_LIST_DIR}/landTargets.cmake")
"""
USER = """\
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX CUDA)
find_package(land REQUIRED)
add_executable(device main.cu)
target_link_libraries(device PRIVATE land::roads)
add_executable(host main.cpp)
target_link_libraries(host PRIVATE land::roads)
"""
HOST = 'void roads();\n#include <cstdio>\nint main() { roads(); std::puts("end of main"); }\n'
SOURCES = {
    "deep/CMakeLists.txt": "add_library(noise noise.cu)\n",
    "deep/noise.cu": "__device__ int noise(int x) { return x * 3; }\n"
    "__global__ void noise_kernel(int *p) { *p = noise(1); }\n"
    "void make_noise() { noise_kernel<<<1, 1>>>(nullptr); }\n",
    "hills.cu": "__device__ int noise(int);\nvoid make_noise();\n"
    "__device__ int hills(int x) { return noise(x) + 1; }\n"
    "__global__ void hills_kernel(int *p) { *p = hills(2); }\n"
    "void make_hills() { make_noise(); hills_kernel<<<1, 1>>>(nullptr); }\n",
    "roads.cu": "__device__ int hills(int);\nvoid make_hills();\n"
    "__global__ void roads_kernel(int *p) { *p = hills(3); }\n"
    "void roads() { make_hills(); roads_kernel<<<1, 1>>>(nullptr); }\n",
    "main.cu": "__device__ int hills(int);\n"
    "__global__ void main_kernel(int *p) { *p = hills(3); }\n"
    + HOST.replace("{ roads();", "{ main_kernel<<<1, 1>>>(nullptr); roads();"),
    "main.cpp": HOST,
    "landConfig.cmake": CONFIG,
}


def configure(build: HostBuild, source: Path, target: Path, generator: str, *words: str) -> None:
    build.run(
        *("cmake", "-G", generator, "-S", source, "-B", target),
        f"-DCMAKE_CUDA_COMPILER={build.nvcc}",
        f"-DCMAKE_MODULE_PATH={CMAKE_DIRECTORY}",
        f"-DPYLINK_EXECUTABLE={this_program()}",
        *words,
    )
    build.run("cmake", "--build", target)


@pytest.mark.parametrize(
    ("shared", "generator", "architectures"),
    [("ON", "Ninja", "90"), ("OFF", "Ninja", "90"), ("ON", "Unix Makefiles", "80;90")],
)
def test_ordinary_targets(
    tmp_path: Path,
    shared: str,
    generator: str,
    architectures: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the build tree, and installed for another project; programs of CUDA and of C++ alone."""
    build = HostBuild(tmp_path)
    for name, text in {"CMakeLists.txt": LIBRARIES, **SOURCES}.items():
        (tmp_path / "land" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "land" / name).write_text(text)
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "CMakeLists.txt").write_text(USER)
    for name in ("main.cu", "main.cpp"):
        (tmp_path / "user" / name).write_text(SOURCES[name])
    settings = [f"-DBUILD_SHARED_LIBS={shared}", f"-DCMAKE_CUDA_ARCHITECTURES={architectures}"]
    installed = tmp_path / "installed"
    configure(build, tmp_path / "land", tmp_path / "built", generator, *settings)
    build.run("cmake", "--install", tmp_path / "built", "--prefix", installed)
    used = tmp_path / "used"
    words = [*settings, f"-DCMAKE_PREFIX_PATH={installed}"]
    configure(build, tmp_path / "user", used, generator, *words)
    assert (installed / "lib" / "libhills.so.1.2").exists() == (shared == "ON")
    for folder in (tmp_path / "built", used):
        for name, count in (("device", 4), ("host", 3)):
            log = Log(build.run(folder / name))
            assert log.ended
            assert not log.lost_names
            assert len(log.used) == count
            assert log.images == 1
            status = main([str(folder / name), "-L", str(tmp_path), "--json"])
            said = json.loads(capsys.readouterr().out)
            assert (status, [finding["rule"] for finding in said["findings"]]) == (0, [])
