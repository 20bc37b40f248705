"""Scoreboards: code of ptxas and nvlink has no hazard; a wait taken away makes one, or is idle."""

from __future__ import annotations

import functools
import random

import pytest
from helpers import oracle, programs

import pylink
from hazards import check, planted, reference, tables
from hazards.flow import Flow
from hazards.waits import Waits

pytestmark = oracle.needs_oracle

ARCHS = ("75", "80", "86", "89", "90a", "100", "103", "110", "120")
SEEDS = (3, 9, 12, 40)
CLEARED = 60  # waits of each architecture
LONGEST = 600  # instructions of a function that the reference walks through


def compiled(arch: str, seed: int) -> list[bytes]:
    """Cubins of a generated program."""
    return [
        oracle.compile(module.source, arch, module.flags, name=module.name)
        for module in programs.generate(seed).modules
    ]


def linked(arch: str, seed: int) -> list[bytes]:
    """What pylink makes of them: with -g from sm_100 on, code has more instructions."""
    inputs = [(f"m{number}.cubin", image) for number, image in enumerate(compiled(arch, seed))]
    link = functools.partial(pylink.link, inputs, arch=f"sm_{arch}", relocatable_link=True)
    return [link().image, link(debug=True).image]


def accesses(flow: Flow, table: tables.Table) -> set[tuple[str, int, int]]:
    return {(found.kind, found.first, found.second) for found in Waits(flow, table).accesses()}


def walked(flow: Flow, table: tables.Table) -> set[tuple[str, int, int]]:
    """The same by the reference."""
    return {
        (kind, what.first, second)
        for what in reference.under_way(flow, table)
        for kind, second in reference.touched(flow, what, table)
    }


@pytest.mark.parametrize("arch", ARCHS)
def test_code_of_ptxas_and_nvlink_has_no_hazard(arch: str) -> None:
    for seed in SEEDS:
        cubins = compiled(arch, seed)
        linked = oracle.link(cubins, arch, ["-r"] if seed % 2 else [])
        images = cubins if linked.image is None else [*cubins, linked.image]
        assert [str(found) for image in images for found in check.cubin(image)] == []


@pytest.mark.parametrize("by_pylink", [False, True])
@pytest.mark.parametrize("arch", ARCHS)
def test_each_wait_taken_away_is_found_or_harmless(arch: str, *, by_pylink: bool) -> None:
    """Harmless is what the walk along all paths shows: nobody looks before another wait."""
    table = tables.load(arch.rstrip("a"))
    choose = random.Random(f"waits {arch}")
    mutants = [
        mutant
        for seed in SEEDS
        for image in (linked(arch, seed) if by_pylink else compiled(arch, seed))
        for flow in check.flows(image)[1]
        if len(flow.steps) < LONGEST
        for _, _, mutant in planted.cleared_waits(flow)
    ]
    count = CLEARED // 3 if by_pylink else CLEARED
    found = 0
    for mutant in choose.sample(mutants, count):
        seen = accesses(mutant, table)
        assert seen == walked(mutant, table), mutant.name
        found += bool(seen)
    assert found > count * 3 // 4
