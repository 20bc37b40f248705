"""Programs linked with the device library of NVSHMEM equal nvlink's."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest
from helpers import oracle
from helpers.compare import compare

from pylink.command.cli import main

# The PTX of one arch runs on all later ones; the headers take the compiler most of the time.
PTX = "80"
ARCHS = ("80", "90", "100")

PUT = """
#include <nvshmem.h>
#include <nvshmemx.h>
extern __device__ int fetched(int *d, int pe);
extern "C" __global__ void ring(int *d, uint64_t *signal) {
    int to = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    nvshmem_int_p(d, fetched(d, to), to);
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, to);
    nvshmem_quiet();
}
extern "C" __global__ void get(int *d, const int *s, int pe) { nvshmem_getmem(d, s, 64, pe); }
"""
FETCH = """
#include <nvshmem.h>
__device__ int fetched(int *d, int pe) {
    return nvshmem_int_atomic_fetch_add(d, 3, pe) + nvshmem_double_g((double *)d, pe);
}
extern "C" __global__ void swap(unsigned long long *u, int pe) {
    u[1] = nvshmem_ulonglong_atomic_compare_swap(u, 1, 2, pe);
}
"""


def package() -> Path | None:
    """The folder of the library's headers and archive in the wheel, or None."""
    site = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}
    for root in sorted(filter(None, site)):
        folder = Path(root) / "nvidia/nvshmem"
        if (folder / "lib/libnvshmem_device.a").is_file():
            return folder
    return None


FOUND = package()
pytestmark = [
    oracle.needs_oracle,
    pytest.mark.skipif(FOUND is None, reason="needs nvidia-nvshmem-cu13: pip install '.[oracle]'"),
]


def program(arch: str) -> list[bytes]:
    """The two cubins of the program."""
    flags = ["-I", str(FOUND / "include")] if FOUND else []
    # Internal names are made from that of the source.
    sources = {"put.cu": PUT, "fetch.cu": FETCH}
    texts = [oracle.compile_ptx(text, PTX, flags, name=name) for name, text in sources.items()]
    return [oracle.assemble(text, arch) for text in texts]


@pytest.mark.parametrize("options", ["", "--kernels-used=swap", "-r"])
@pytest.mark.parametrize("arch", ARCHS)
def test_links_equal_nvlinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arch: str, options: str
) -> None:
    assert FOUND
    monkeypatch.chdir(tmp_path)
    names = ["put.cubin", "fetch.cubin"]
    for name, image in zip(names, program(arch), strict=True):
        Path(name).write_bytes(image)
    inputs = [*names, str(FOUND / "lib/libnvshmem_device.a")]
    argv = [f"-arch=sm_{arch}", *options.split(), *inputs, "-o", "out.cubin"]
    expected = oracle.run_nvlink(argv, tmp_path, "out.cubin").image
    assert expected is not None
    Path("out.cubin").unlink()
    assert main(argv) == 0
    assert compare(Path("out.cubin").read_bytes(), expected) == []
