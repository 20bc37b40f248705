"""Each opcode of the interpreter matters: one that is wrong makes a row or a kernel wrong.

Every opcode is made wrong in one of two ways: what it writes has another lowest bit, or, where it
writes no register, it does nothing. Opcodes that have rows are tried with these, the others with a
kernel of `unseen_source` that executes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import oracle

from emulator.build import Build, _drop, _drop_flags
from emulator.errors import Fault, Unsupported
from emulator.launching import Run, link_both
from emulator.opcodes import ROWS
from emulator.program import Program
from emulator.semantics.table import ENDS, OPCODES
from emulator.test_opcodes import mismatch
from emulator.test_unseen import values
from emulator.unseen import INPUTS, PROGRAMS, SHARED
from emulator.unseen_source import SOURCE

pytestmark = oracle.needs_oracle

ARCHS = ("80", "90a", "120")
LEVEL = "-O3"

# In order, as the interpreter is, these have nothing to do.
NOTHING = frozenset(
    {
        "ACQBULK",
        "CCTL",
        "CCTLL",
        "CGAERRBAR",
        "DEPBAR",
        "ENDCOLLECTIVE",
        "ERRBAR",
        "FENCE",
        "LDGDEPBAR",
        "MEMBAR",
        "NANOSLEEP",
        "NOP",
        "PREEXIT",
    }
)
# Kernels of other tests execute these, or none: a wrong one is not looked for here. FCHK chooses
# between two ways to the same quotient; `test_running_planted` has faults of convergence.
ELSEWHERE = frozenset(
    {
        "ATOM",
        "B2R",
        "BMOV",
        "BPT",
        "BRX",
        "BRXU",
        "BSSY",
        "BSYNC",
        "CREDUX",
        "CS2R",
        "CS2UR",
        "ELECT",
        "FCHK",
        "FSET",
        "JMP",
        "JMX",
        "JMXU",
        "KILL",
        "LDGSTS",
        "LEPC",
        "MOV32",
        "QSPC",
        "R2P",
        "RED",
        "REDG",
        "ST",
        "SYNCS",
        "UCGABAR_ARV",
        "UCGABAR_WAIT",
        "YIELD",
    }
)


def base(text: str) -> str:
    return text.split()[text.startswith("@")].partition(".")[0]


WITH_ROWS = sorted({base(text) for text in ROWS})
WITHOUT = sorted(
    name
    for name in {*OPCODES, *ENDS} - set(WITH_ROWS) - NOTHING - ELSEWHERE
    if not (name.startswith("U") and name[1:] in OPCODES)
)


def wrong(builder: Callable[[Build], Any]) -> Callable[[Build], Any]:
    """The opcode with another lowest bit in all that it writes; one that writes nothing skipped."""

    def build(b: Build) -> Any:
        put, put_flags = b.put, b.put_flags
        # Threads that change places in pairs leave the same: their numbers are made odd instead.
        change = np.bitwise_or if b.instruction.opcode == "S2R" else np.bitwise_xor
        written = []

        def other(*where: Any) -> Any:
            write = put(*where)
            written.append(write is not _drop)
            return lambda f, value: write(f, change(value, np.uint32(1)))

        def inverted(*where: Any) -> Any:
            write = put_flags(*where)
            written.append(write is not _drop_flags)
            return write if write is _drop_flags else lambda f, value: write(f, ~value)

        vars(b)["put"], vars(b)["put_flags"] = other, inverted
        step = builder(b)
        return step if any(written) else lambda f: None

    return build


def skipped(builder: Callable[[Build], Any]) -> Callable[[Build], Any]:
    """An opcode that ends a block, for which nobody jumps, waits, calls or ends."""

    def build(b: Build) -> Any:
        builder(b)
        following = b.instruction.address + 16
        return lambda f: following

    return build


@functools.cache
def image(arch: str) -> bytes:
    return link_both([oracle.compile(SOURCE, arch, [LEVEL])], arch)[1]


def left(arch: str, kernel: str) -> tuple[list[int], list[int | None], set[str]]:
    """What a kernel leaves, what it should, and the opcodes that it executed."""
    block, grid, compute = PROGRAMS[kernel]
    words = values(kernel)
    expected = list(compute(words))
    buffer = words + [0] * len(expected)
    run = Run(image(arch), arch, kernel, buffer, block=block, grid=grid, shared=SHARED)
    program = run.grid.program
    names = {i.opcode for pc in run.grid.visited for i in program.block(pc).instructions}
    return list(run.words)[INPUTS:], expected, names


@functools.cache
def users() -> dict[str, list[tuple[str, str]]]:
    """For each opcode the kernels that execute it, with their architecture."""
    found: dict[str, list[tuple[str, str]]] = {}
    for arch in ARCHS:
        for kernel in PROGRAMS:
            for name in left(arch, kernel)[2]:
                found.setdefault(name, []).append((arch, kernel))
    return found


@pytest.mark.parametrize("name", WITH_ROWS)
def test_a_wrong_opcode_makes_a_row_wrong(name: str) -> None:
    table = {**OPCODES, name: wrong(OPCODES[name])}
    rows = [text for text in ROWS if base(text) == name]
    assert [text for text in rows if not mismatch(text, table)] == []


def test_uniform_forms_are_those_of_registers() -> None:
    """Else rows of the one would say nothing of the other."""
    other = {"UMOV": "MOV", "ULDC": "LDC"}
    for name, builder in OPCODES.items():
        twin = other.get(name, name[1:])
        if name.startswith("U") and twin in OPCODES:
            assert builder is OPCODES[twin], name


@pytest.mark.parametrize("name", WITHOUT)
def test_a_wrong_opcode_makes_a_kernel_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    places = users()[name]
    if name in OPCODES:
        monkeypatch.setitem(OPCODES, name, wrong(OPCODES[name]))
    else:
        monkeypatch.setitem(ENDS, name, skipped(ENDS[name]))
    monkeypatch.setattr(Program, "_steps", {})
    for arch, kernel in places[:6]:
        try:
            found, expected, _ = left(arch, kernel)
        except (Fault, Unsupported):
            return
        if any(want not in (None, got) for got, want in zip(found, expected, strict=True)):
            return
    pytest.fail(f"no kernel notices: {places[:6]}")
