"""Linked programs leave in memory what Python computes, by nvlink's link and by pylink's.

All ways of linking of the differential tests that make executables are tried. PYLINK_PROGRAMS
sets the number of programs for each architecture (default: 30, more than 1,000 links in all).
Images whose code, data and attributes are the same in memory are run once.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from differential.cases import compile_modules, make_inputs
from differential.variants import VARIANTS, Link
from helpers import oracle
from helpers.keywords import keywords
from helpers.programs import Program

import pylink
from emulator import pool
from emulator.audit import findings
from emulator.decode import CONTROL_MASK, Decoder, encodings
from emulator.grid import Grid
from emulator.load import Loaded
from emulator.program import Program as Code

pytestmark = oracle.needs_oracle

ARCHS = ("80", "90a", "100")
WAYS = (
    "exec",
    "order",
    "relink",
    "relink2",
    "relink-g",
    "newer",
    "g",
    "kernels-used",
    "both-used",
    "g-used",
    "device-runtime",
    "host",
    "host-all",
    "archive",
    "archive-l",
    "archive-relink",
)
COUNT = int(os.environ.get("PYLINK_PROGRAMS", "30"))
BATCH = 10  # programs whose images are decoded together


@dataclass(frozen=True)
class Linked:
    """The images that both linkers made in one way, and the architecture to run them on."""

    program: Program
    way: str
    arch: str
    images: tuple[bytes | None, bytes]  # nvlink's is None where it makes none by design


def _link(folder: Path, link: Link, output: str) -> bytes:
    """nvlink's image, with those of its first stages in the folder."""
    for name, first in link.first:
        _link(folder, first, name)
    done = oracle.run_nvlink(link.argv(output), folder, output)
    assert done.code == 0, done.stderr
    assert done.image is not None
    return done.image


def _link_ours(folder: Path, link: Link) -> bytes:
    """pylink's image, from pylink's first stages."""
    made = {name: _link_ours(folder, first) for name, first in link.first}
    inputs = [
        (str(folder / name), made[name]) if name in made else folder / name for name in link.inputs
    ]
    options = [
        option.replace("=.", f"={folder}") if "library-path" in option else option
        for option in link.options
    ]
    return pylink.link(inputs, arch=f"sm_{link.arch}", **keywords(options)).image


def linked_programs(arch: str, seeds: range, folder: Path) -> Iterator[Linked]:
    """All links of some programs."""
    for seed in seeds:
        program = pool.generate(seed)
        place = folder / f"{arch}-{seed}"
        cubins = compile_modules(program.modules, arch, place)
        for way in WAYS:
            link = VARIANTS[way](program, arch, cubins)
            if link is None:
                continue
            make_inputs(program, arch, place, link)
            theirs = _link(place, link, "theirs.cubin")
            yield Linked(program, way, link.arch, (theirs, _link_ours(place, link)))


def same_in_memory(first: Loaded | None, second: Loaded) -> bool:
    """Whether what runs is the same, but for scoreboards and stalls."""
    return (
        first is not None
        and len(first.code) == len(second.code)
        and first.memory.bytes.tobytes() == second.memory.bytes.tobytes()
        and first.kernels == second.kernels
        and first.info == second.info
        and first.banks == second.banks
        and [e & ~CONTROL_MASK for e in encodings(bytes(first.code))]
        == [e & ~CONTROL_MASK for e in encodings(bytes(second.code))]
    )


def check(loaded: Loaded, linked: Linked, *, stack: int = 0) -> int:
    """Run the kernels of a program that the image has; returns their number.

    `stack` is what each thread has at least; what the file says of its size does not count then.
    """
    seed = linked.program.seed
    rng = random.Random(f"values {seed}")
    index, count = seed % len(pool.MAINS), 0
    code = Code(loaded)
    for name, compute in pool.KERNELS.items():
        values, n = [rng.getrandbits(32) for _ in range(pool.LANES)], rng.randrange(100)
        kernel = f"{name}{index}"
        if kernel not in loaded.kernels:
            continue
        data = loaded.memory.place(struct.pack("<32I", *values))
        grid = Grid(code, kernel, parameters=struct.pack("<QI", data, n), shared=128, stack=stack)
        grid.run()
        found = [each for each in findings(grid) if not (stack and "bytes of stack" in each)]
        assert found == [], (kernel, linked.way, seed)
        left = list(struct.unpack("<32I", loaded.memory.read(data, 128)))
        assert left == compute(index, values, n), (kernel, linked.way, seed)
        if name == "chain":
            state, size = loaded.variables[f"state{index}"]
            held = int.from_bytes(loaded.memory.read(state, size), "little")
            assert held == index * 100 + pool.LANES, (kernel, linked.way, seed)
        count += 1
    return count


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_memory_is_as_python_computes(arch: str, first: int, tmp_path: Path) -> None:
    seeds = range(first, min(first + BATCH, COUNT))
    cases = list(linked_programs(arch, seeds, tmp_path))
    loaded = [
        (Loaded(theirs, case.arch) if theirs else None, Loaded(ours, case.arch))
        for case in cases
        for theirs, ours in [case.images]
    ]
    for target in {case.arch for case in cases}:
        Decoder.of(target).learn(
            bytes(program.code)
            for case, pair in zip(cases, loaded, strict=True)
            for program in pair
            if program and case.arch == target
        )
    ran = 0
    for case, (theirs, ours) in zip(cases, loaded, strict=True):
        same = same_in_memory(theirs, ours)
        ran += check(ours, case)
        if theirs and not same:
            check(theirs, case)
    assert len(cases) >= 12 * len(seeds)
    assert ran >= len(cases)
