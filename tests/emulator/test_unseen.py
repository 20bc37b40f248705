"""Programs that were written apart from the interpreter run as Python computes, at -O0 and -O3."""

from __future__ import annotations

import random

import pytest
from helpers import oracle

from emulator.audit import findings
from emulator.launching import ARCHS, Run, link_both
from emulator.load import Loaded
from emulator.test_linked_programs import same_in_memory
from emulator.unseen import INPUTS, PROGRAMS, SHARED
from emulator.unseen_source import SOURCE

pytestmark = oracle.needs_oracle
EDGES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xFFFF, 0x10000)


def values(seed: str) -> list[int]:
    """Input words: some at the edges, the others of any size."""
    rng = random.Random(seed)
    words = [rng.getrandbits(rng.choice((3, 9, 17, 32, 32))) for _ in range(INPUTS)]
    for edge in EDGES:
        words[rng.randrange(INPUTS)] = edge
    return words


def faults(image: bytes, arch: str) -> list[str]:
    """The kernels that leave something else, and what the file does not say of them."""
    wrong = []
    for name, (block, grid, compute) in PROGRAMS.items():
        words = values(name)
        expected = list(compute(words))
        buffer = words + [0] * len(expected)
        run = Run(image, arch, name, buffer, block=block, grid=grid, shared=SHARED)
        left = list(run.words)
        pairs = zip(left[INPUTS:], expected, strict=True)
        if left[:INPUTS] != words or any(want not in (None, got) for got, want in pairs):
            wrong.append(name)
        wrong += [f"{name}: {finding}" for finding in findings(run.grid)]
    return wrong


@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize("arch", ARCHS)
def test_memory_is_as_python_computes(arch: str, level: str) -> None:
    theirs, ours = link_both([oracle.compile(SOURCE, arch, [level])], arch)
    assert faults(ours, arch) == []
    if not same_in_memory(Loaded(theirs, arch), Loaded(ours, arch)):
        assert faults(theirs, arch) == []
