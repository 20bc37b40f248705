"""Plugins that borrow device code of a closed library compute on a GPU what it does.

State is copied: what the library's host code writes is seen by the library's kernels alone, unless
a plugin is given the address.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from gpu.device import Gpu, needs_gpu
from helpers import oracle

from pylink.command.overlay import make_overlay

pytestmark = [
    needs_gpu,
    pytest.mark.skipif(oracle.find() is None, reason="needs nvcc: pip install '.[oracle]'"),
]

CORE = """\
__device__ int base = 1;
__constant__ int table[2] = {10, 20};
__device__ int core_value(int x) { return base + table[x]; }
__device__ int core_read(const int *p) { return *p; }
__global__ void core_kernel(int *p) { *p = core_value(0); }
int core_run()
{
    int *p, value;
    cudaMalloc(&p, 4);
    core_kernel<<<1, 1>>>(p);
    cudaError_t status = cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost);
    return status ? -(int)status : value;
}
void core_set(int value) { cudaMemcpyToSymbol(base, &value, 4); }
int *core_base() { void *p; cudaGetSymbolAddress(&p, base); return (int *)p; }
"""
PLUGIN = """\
extern __device__ int core_value(int);
extern __device__ int core_read(const int *);
int *core_base();
__global__ void NAME_kernel(int *p, const int *base)
{
    p[0] = core_value(1) + NUMBER;
    p[1] = core_read(base);
}
extern "C" void run(int *values)
{
    int *p;
    cudaMalloc(&p, 8);
    NAME_kernel<<<1, 1>>>(p, core_base());
    cudaError_t status = cudaMemcpy(values, p, 8, cudaMemcpyDeviceToHost);
    if (status) values[0] = values[1] = -(int)status;
}
"""
LOADER = """\
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
int core_run();
void core_set(int);
int main(int count, char **words)
{
    int scope = std::strcmp(words[1], "global") ? RTLD_LOCAL : RTLD_GLOBAL;
    core_set(5);
    std::printf("%d\\n", core_run());
    for (int i = 2; i < count; ++i) {
        void *plugin = dlopen(words[i], RTLD_NOW | scope);
        if (!plugin) { std::puts(dlerror()); return 1; }
        int values[2];
        ((void (*)(int *))dlsym(plugin, "run"))(values);
        std::printf("%d %d\\n", values[0], values[1]);
    }
}
"""
# The program writes 5 to `base`, of which plugins have copies that are still 1.
EXPECTED = ["15", "121 5", "221 5"]


def run(folder: Path, *words: str) -> str:
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{folder}:{folder}/toolkit/lib64"}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed library, an archive of its module, and the program that opens plugins."""
    made = tmp_path_factory.mktemp("plugins")
    make_overlay(str(made / "toolkit"), str(oracle.toolchain().bin.parent))
    (made / "core.cu").write_text(CORE)
    (made / "loader.cc").write_text(LOADER)
    for number, name in enumerate("pq", 1):
        text = PLUGIN.replace("NAME", name).replace("NUMBER", str(100 * number))
        (made / f"{name}.cu").write_text(text)
    for name in ("core", "p", "q"):
        run(made, *nvcc(), "-dc", f"{name}.cu", "-o", f"{name}.o")
    run(made, "ar", "rcs", "libcore_nv.a", "core.o")
    run(made, *nvcc(), "-shared", "core.o", "-o", "libcore.so")
    run(made, *nvcc(), "loader.cc", "-L.", "-lcore", "-ldl", "-o", "loader")
    return made


def nvcc() -> list[str]:
    gpu = Gpu()
    words = ["toolkit/bin/nvcc", f"-arch=sm_{gpu.major}{gpu.minor}", "-rdc=true"]
    return [*words, "-cudart", "shared", "-Xcompiler", "-fPIC"]


@pytest.mark.parametrize("scope", ["local", "global"])
@pytest.mark.parametrize("files", ["-lcore", "-lcore libcore_nv.a"])
def test_plugins_compute_with_the_code_of_the_library(folder: Path, scope: str, files: str) -> None:
    for name in "pq":
        words = ("-shared", f"{name}.o", "-L.", *files.split(), "-o", f"{name}.so")
        said = run(folder, *nvcc(), *words)
        assert "'base' of" in said
    assert run(folder, "./loader", scope, "./p.so", "./q.so").splitlines() == EXPECTED
