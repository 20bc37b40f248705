"""Register counts, stack and shared sizes, barriers and parameters are what the code uses.

The same is checked of every launch of `test_linked_programs.py`. Here each value is made wrong in
the file, and the fault has to be found.
"""

from __future__ import annotations

import functools
import struct

import pytest
from helpers import oracle

from emulator import attributes
from emulator.audit import findings
from emulator.cubin import HEADER, SECTION, Cubin
from emulator.errors import Fault
from emulator.grid import Grid
from emulator.launching import ARCHS, link_both
from emulator.load import Loaded
from emulator.program import Program

pytestmark = oracle.needs_oracle

SOURCE = """
__device__ __noinline__ int deep(int x, int *p) {
    int a[16];
    for (int i = 0; i < 16; i++) a[i] = p[i] + x;
    asm volatile("bar.sync 2;");
    return a[p[0] & 15] + a[x & 15];
}
extern "C" __global__ void k(int *p, int n, long long m) {
    __shared__ int s[64];
    s[threadIdx.x] = deep(n, p);
    __syncthreads();
    p[threadIdx.x] = s[threadIdx.x ^ 1] + (int)m;
}
"""


@functools.cache
def images(arch: str) -> tuple[bytes, ...]:
    return tuple(link_both([oracle.compile(SOURCE, arch)], arch))


def launched(image: bytes, arch: str) -> Grid:
    loaded = Loaded(image, arch)
    data = loaded.memory.place(struct.pack("<64i", *range(64)))
    grid = Grid(
        Program(loaded), "k", block=(64, 1, 1), parameters=struct.pack("<Qi4xq", data, 3, 7)
    )
    grid.run()
    expected = [(0 + 3) + (3 + 3) + 7] * 64
    assert list(struct.unpack("<64i", loaded.memory.read(data, 256))) == expected
    return grid


@pytest.mark.parametrize("arch", ARCHS)
def test_what_a_launch_uses_is_in_the_file(arch: str) -> None:
    for image in images(arch):
        grid = launched(image, arch)
        assert findings(grid) == []
        assert grid.usage.barriers == grid.info.barriers == 3
        assert grid.usage.parameters == {0, 4, 8, 16} | grid.usage.parameters & {20}
        assert 0 < grid.usage.stack <= (grid.info.min_stack or 0)
        assert 8 < grid.usage.registers <= (grid.info.registers or 0)


def with_value(image: bytes, number: int, change: int) -> bytes:
    """The image with the value of the kernel's attribute changed by so much."""
    cubin = Cubin(image)
    own = cubin.by_name[".nv.info.k"]
    table = HEADER.unpack_from(image)[6]
    data = bytearray(image)
    for section in (cubin.by_name[".nv.info"], own):
        offset = SECTION.unpack_from(image, table + section.index * SECTION.size)[4]
        at = offset
        for record in cubin.attributes(section):
            short = record.number in (attributes.NUM_BARRIERS, attributes.CBANK_PARAM_SIZE)
            if record.number == number and short:
                value = struct.unpack_from("<H", data, at + 2)[0]
                struct.pack_into("<H", data, at + 2, value + change)
            elif record.number == number == attributes.PARAM_CBANK:
                word = struct.unpack_from("<I", data, at + 8)[0]
                struct.pack_into("<I", data, at + 8, word + change)
            elif record.number == number and section is own:
                word = struct.unpack_from("<I", data, at + 12)[0]  # of KPARAM_INFO
                struct.pack_into("<I", data, at + 12, word + (change << 18))
            elif record.number == number and cubin.symbols[record.words()[0]].name == "k":
                value = struct.unpack_from("<I", data, at + 8)[0]
                struct.pack_into("<I", data, at + 8, value + change)
            at += 4 if short or data[at] in (1, 2, 3) else 4 + len(record.value)
    assert data != image
    return bytes(data)


FAULTS = {
    "REGCOUNT": (attributes.REGCOUNT, -16),
    "NUM_BARRIERS": (attributes.NUM_BARRIERS, -1),
    "CBANK_PARAM_SIZE": (attributes.CBANK_PARAM_SIZE, 4),
    "KPARAM_INFO": (attributes.KPARAM_INFO, -4),
    "PARAM_CBANK": (attributes.PARAM_CBANK, 8),
    "PARAM_CBANK has room": (attributes.PARAM_CBANK, -4 << 16),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("arch", ARCHS)
def test_planted_values_are_found(arch: str, fault: str) -> None:
    grid = launched(with_value(images(arch)[1], *FAULTS[fault]), arch)
    assert any(fault in finding for finding in findings(grid))


@pytest.mark.parametrize("arch", ARCHS)
def test_a_stack_that_is_too_small_is_found(arch: str) -> None:
    with pytest.raises(Fault, match=r"\d+ bytes of stack used, \d+ available"):
        launched(with_value(images(arch)[1], attributes.MIN_STACK_SIZE, -16), arch)


@pytest.mark.parametrize("arch", ARCHS)
def test_shared_memory_that_is_too_small_is_found(arch: str) -> None:
    image = bytearray(images(arch)[1])
    section = Cubin(bytes(image)).by_name[".nv.shared.k"]
    row = HEADER.unpack_from(image)[6] + section.index * SECTION.size
    struct.pack_into("<Q", image, row + 32, section.size - 16)
    with pytest.raises(Fault, match="shared memory"):
        launched(bytes(image), arch)
