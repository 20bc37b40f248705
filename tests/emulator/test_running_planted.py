"""Faults planted in the interpreter's convergence, memory and barriers are found by kernels."""

from __future__ import annotations

import pytest
from helpers import oracle

from emulator.errors import Fault
from emulator.kernels import images
from emulator.launching import Run
from emulator.machine import Block, Fragment
from emulator.program import Program
from emulator.semantics import atomics, control, convergence, memory

pytestmark = oracle.needs_oracle


def _no_votes(group: list[Fragment]) -> None:
    for f in group:
        f.wait = None


# What is planted, where, and a kernel that then must not leave what it should.
MUTANTS: dict[str, tuple[object, str, object, str]] = {
    "BSYNC does not wait": (convergence, "expected", lambda f, number: 0, "divergence"),
    "WARPSYNC forgets lanes": (
        convergence,
        "union",
        lambda fragments: fragments[0].bits,
        "divergence",
    ),
    "indirect calls go one way": (
        control,
        "go_apart",
        lambda f, bits, addresses, following: int(addresses[0]),
        "pointers",
    ),
    "barriers have no votes": (Block, "_release", staticmethod(_no_votes), "barriers"),
    "stores change nothing": (memory, "store", lambda *_: None, "recursion"),
    "all lanes are in one local memory": (
        memory,
        "local_places",
        lambda f, offsets, width, doing: offsets.astype("u8"),
        "local",
    ),
    "atomics add nothing": (
        atomics,
        "modify",
        lambda window, places, width, values, update: [0] * len(values),
        "atomics",
    ),
}

INPUTS: dict[str, tuple[list[int], tuple[int, ...], int]] = {
    "divergence": (list(range(1, 33)) + [0] * 64, (15,), 32),
    "pointers": ([0] * 32, (), 32),
    "barriers": (list(range(64)), (), 64),
    "recursion": ([0] * 32, (), 32),
    "local": (list(range(33)), (21,), 32),
    "atomics": ([0] * 16, (), 32),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_planted_faults_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, planted, kernel = MUTANTS[name]
    words, rest, threads = INPUTS[kernel]
    image = images("90a")[1]
    right = Run(image, "90a", kernel, words, *rest, block=(threads, 1, 1)).words
    monkeypatch.setattr(owner, attribute, planted)
    monkeypatch.setattr(Program, "_steps", {})
    try:
        wrong = Run(image, "90a", kernel, words, *rest, block=(threads, 1, 1)).words
    except Fault:
        return
    assert wrong != right
