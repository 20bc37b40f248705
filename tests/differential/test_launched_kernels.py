"""Kernels that only device code launches: kept with what they call, as nvlink keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare
from helpers.fatbin_builder import SEGMENT, container, entry, host_object

from pylink.command.cli import main

pytestmark = oracle.needs_oracle
KERNELS = """
extern __device__ int first(int), second(int), third(int);
__device__ void *slot;
__device__ int out;
__global__ void child(int n) { out = first(n); }
__global__ void childless(int n) { out = second(n); }
__device__ __noinline__ int pointed(int n) { return third(n); }
__global__ void parent(int n) { slot = (void *)child; }
__global__ void unused(int n) { slot = (void *)childless; }
__global__ void taker(int n) { slot = (void *)pointed; }
"""
FUNCTIONS = """
__device__ int first(int n) { return n * n + 1; }
__device__ int second(int n) { return n * n + 2; }
__device__ int third(int n) { return n * n + 3; }
"""
USED = b"_Z6parenti*\0_Z5takeri*\0"


def hosted(image: bytes, arch: str, used: bytes) -> bytes:
    number = int(arch.rstrip("a"))
    sections = [("__nv_relfatbin", container(entry(image, number))), SEGMENT]
    return host_object([*sections, (".nvHRKE", used), (".nvHRKI", b"\0")])


@pytest.mark.parametrize("arch", ["75", "90a", "100"])
@pytest.mark.parametrize(
    "option",
    ["host lists", "--kernels-used=parent,taker", "--kernels-used=taker", "--variables-used=out"],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_launched_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, option: str, backwards: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for name, text, used in (("kernels", KERNELS, USED), ("functions", FUNCTIONS, b"\0")):
        image = oracle.compile(text, arch, name=f"{name}.cu")
        if option == "host lists":
            image = hosted(image, arch, used)
        Path(f"{name}.o").write_bytes(image)
        names.append(f"{name}.o")
    options = [] if option == "host lists" else [option]
    order = names[::-1] if backwards else names
    argv = [f"-arch=sm_{arch}", *options, *order, "-o", "out.cubin"]
    expected = oracle.run_nvlink(argv, tmp_path, "out.cubin").image
    assert expected is not None
    assert main(argv) == 0
    linked = Path("out.cubin").read_bytes()
    # With a single kernel selected, what others call is gone, even if device code launches them.
    assert (b"_Z5firsti\0" in linked) == (option != "--kernels-used=taker")
    assert compare(linked, expected) == []


TAKERS = """
extern __global__ void far(int n), near(int n), middle(int n);
__device__ void *slots[4];
__global__ void a(int n) { slots[0] = (void *)far; slots[1] = (void *)near; }
__global__ void z(int n) { slots[2] = (void *)middle; slots[3] = (void *)far; }
"""
TAKEN = """
__device__ int out;
__global__ void near(int n) { out = n; }
__global__ void far(int n) { out = n * n; }
__global__ void middle(int n) { out = n / 2; }
"""


@pytest.mark.parametrize("arch", ["75", "90a", "100"])
@pytest.mark.parametrize("backwards", [False, True])
def test_kernels_that_are_named_before_they_are_defined(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arch: str,
    backwards: bool,
) -> None:
    """-v lists kernels in the order in which their code came to life."""
    monkeypatch.chdir(tmp_path)
    names = []
    for name, text in (("takers", TAKERS), ("taken", TAKEN)):
        Path(f"{name}.cubin").write_bytes(oracle.compile(text, arch, name=f"{name}.cu"))
        names.append(f"{name}.cubin")
    argv = [f"-arch=sm_{arch}", "-v", *(names[::-1] if backwards else names), "-o", "out.cubin"]
    expected = oracle.run_nvlink(argv, tmp_path, "out.cubin")
    capfd.readouterr()
    assert main(argv, tool="nvlink") == 0
    said = capfd.readouterr()
    assert said.out + said.err == expected.stdout + expected.stderr
    assert "far" in said.out + said.err
