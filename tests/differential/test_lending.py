"""Plugins, Python extensions and programs that borrow device code of a library with its own link.

They run with a runtime that says which image each launch finds, and which modules the driver is
told of.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig

import pytest
from helpers import lending_programs, oracle
from helpers.host_build import ARCH, HostBuild, Log
from helpers.linked import functions
from helpers.side_by_side import OURS, nvlink, pylink

pytestmark = oracle.needs_oracle

CORE = """\
static __device__ int base = 3;
__constant__ int table[4] = {1, 2, 3, 4};
__constant__ int scale;
__managed__ int total = 4;
__device__ int core_add(int x) { return x + table[x & 3]; }
__device__ int core_base(int x) { return x + base; }
__device__ int core_scaled(int x) { return x * scale; }
__device__ int core_total(int x) { return x + total; }
__global__ void core_kernel(int *p) { *p = core_base(*p); }
void core_host()
{
    int value = 7;
    cudaMemcpyToSymbol(base, &value, sizeof value);
    cudaMemcpyToSymbol(scale, &value, sizeof value);
    core_kernel<<<1, 1>>>(nullptr);
}
"""
PLUGIN = """\
extern __device__ int core_CALL(int);
__global__ void NAME_kernel(int *p) { *p = core_CALL(*p); }
extern "C" void run() { NAME_kernel<<<1, 1>>>(nullptr); }
"""
EXTENSION = """\
#include <Python.h>
extern "C" void run();
static PyObject *call(PyObject *, PyObject *) { run(); Py_RETURN_NONE; }
static PyMethodDef methods[] = {{"run", call, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "NAME", "", -1, methods};
PyMODINIT_FUNC PyInit_NAME() { return PyModule_Create(&module); }
"""
LOADED = """\
#include "unused.h"
void core_host();
extern "C" void loaded() { core_host(); }
"""
POSITION = ("-Xcompiler", "-fPIC")
SHARED = ("-arch=sm_90", "-rdc=true", "-cudart", "shared", *POSITION, "-L.", "-Lruntime")


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> HostBuild:
    """A closed library, an archive of its module, plugins' objects and programs that open them."""
    made = HostBuild(tmp_path_factory.mktemp("lending"))
    made.write(core_cu=CORE, loader_cc=lending_programs.LOADER)
    made.compile("core.cu", "-rdc=true", "-lineinfo")
    made.run("ar", "rcs", "libcore_nv.a", "core.o")
    made.closed("libcore.so", ["core.o"])
    for name in "pq":
        write_plugin(made, name, "add")
    made.write(loaded_cc=LOADED.replace('#include "unused.h"\n', ""))
    made.write(bare_cc='extern "C" void loaded() {}\n')
    host = ("g++", "loader.cc", "-Wl,--no-as-needed")
    runtime = ("-L.", "-Lruntime", "-lcudart", "-ldl")
    made.run(*host, "loaded.cc", "-lcore", *runtime, "-o", "with_core")
    made.run(*host, "bare.cc", "-ldl", "-o", "without")
    return made


def write_plugin(build: HostBuild, name: str, call: str) -> str:
    text = PLUGIN.replace("NAME", name).replace("CALL", call)
    build.write(**{f"{name}_cu": text})
    return build.compile(f"{name}.cu", "-rdc=true", "-lineinfo")


def open_plugins(build: HostBuild, scope: str, *files: str) -> list[Log]:
    """What programs with the library and without it do."""
    words = [scope, *(f"./{file}" for file in files)]
    return [Log(build.run(f"./{program}", *words)) for program in ("with_core", "without")]


def link_by(build: HostBuild, way: str, name: str, *files: str) -> tuple[str, str]:
    """A plugin linked by nvcc at once, by nvcc in two steps, or by the step of pylink."""
    output = f"{way.replace(' ', '_')}_{name}.so"
    if way == "nvcc":
        said = build.run(build.nvcc, "-shared", *SHARED, f"{name}.o", *files, "-o", output)
        return output, said
    tool = [build.nvcc, "-rdc=true"] if way == "nvcc -dlink" else [sys.executable, "-m", "pylink"]
    if way == "pylink dlink":
        tool.append("dlink")
    words = ("-arch=sm_90", "-dlink", "-shared", "-Xcompiler", "-fPIC", "-L.")
    said = build.run(*tool, *words, f"{name}.o", *files, "-o", "step.o")
    libraries = [file for file in files if not file.endswith(".a")]
    host = ("g++", "-shared", "step.o", f"{name}.o", "-L.", *libraries, "-Lruntime", "-lcudart")
    build.run(*host, "-o", output)
    return output, said


WAYS = ("nvcc", "nvcc -dlink", "pylink dlink")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("files", ["libcore.so", "-lcore", "libcore_nv.a -lcore",
                                   "libcore.so libcore_nv.a"])  # fmt: skip
def test_two_plugins_of_a_closed_library(build: HostBuild, way: str, files: str) -> None:
    """Each has an image with the library's code, of which the driver is told."""
    made = [link_by(build, way, name, *files.split()) for name in "pq"]
    plugins = [word for name, _ in made for word in ("--plugin", name)]
    audit = (sys.executable, "-m", "pylink", "audit", "with_core", *plugins)
    assert "0 errors, 0 warnings" in build.run(*audit, "-L", ".", "-L", "runtime")
    for scope in ("local", "global"):
        for log in open_plugins(build, scope, *(name for name, _ in made)):
            assert log.ended, log.text
            assert not log.lost_names, log.text
            kernels = ("_Z8p_kernelPi", "_Z8q_kernelPi")
            images = [image for name, image in log.used if name in kernels]
            assert len(set(images)) == 2
            for image in images:
                assert log.text.count(f"{image}: has") == 2


def test_the_image_has_what_is_needed(build: HostBuild) -> None:
    said = pylink(build.folder, [f"-arch={ARCH}", "p.o", "libcore.so"])
    assert (said.code, said.lines) == (0, [])
    assert functions((build.folder / OURS).read_bytes()) == {"_Z8p_kernelPi", "_Z8core_addi"}


@pytest.mark.parametrize("call", ["base", "scaled", "add", "total"])
def test_state_is_told_with_its_line(build: HostBuild, call: str) -> None:
    """A table that no host code names is the same everywhere."""
    write_plugin(build, "s", call)
    words = [f"-arch={ARCH}", "s.o", "libcore.so"]
    said = pylink(build.folder, words)
    assert nvlink(build.folder, words).code != 0
    text = "\n".join(said.lines)
    if call == "add":
        assert (said.code, text) == (0, "")
    elif call == "total":
        assert said.code != 0
        assert "error   : __managed__ variable 'total' of 'libcore.so' has no address" in text
    else:
        name = {"base": "base", "scaled": "scale"}[call]
        assert said.code == 0
        assert f"warning : '{name}' of 'libcore.so' is copied into this image" in text
    if call != "add":
        shown = pylink(build.folder, [*words, "--diagnostics-format=sarif"])
        rows = CORE.splitlines()
        line = 1 + next(i for i, row in enumerate(rows) if f"core_{call}(int x)" in row)
        assert f'"startLine":{line}' in "".join(shown.lines).replace(" ", "")


def test_a_program_borrows_of_a_closed_library(build: HostBuild) -> None:
    plugin = PLUGIN.replace("NAME", "main").replace("CALL", "add")
    main = 'int main() { run(); std::puts("end of main"); }\n'
    build.write(main_cu=f"#include <cstdio>\n{plugin}{main}")
    build.compile("main.cu", "-rdc=true")
    for flags in ([], ["-Xcompiler", "-no-pie", "-Xlinker", "-no-pie"]):
        log = build.start(build.program("borrowing", ["main.o", "libcore.so"], *flags))
        assert log.ended
        assert [name for name, _ in log.used] == ["_Z11main_kernelPi"]
        assert not log.lost_names


def test_two_python_extensions(build: HostBuild) -> None:
    include = sysconfig.get_paths()["include"]
    for name in "pq":
        build.write(**{f"ext{name}_cc": EXTENSION.replace("NAME", name)})
        position = ("-fPIC", f"-I{include}")
        build.run("g++", *position, "-c", f"ext{name}.cc", "-o", f"ext{name}.o")
        output = f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
        flags = ("-Xlinker", "-Bsymbolic-functions")
        words = (*SHARED, *flags, f"{name}.o", f"ext{name}.o", "-lcore", "-o", output)
        build.run(build.nvcc, "-shared", *words)
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{build.folder}/runtime:{build.folder}"}
    done = subprocess.run(
        [sys.executable, "-c", "import q, p; q.run(); p.run(); print('end of main')"],
        cwd=build.folder,
        env={**environment, "PYTHONPATH": str(build.folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "use _Z8q_kernelPi: image" in done.stdout
    assert "use _Z8p_kernelPi: image" in done.stdout
    assert "none" not in done.stdout


@pytest.mark.parametrize("ptx", [False, True])
def test_wrappers_that_the_library_hides(build: HostBuild, ptx: bool) -> None:
    """All runs, but an image for other GPUs could not be made of PTX."""
    build.write(veil_map="{ local: __fatbinwrap*; };")
    code = ("-gencode=arch=compute_90,code=[sm_90,compute_90]",) if ptx else ()
    nvcc = oracle.toolchain().tool("nvcc")
    arch = code or ("-gencode=arch=compute_90,code=sm_90",)
    build.run(nvcc, *arch, "-rdc=true", "-Xcompiler", "-fPIC", "-c", "core.cu", "-o", "veiled.o")
    build.closed("libveiled.so", ["veiled.o"], "-Xlinker", "--version-script=veil.map")
    output, said = link_by(build, "nvcc", "p", "libveiled.so")
    assert ("'libveiled.so' hides '__fatbinwrap" in said) is ptx
    log = open_plugins(build, "local", output)[1]
    assert log.ended
    assert not log.lost_names
    assert log.text.count(": has") == 1


def test_what_nvlink_links_is_left_as_it_is(build: HostBuild) -> None:
    """Dead code may lack what it refers to; the library beside it changes no byte."""
    build.write(dead_cu="extern __device__ int core_add(int);\n"
                "__device__ int dead(int x) { return core_add(x); }\n"
                "__global__ void kernel() {}\nvoid host() { kernel<<<1, 1>>>(); }\n")  # fmt: skip
    build.compile("dead.cu", "-rdc=true")
    for words in (["dead.o"], ["dead.o", "libcore.so"], ["-L.", "dead.o", "-lcore"]):
        said = nvlink(build.folder, [f"-arch={ARCH}", *words, "--register-link-binaries=a"])
        assert pylink(build.folder, [f"-arch={ARCH}", *words, "--register-link-binaries=b"]) == said
        assert (build.folder / "a").read_bytes() == (build.folder / "b").read_bytes()


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> HostBuild:
    """What random programs share."""
    made = HostBuild(tmp_path_factory.mktemp("lending_programs"))
    lending_programs.prepare(made)
    return made


@pytest.mark.parametrize("seed", range(12))
def test_random_plugins(programs: HostBuild, seed: int) -> None:
    """What they need is on their lines, so each links; no use is lost without a warning."""
    program = lending_programs.draw(seed)
    said, log = lending_programs.run(programs, program)
    assert log is not None, said
    assert log.ended or log.lost_names, log.text
    if log.lost_names:
        assert "warning : " in said, program


def test_an_open_library_belongs_to_one_linker(build: HostBuild) -> None:
    """The limit that the page names: the second plugin's image waits for ever."""
    build.library("libopencore.so", ["core.o"])
    made = [link_by(build, "nvcc", name, "libopencore.so")[0] for name in "pq"]
    log = open_plugins(build, "local", *made)[1]
    assert [image for _, image in log.used if image.startswith("none")], log.text
