"""A CMake project with device code in five shared libraries, programs and three plugins.

It uses ordinary targets: libraries in a folder below, of an object library, of C++ alone, with
versions, with public and private dependencies, for several architectures. Plugins reach all
libraries but `extra`. `r` is an extension of Python.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from pathlib import Path

import cmake
from helpers.host_build import HostBuild

from pylink.bench.contenders import this_program
from pylink.devicelink.command_cmakedir import CMAKE_DIRECTORY

NEWEST = str(Path(cmake.CMAKE_BIN_DIR) / "cmake")

LIBRARIES = """\
cmake_minimum_required(VERSION 3.25)
project(land LANGUAGES CXX CUDA)
set(PYLINK_SHARED_LIBRARIES ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN")
find_package(pylink REQUIRED)
add_subdirectory(deep)
add_library(geo SHARED geo.cu)
target_link_libraries(geo PUBLIC core)
add_library(physics_objects OBJECT physics.cpp)
set_source_files_properties(physics.cpp PROPERTIES LANGUAGE CUDA)
add_library(physics SHARED $<TARGET_OBJECTS:physics_objects>)
target_link_libraries(physics PRIVATE $<BUILD_INTERFACE:geo> $<INSTALL_INTERFACE:geo>)
set_target_properties(physics PROPERTIES VERSION 1.2 SOVERSION 1)
add_library(land::physics ALIAS physics)
add_library(io SHARED io.cpp)
target_link_libraries(io PRIVATE land::physics)
add_library(extra SHARED extra.cu)
target_link_libraries(extra PUBLIC geo)
set_target_properties(extra PROPERTIES CUDA_ARCHITECTURES "80;90")
add_executable(device device.cu)
target_link_libraries(device PRIVATE extra io)
add_executable(host host.cpp)
target_link_libraries(host PRIVATE io ${CMAKE_DL_LIBS})
add_executable(bare bare.cpp)
target_link_libraries(bare PRIVATE ${CMAKE_DL_LIBS})
add_subdirectory(plugins)
if(FAULT STREQUAL open)
  set_target_properties(core geo physics PROPERTIES CUDA_RESOLVE_DEVICE_SYMBOLS OFF)
elseif(FAULT STREQUAL unlinked)
  set_target_properties(p q PROPERTIES CUDA_RESOLVE_DEVICE_SYMBOLS OFF)
endif()
install(TARGETS core geo physics io extra EXPORT landTargets)
install(EXPORT landTargets NAMESPACE land:: DESTINATION lib/cmake/land)
install(FILES landConfig.cmake DESTINATION lib/cmake/land)
"""
PLUGINS = """\
add_library(p MODULE p.cu)
target_link_libraries(p PRIVATE physics)
add_library(q MODULE q.cu)
target_link_libraries(q PRIVATE geo io)
add_library(r MODULE r.cu extension.cpp)
target_include_directories(r PRIVATE "${PYTHON_INCLUDE}")
set_target_properties(r PROPERTIES PREFIX "" SUFFIX "${PYTHON_SUFFIX}")
target_link_libraries(r PRIVATE land::physics)
"""
CONFIG = """\
set(PYLINK_SHARED_LIBRARIES ON)
find_package(pylink REQUIRED)
include("${CMAKE_CURRENT_LIST_DIR}/landTargets.cmake")
"""
USER = """\
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
add_subdirectory(below)
add_executable(host ../host.cpp)
target_link_libraries(host PRIVATE inner ${CMAKE_DL_LIBS})
"""
BELOW = """\
find_package(land REQUIRED)
add_library(inner SHARED inner.cpp)
target_link_libraries(inner PRIVATE land::extra land::io)
add_library(plugin MODULE plugin.cpp)
target_link_libraries(plugin PRIVATE land::io)
if(PLUGIN_USES_OPEN)
  target_link_libraries(plugin PRIVATE land::extra)
endif()
"""
MODULE = """\
{declared}
__device__ int NAME(int x) {{ return x + 1{called}; }}
__global__ void NAME_kernel(int *p) {{ *p = NAME(1); }}
void run_NAME() {{ {launched} NAME_kernel<<<1, 1>>>(nullptr); }}
"""
PLUGIN = """\
__device__ int CALLED(int);
__global__ void NAME_kernel(int *p) { *p = CALLED(2); }
extern "C" void run() { NAME_kernel<<<1, 1>>>(nullptr); }
"""
LOADER = """\
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
DECLARED
int main(int count, char **words)
{
    CALLED;
    int scope = count > 1 && !std::strcmp(words[1], "global") ? RTLD_GLOBAL : RTLD_LOCAL;
    for (int i = 2; i < count; ++i) {
        void *plugin = dlopen(words[i], RTLD_NOW | scope);
        if (!plugin) { std::puts(dlerror()); return 1; }
        ((void (*)())dlsym(plugin, "run"))();
    }
    std::puts("end of main");
}
"""
EXTENSION = """\
#include <Python.h>
extern "C" void run();
static PyObject *call(PyObject *, PyObject *) { run(); Py_RETURN_NONE; }
static PyMethodDef methods[] = {{"run", call, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "r", "", -1, methods};
PyMODINIT_FUNC PyInit_r() { return PyModule_Create(&module); }
"""


def module(name: str, calls: Sequence[str] = ()) -> str:
    """Return a source with a device function, a kernel and a host function that use `calls`."""
    return MODULE.format(
        declared="".join(f"__device__ int {other}(int); void run_{other}();" for other in calls),
        called="".join(f" + {other}(x)" for other in calls),
        launched="".join(f"run_{other}();" for other in calls),
    ).replace("NAME", name)


def plugin(name: str, called: str) -> str:
    """Return the source of a plugin that calls a function."""
    return PLUGIN.replace("NAME", name).replace("CALLED", called)


def loader(called: str) -> str:
    """Return a program that calls a host function, and opens plugins."""
    declared = f"void {called}();" if called else ""
    return LOADER.replace("DECLARED", declared).replace("CALLED", f"{called}()" if called else "")


SOURCES = {
    "land/CMakeLists.txt": LIBRARIES,
    "land/landConfig.cmake": CONFIG,
    "land/deep/CMakeLists.txt": "add_library(core SHARED core.cu)\n",
    "land/deep/core.cu": module("core"),
    "land/geo.cu": module("geo", ["core"]),
    "land/physics.cpp": module("physics", ["geo"]),
    "land/io.cpp": "void run_physics();\nvoid run_io() { run_physics(); }\n",
    "land/extra.cu": module("extra", ["geo"]),
    "land/device.cu": plugin("device", "extra")
    + 'void run_extra();\nvoid run_io();\n#include <cstdio>\n'
    'int main() { run(); run_extra(); run_io(); std::puts("end of main"); }\n',
    "land/host.cpp": loader("run_io"),
    "land/bare.cpp": loader(""),
    "land/plugins/CMakeLists.txt": PLUGINS,
    "land/plugins/p.cu": plugin("p", "physics"),
    "land/plugins/q.cu": plugin("q", "geo"),
    "land/plugins/r.cu": plugin("r", "physics"),
    "land/plugins/extension.cpp": EXTENSION,
    "user/CMakeLists.txt": USER,
    "user/below/CMakeLists.txt": BELOW,
    "user/below/inner.cpp": "void run_extra();\nvoid run_io();\n"
    "void run_inner() { run_extra(); run_io(); }\n",
    "user/below/plugin.cpp": 'void run_io();\nextern "C" void run() { run_io(); }\n',
    "host.cpp": loader("run_inner"),
}  # fmt: skip


def write(build: HostBuild) -> None:
    """Write the project `land`, and `user`, a project without device code."""
    for name, text in SOURCES.items():
        file = build.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def configure(build: HostBuild, source: str, target: str, *words: str, cmake: str = "cmake") -> str:
    """Configure a project and build it; return the output of the configuration."""
    output = build.run(
        *(cmake, "-S", source, "-B", target, f"-DPYLINK_EXECUTABLE={this_program()}"),
        *(f"-Dpylink_DIR={CMAKE_DIRECTORY}", f"-DCMAKE_MODULE_PATH={CMAKE_DIRECTORY}"),
        *words,
    )
    build.run(cmake, "--build", target, "--parallel", "2")
    return output


def compiler(build: HostBuild) -> tuple[str, ...]:
    """Return the variables that `land` needs: the compiler, and Python."""
    return (
        f"-DCMAKE_CUDA_COMPILER={build.nvcc}",
        "-DCMAKE_CUDA_ARCHITECTURES=90",
        f"-DPYTHON_INCLUDE={sysconfig.get_paths()['include']}",
        f"-DPYTHON_SUFFIX={sysconfig.get_config_var('EXT_SUFFIX')}",
    )
