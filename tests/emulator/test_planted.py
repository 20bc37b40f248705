"""Faults planted in an executable: each is found, by what runs or by what the file says of it.

Relocations that the driver applies, words of constant banks, entries of jump tables and of tables
of functions. Every one of them matters to the result of the kernel. `test_attributes.py` has the
values for the driver, `hazards/test_waits.py` waits.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator

import pytest
from helpers import oracle

from emulator.audit import findings
from emulator.cubin import HEADER, SECTION, SHT_RELA, Cubin, Section
from emulator.errors import BadImage, Fault, Unsupported
from emulator.grid import Grid
from emulator.load import Loaded
from emulator.program import Program
from emulator.relocations import MARKS
from emulator.rows import LANES, MASK, assembled, compiled, ours

pytestmark = oracle.needs_oracle
ARCHS = pytest.mark.parametrize("arch", ["75", "80", "90a", "100", "103", "120"])

TABLES = """
typedef unsigned u;
typedef u (*F)(u);
__device__ __noinline__ u first(u x) { return x * 3u + 1u; }
__device__ __noinline__ u second(u x) { return x ^ 0x5a5au; }
__device__ __noinline__ u third(u x) { return x * x + 7u; }
__device__ u one[2] = {11, 12};
__device__ u two[2] = {21, 22};
__device__ F in_global[3] = {first, second, third};
__constant__ F in_constant[3] = {third, first, second};
__constant__ u *places[2] = {one + 1, two};
__constant__ u numbers[8] = {2, 3, 5, 7, 11, 13, 17, 19};
"""
# The compiler makes a table of this, whatever the cases are.
JUMPS = """
.visible .func (.param .b32 r) _Z6chosenj(.param .b32 a) {
    .reg .b32 %x, %i;
    ld.param.b32 %x, [a];
    and.b32 %i, %x, 7;
t: .branchtargets L0, L1, L2, L3, L4, L5, L6, L7;
    brx.idx %i, t;
L0: add.u32 %x, %x, 3; bra E;
L1: mul.lo.u32 %x, %x, 5; bra E;
L2: xor.b32 %x, %x, 0x3c; bra E;
L3: sub.u32 %x, %x, 9; bra E;
L4: shl.b32 %x, %x, 1; or.b32 %x, %x, 1; bra E;
L5: not.b32 %x, %x; bra E;
L6: div.u32 %x, %x, 3; bra E;
L7: mul.lo.u32 %x, %x, %x;
E:  st.param.b32 [r], %x;
    ret;
}
"""
KERNEL = """
typedef unsigned u;
typedef u (*F)(u);
extern __device__ F in_global[3];
extern __constant__ F in_constant[3];
extern __constant__ u *places[2];
extern __constant__ u numbers[8];
extern __device__ u chosen(u);
extern "C" __global__ void k(u *p) {
    u i = threadIdx.x;
    u r = in_global[i % 3](i) + in_constant[i % 3](i) * 31u;
    r += *places[i & 1] * 1009u + numbers[i & 7] * 100003u;
    p[i] = r * 7u + chosen(i);
}
"""


def expected() -> list[int]:
    functions = (lambda x: x * 3 + 1, lambda x: x ^ 0x5A5A, lambda x: x * x + 7)
    numbers = (2, 3, 5, 7, 11, 13, 17, 19)
    values = []
    for i in range(LANES):
        r = functions[i % 3](i) + functions[(i + 2) % 3](i) * 31
        r += (21 if i & 1 else 12) * 1009 + numbers[i & 7] * 100003
        cases = (i + 3, i * 5, i ^ 0x3C, i - 9, i << 1 | 1, ~i, i // 3, i * i)
        values.append(r * 7 + cases[i & 7] & MASK)
    return values


@functools.cache
def linked(arch: str) -> bytes:
    return ours([*compiled([TABLES, KERNEL], arch), assembled(JUMPS, arch)], arch)


def found(image: bytes, arch: str) -> list[str]:
    """What is wrong with an image: of the load, the run, the result, or what the file says."""
    try:
        loaded = Loaded(image, arch)
        data = loaded.memory.place(bytes(4 * LANES))
        parameters = struct.pack("<Q", data)
        grid = Grid(Program(loaded), "k", parameters=parameters, instructions=50_000)
        grid.run()
    except (BadImage, Fault, Unsupported) as error:
        return [str(error)]
    left = list(struct.unpack(f"<{LANES}I", loaded.memory.read(data, 4 * LANES)))
    return findings(grid) + ([] if left == expected() else ["result"])


def in_memory(image: bytes, arch: str) -> tuple[object, ...] | None:
    """What a launch sees of an image. Several symbols have the same upper half of an address."""
    try:
        loaded = Loaded(image, arch)
    except (BadImage, Unsupported):
        return None
    return bytes(loaded.code), loaded.memory.bytes.tobytes(), loaded.banks


def place(image: bytes, section: Section) -> int:
    """Where a section's bytes are in the file."""
    row = HEADER.unpack_from(image)[6] + section.index * SECTION.size
    return int(SECTION.unpack_from(image, row)[4])


def changed(image: bytes, at: int, data: bytes) -> bytes:
    return image[:at] + data + image[at + len(data) :]


def relocations(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Each one left out, of another symbol, elsewhere, and with another addend where it has one."""
    cubin = Cubin(image)
    functions = [s.index for s in cubin.symbols if s.name in ("_Z5firstj", "_Z6secondj")]
    variables = [s.index for s in cubin.symbols if s.name in ("one", "two")]
    for section in cubin.sections:
        if not section.name.startswith((".rel.", ".rela.")) or "debug" in section.name:
            continue
        size = 24 if section.type == SHT_RELA else 16
        for number, relocation in enumerate(cubin.relocations(section)):
            if relocation.type in MARKS:
                continue
            at = place(image, section) + number * size
            name = f"{section.name}[{number}]"
            kind = functions if relocation.symbol.index in functions else variables
            other = next(index for index in kind if index != relocation.symbol.index)
            yield f"{name} goes", changed(image, at + 8, struct.pack("<Q", 0))
            yield (
                f"{name} of another symbol",
                changed(image, at + 8, struct.pack("<II", relocation.type, other)),
            )
            yield f"{name} elsewhere", changed(image, at, struct.pack("<Q", relocation.offset + 4))
            if size == 24:
                addend = struct.pack("<q", (relocation.addend or 0) + 16 + (1 << 40))
                yield f"{name} with another addend", changed(image, at + 16, addend)


def constants(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Each number of a constant variable, and the size of the bank of parameters."""
    cubin = Cubin(image)
    bank = cubin.by_name[".nv.constant3"]
    [numbers] = [symbol for symbol in cubin.symbols if symbol.name == "numbers"]
    for index in range(numbers.size // 4):
        at = place(image, bank) + numbers.value + 4 * index
        yield f"number {index}", changed(image, at, bytes([image[at] ^ 0x40]))
    own = cubin.by_name[".nv.constant0.k"]
    row = HEADER.unpack_from(image)[6] + own.index * SECTION.size
    for size in (own.size - 4, own.size - 8):
        yield f"bank 0 has {size} bytes", changed(image, row + 32, struct.pack("<Q", size))


def jumps(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Each entry of the jump table that of another case."""
    cubin = Cubin(image)
    pool = cubin.by_name[".nv.constant2.k"]
    words = struct.unpack(f"<{pool.size // 4}I", pool.data)
    for index, word in enumerate(words):
        other = next(each for each in words if each != word)
        at = place(image, pool) + 4 * index
        yield f"entry {index}", changed(image, at, struct.pack("<I", other))


PLANTED = {"relocations": (relocations, 8), "banks": (constants, 10), "tables": (jumps, 7)}


@ARCHS
@pytest.mark.parametrize("kind", PLANTED)
def test_planted_faults_are_found(arch: str, kind: str) -> None:
    image = linked(arch)
    assert found(image, arch) == []
    plant, least = PLANTED[kind]
    whole = in_memory(image, arch)
    planted = [(name, mutant) for name, mutant in plant(image) if in_memory(mutant, arch) != whole]
    assert len(planted) >= least
    assert [name for name, mutant in planted if not found(mutant, arch)] == []
