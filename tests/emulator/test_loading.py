"""Decoding and loading: operands, distances, control bits, relocations, attributes."""

from __future__ import annotations

import struct

import pytest
from helpers import oracle

from emulator import relocations
from emulator.decode import CONTROL_MASK, Decoder
from emulator.errors import Fault, Unsupported
from emulator.load import Loaded
from emulator.memory import GLOBAL_HIGH, GlobalMemory
from emulator.operands import (
    ZERO,
    Address,
    Constant,
    Float,
    Immediate,
    Register,
    Special,
    Target,
    parse,
    split,
)

OPERANDS = {
    "R12": Register("R", 12),
    "-RZ": Register("R", ZERO, "-"),
    "~R4": Register("R", 4, "~"),
    "-|R4|.H0_H0": Register("R", 4, "-|", ("H0_H0",)),
    "R7.reuse": Register("R", 7),
    "!UP3": Register("UP", 3, "!"),
    "PT": Register("P", ZERO),
    "B6": Register("B", 6),
    "SB0": Register("SB", 0),
    "-0x10": Immediate(-16),
    "+INF ": Float("+INF"),
    "1.80143985094819840000e+16": Float("1.80143985094819840000e+16"),
    "c[0x3][0x128]": Constant(3, None, 0x128),
    "-c[0x0][R4+-0x8]": Constant(0, Register("R", 4), -8, "-"),
    "cx[UR4][0x10]": Constant(Register("UR", 4), None, 16),
    "[R2.64+UR4+0x20]": Address(Register("R", 2, "", ("64",)), Register("UR", 4), 32),
    "desc[UR6][R2.64+-0x4]": Address(Register("R", 2, "", ("64",)), None, -4, Register("UR", 6)),
    "[0x40]": Address(None, None, 64),
    "R4 -0x50": Target(Register("R", 4), -0x50),
    "SR_TID.X": Special("SR_TID.X"),
}


@pytest.mark.parametrize("text", OPERANDS)
def test_operands_are_parsed(text: str) -> None:
    assert parse(text) == OPERANDS[text]


@pytest.mark.parametrize("text", ["R12Q", "[R1-R2]", "tmem[UR4]", "{R0, R1}"])
def test_unknown_operands_are_named(text: str) -> None:
    with pytest.raises(Unsupported, match=r"operand|address"):
        parse(text)


def test_commas_in_brackets_do_not_separate() -> None:
    assert split("P0, [R1, R2], 0x1") == ["P0", " [R1, R2]", " 0x1"]


def test_relocations_patch_their_fields_only() -> None:
    kind = relocations.KINDS[75]
    ones = (1 << 128) - 1
    patched = relocations.patch(kind, ones, 0x3_0000_1230)
    assert patched >> 16 & 0xFF == 0x3_0000_1230 >> 2 & 0xFF
    assert patched >> 34 & (1 << 47) - 1 == 0x3_0000_1230 >> 10
    assert patched | 0xFF << 16 | ((1 << 47) - 1) << 34 == ones
    assert relocations.stored_value(kind, patched) == 0x3_0000_1230


def test_global_memory_ends_where_its_allocations_do() -> None:
    memory = GlobalMemory(1 << 16)
    first, second = memory.allocate(100), memory.allocate(4)
    memory.write(first, bytes(100))
    assert first >> 32 == GLOBAL_HIGH
    assert memory.read(first + 96, 4) == bytes(4)
    for address, size in ((first, 101), (first - 4, 4), (second + 4, 4)):
        with pytest.raises(Fault):
            memory.read(address, size)
    memory.free(second)
    with pytest.raises(Fault):
        memory.read(second, 4)
    with pytest.raises(Fault):
        memory.free(second)


SOURCE = """
__device__ int table[4] = {1, 2, 3, 4};
__device__ __noinline__ int twice(int a, int *p) { return p[a] * 2 + a; }
typedef int (*F)(int, int *);
__device__ F pointers[1] = {twice};
extern "C" __global__ void k(int *p, int n)
{
    for (int i = 0; i < n; i++) p[i] = pointers[p[i] & 0](table[i & 3], p);
    __syncthreads();
}
"""


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["80", "86", "89", "90a", "100", "103", "120"])
def test_a_linked_program_is_loaded(arch: str) -> None:
    linked = oracle.link([oracle.compile(SOURCE, arch)], arch)
    assert linked.image is not None
    loaded = Loaded(linked.image, arch)
    address, size = loaded.variables["table"]
    assert struct.unpack("<4i", loaded.memory.read(address, size)) == (1, 2, 3, 4)
    pointer, size = loaded.variables["pointers"]
    name = "_Z5twiceiPi"
    assert struct.unpack("<Q", loaded.memory.read(pointer, size)) == (loaded.functions[name],)
    info = loaded.info["k"]
    assert sorted((parameter.offset, parameter.size) for parameter in info.parameters) == [
        (0, 8),
        (8, 4),
    ]
    assert info.barriers == 1
    assert info.parameter_offset == loaded.layout.parameters
    code = loaded.instructions
    assert all(loaded.instruction(address) == code[address] for address in code)
    targets = [instruction.target() for instruction in code.values() if instruction.opcode == "BRA"]
    assert targets
    assert all(target in code for target in targets)
    assert any(
        instruction.write_scoreboard is not None
        for instruction in code.values()
        if instruction.opcode == "LDG"
    )
    exits = [instruction for instruction in code.values() if instruction.opcode == "EXIT"]
    assert exits
    assert loaded.text_of(exits[-1].address).name == "k"
    with pytest.raises(Fault, match="no code"):
        loaded.instruction(max(code) + 16)
    assert Decoder.of(arch).instruction(exits[0].encoding & ~CONTROL_MASK, 0).text == exits[0].text
