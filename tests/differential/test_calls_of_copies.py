"""Calls of copies of one function, and `mbarrier` objects that kernels reach: equal nvlink's."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare

from pylink.command.cli import main

pytestmark = oracle.needs_oracle

# The copy with BIG needs more registers: later ones replace it. Both call g1 and g2.
COPIES = """\
inline __device__ __noinline__ int g(int *p, int x) { return p[x] * 3; }
inline __device__ __noinline__ int g1(int *p, int x) { return p[x] * 5; }
inline __device__ __noinline__ int g2(int *p, int x) { return p[x] * 7; }
inline __device__ __noinline__ int f(int *p, int x) {
#ifdef BIG
  volatile int *v = p; int r[40];
  #pragma unroll
  for (int i = 0; i < 40; i++) r[i] = v[i];
  #pragma unroll
  for (int i = 0; i < 40; i++) v[i] = r[39 - i];
  x += g1(p, x); x += g2(p, x); return g(p, x + 1) * 3 + x;
#else
  x += g2(p, x); x += g1(p, x); return x;
#endif
}
inline __device__ __noinline__ int h(int *p, int x) {  // one call in each copy
#ifdef BIG
  volatile int *v = p; int r[40];
  #pragma unroll
  for (int i = 0; i < 40; i++) r[i] = v[i];
  #pragma unroll
  for (int i = 0; i < 40; i++) v[i] = r[39 - i];
#endif
  return g(p, x) + x;
}
__global__ void KERNEL(int *p) { p[0] = f(p, 3) ^ h(p, 4); }
"""
HEAD = ".version 8.8\n.target sm_90\n.address_size 64\n"
USE = "mbarrier.init.shared.b64 [{0}], 32; mbarrier.arrive.shared.b64 %rd1, [{0}];"
BARRIERS = (
    "".join(f".shared .align 8 .b64 b{i};\n" for i in range(3))
    + ".visible .func f() { .reg .b64 %rd<3>; "
    + USE.format("b0")
    + USE.format("b1")
    + " ret; }\n.visible .func g() { .reg .b64 %rd<3>; "
    + USE.format("b2")
    + " ret; }\n"
)
KERNELS = (
    ".extern .func f(); .extern .func g();\n.shared .align 8 .b64 c0;\n"
    ".visible .entry k0() { call f, (); ret; }\n"
    ".visible .entry k1() { call g, (); call f, (); ret; }\n"
    ".visible .entry k2() { .reg .b64 %rd<3>; "
    + USE.format("c0")
    + " call g, (); call f, (); ret; }\n"
)


def differences(folder: Path, arch: str, options: list[str]) -> list[str]:
    argv = [f"-arch=sm_{arch}", *options, "m0.cubin", "m1.cubin", "-o", "out.cubin"]
    expected = oracle.run_nvlink(argv, folder, "out.cubin").image
    assert expected is not None
    assert main(argv) == 0
    return compare(Path("out.cubin").read_bytes(), expected)


@pytest.mark.parametrize("options", [[], ["-r"]], ids=str)
@pytest.mark.parametrize("arch", ["80", "100"])
def test_copies_that_call_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, head in enumerate(("#define BIG\n#define KERNEL k0\n", "#define KERNEL k1\n")):
        image = oracle.compile(head + COPIES, arch, name=f"m{number}.cu")
        Path(f"m{number}.cubin").write_bytes(image)
    assert differences(tmp_path, arch, options) == []


@pytest.mark.parametrize("options", [[], ["-r"], ["--kernels-used=k1"]], ids=str)
@pytest.mark.parametrize("arch", ["90", "100"])
def test_barrier_objects_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate((BARRIERS, KERNELS)):
        image = oracle.compile(HEAD + text, arch, name=f"m{number}.ptx")
        Path(f"m{number}.cubin").write_bytes(image)
    assert differences(tmp_path, arch, options) == []
