"""What kernels say of the barriers in shared memory that their functions use equals nvlink's."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from helpers import oracle
from helpers.compare import compare

from pylink.command.cli import main

pytestmark = oracle.needs_oracle

ATTRIBUTE = 0x38  # NUM_MBARRIERS
UNKNOWN = 0xFFFF

HEAD = """
__device__ __forceinline__ unsigned place(unsigned long long *b) {
    return (unsigned)__cvta_generic_to_shared(b);
}
#define INIT(b) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" :: "r"(place(b)))
#define ARRIVE(b) asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" \\
                               :: "r"(place(b)))
extern __device__ void both(unsigned long long *b);
extern __device__ void print(unsigned long long *b);
"""
KERNELS = (
    HEAD
    + """
__device__ __noinline__ void arrive(unsigned long long *b) { ARRIVE(b); }
extern "C" __global__ void own(int *o) {
    __shared__ unsigned long long b[3];
    INIT(b); INIT(b + 1); both(b); print(b + 2); *o = b[0];
}
extern "C" __global__ void calls(int *o) {
    __shared__ unsigned long long b[3];
    print(b + 2); *o = b[0];
}
extern "C" __global__ void arrives(int *o) {
    __shared__ unsigned long long b[3];
    arrive(b); *o = b[0];
}
extern "C" __global__ void none(int *o) { *o = 1; }
"""
)
PRINT = (
    "#include <cstdio>\n"
    + HEAD
    + """
__device__ void print(unsigned long long *b) {
    printf("x"); INIT(b); both(b); both(b + 1); __syncthreads(); printf("y");
}
"""
)
BOTH = HEAD + "__device__ void both(unsigned long long *b) { INIT(b); ARRIVE(b); }\n"


def with_count(cubin: bytes, count: int) -> bytes:
    """The cubin whose functions all have that number of barriers."""
    data = bytearray(cubin)
    for section in ELFFile(io.BytesIO(cubin)).iter_sections():
        if not section.name.startswith((".nv.info.", ".nv.merc.nv.info.")):
            continue
        at = section["sh_offset"]
        end = at + section["sh_size"]
        while at < end:
            form, attribute, size = struct.unpack_from("<BBH", data, at)
            if attribute == ATTRIBUTE:
                struct.pack_into("<H", data, at + 2, count)
            at += 4 + (size if form == 4 else 0)
    return bytes(data)


def differences(arch: str, cubins: list[bytes], options: list[str], folder: Path) -> list[str]:
    names = []
    for number, cubin in enumerate(cubins):
        names.append(str(folder / f"m{number}.cubin"))
        Path(names[-1]).write_bytes(cubin)
    expected = oracle.link(cubins, arch, options).image
    assert expected is not None
    output = folder / "out.cubin"
    assert main([f"-arch=sm_{arch}", *options, *names, "-o", str(output)]) == 0
    return compare(output.read_bytes(), expected)


@pytest.mark.parametrize(
    "options",
    ["", "-r", "-g", *(f"--kernels-used={k}" for k in ("own", "calls", "arrives", "none"))],
)
@pytest.mark.parametrize("arch", ["80", "90", "100"])
def test_number_of_barriers(tmp_path: Path, arch: str, options: str) -> None:
    cubins = [oracle.compile(text, arch) for text in (KERNELS, PRINT, BOTH)]
    for order in (cubins, cubins[::-1]):
        assert differences(arch, order, options.split(), tmp_path) == []


@pytest.mark.parametrize("counts", [(1, UNKNOWN), (UNKNOWN, 2), (0x8000, 0x8001), (0x7FFF, 0x7FFF)])
@pytest.mark.parametrize("arch", ["90", "100"])
def test_numbers_that_do_not_fit(tmp_path: Path, arch: str, counts: tuple[int, int]) -> None:
    kernels = oracle.compile(KERNELS, arch)
    functions = [oracle.compile(text, arch) for text in (PRINT, BOTH)]
    edited = [with_count(c, n) for c, n in zip(functions, counts, strict=True)]
    assert edited != functions
    assert differences(arch, [kernels, *edited], [], tmp_path) == []
