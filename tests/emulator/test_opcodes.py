"""Each opcode against values computed apart."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from emulator.build import Build
from emulator.decode import _instruction
from emulator.errors import Unsupported
from emulator.machine import Fragment, Step, Warp
from emulator.opcodes import ROWS
from emulator.semantics.table import OPCODES
from emulator.wrapping import guarded

LANES = 32
ROUNDS = 12

# Values where integers, floats and halves have their edges.
EDGES = (
    0,
    1,
    2,
    3,
    31,
    32,
    33,
    63,
    64,
    0x7F,
    0x80,
    0xFF,
    0xFFFF,
    0x8000,
    0x7FFF,
    0x10000,
    0x7FFFFFFF,
    0x80000000,
    0x80000001,
    0xFFFFFFFF,
    0xFFFFFFFE,
    0xAAAAAAAA,
    0x12345678,
    0x3F800000,
    0xBF800000,
    0x3F800001,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x00800000,
    0x00000001,
    0x007FFFFF,
    0x7F7FFFFF,
    0x4F000000,
    0xCF000000,
    0x4F800000,
    0x5F000000,
    0x3FF00000,
    0x7FF00000,
    0xFFF00000,
    0x00100000,
    0x43E00000,
    0x3C003C00,
    0x7C00FC00,
    0x04000001,
    0x03FF7BFF,
    0x3FC03F80,
    0x40490FDB,
    0xC0490FDB,
    0x3EAAAAAB,
    0x33800000,
)


# As bfloat16: 7 and 37, whose product lies between two neighbours, and a little less than nothing.
TIE = (0x40E040E0, 0x42144214, 0xA180A180)


class _Grid:
    """As much of a grid as one instruction on registers needs."""

    block_size = (LANES, 1, 1)
    local_size = stack_size = 16


class _Block:
    grid = _Grid()


def make(text: str, table: dict[str, Any] = OPCODES) -> Step:
    instruction = _instruction(0, text)
    b = Build(instruction)
    step: Step = table[instruction.opcode](b)
    b.finish()
    return guarded(instruction.guard, step) if instruction.guard else step


def values(rng: random.Random) -> list[int]:
    """A value for each lane: an edge, near one, or any; with an exponent near that of one, too."""
    kinds = (
        lambda: rng.choice(EDGES),
        lambda: rng.choice(EDGES) + rng.randint(-2, 2) & 0xFFFFFFFF,
        lambda: rng.getrandbits(32),
        lambda: rng.randrange(0x3E000000, 0x41000000) | rng.getrandbits(1) << 31,
        lambda: rng.getrandbits(5),
    )
    return [rng.choice(kinds)() for _ in range(LANES)]


def mismatch(text: str, table: dict[str, Any] = OPCODES) -> str:
    """Where an instruction differs from its reference, empty if nowhere."""
    step, rng = make(text, table), random.Random(text)
    for _ in range(ROUNDS):
        warp = Warp(_Block(), 0, LANES, 0)  # type: ignore[arg-type]
        registers = [values(rng) for _ in range(8)]
        for lane in range(0, LANES, 5):  # some are equal
            registers[2][lane] = registers[1][lane]
        for register, value in enumerate(TIE, 1):
            registers[register][0] = value
        predicates = [[rng.random() < 0.5 for _ in range(LANES)] for _ in range(7)]
        for i, row in enumerate(registers):
            warp.R[i] = np.array(row, np.uint32)
        for i, flags in enumerate(predicates):
            warp.P[i] = np.array(flags)
        with np.errstate(all="ignore"):
            step(Fragment(warp, 0, (1 << LANES) - 1))
        for lane in range(LANES):
            expected = ROWS[text](
                [row[lane] for row in registers], [row[lane] for row in predicates]
            )
            if "NaN" in expected:
                high = int(np.resize(warp.R[1], LANES)[lane]) & 0x7FFFFFFF
                if high <= 0x7FF00000 and not (high == 0x7FF00000 and warp.R[0][lane]):
                    return f"lane {lane}: no NaN"
                continue
            for name, value in expected.items():
                file = warp.R if name[0] == "R" else warp.P
                found = np.resize(file[int(name[1:])], LANES)[lane]
                if int(found) != int(value):
                    given = [hex(row[lane]) for row in registers]
                    return f"{name} is {int(found):#x}, not {int(value):#x}, of {given}"
    return ""


@pytest.mark.parametrize("text", ROWS)
def test_an_opcode_is_as_computed_apart(text: str) -> None:
    assert mismatch(text) == ""


def test_a_guard_leaves_other_lanes_alone() -> None:
    warp = Warp(_Block(), 0, LANES, 0)  # type: ignore[arg-type]
    warp.P[0] = np.arange(LANES) % 3 == 0
    warp.R[0] = np.arange(LANES, dtype=np.uint32)
    make("@!P0 IADD3 R0, R0, 0x64, RZ")(Fragment(warp, 0, (1 << LANES) - 1))
    assert warp.R[0].tolist() == [i if i % 3 == 0 else i + 100 for i in range(LANES)]


UNKNOWN = [
    "IADD3.NEW R0, R1, R2, R3",
    "FADD R0, R1, R2, R3",
    "SHF.L.U32 R0, R1, R2",
    "MOV R0, R1.H0",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_is_unknown_is_refused_by_name(text: str) -> None:
    with pytest.raises(Unsupported, match=re.escape(text.partition(" ")[0])):
        make(text)
