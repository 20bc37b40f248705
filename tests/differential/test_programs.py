"""Generated programs: pylink's links equal nvlink's, byte for byte, text for text.

A fixed, modest set: more seeds, archs and variants with `python -m differential.run`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from differential import cases, check
from differential.variants import LIBRARY, TEXT, VARIANTS
from helpers import oracle, programs

IMAGES = [variant for variant in VARIANTS if variant not in TEXT | LIBRARY]

# Each seed on one arch of the three families with every kind of link; the other archs take turns.
SEEDS = range(36)
FAMILIES = ("75", "90a", "100")
OTHERS = tuple(arch for arch in oracle.ARCHS if arch not in FAMILIES)

# What is not equal: docs/nvlink-differences.md has the list, and says of "order" that no input
# tells what nvlink makes of registers of a copy that another replaced.
OPEN: dict[str, set[int]] = {
    "order": {17},
}

# nvlink refuses these, two of whose files disagree about a size: there is no first stage.
REFUSED = {18}

generate = functools.cache(programs.generate)


def is_possible(seed: int, arch: str, variant: str) -> bool:
    """Whether a program can be linked so: another order takes two files, for example."""
    program = generate(seed)
    cubins = [f"m{number}.cubin" for number in range(len(program.modules))]
    if oracle.find() is None:
        return True  # there is no library to name, and nothing is linked
    link = VARIANTS[variant](program, arch, cubins)
    return link is not None and not (link.first and seed in REFUSED)


def programs_for(variant: str, archs: Sequence[str], seeds: Iterable[int]) -> list[Any]:
    """A parameter for each seed whose program can be linked so, the archs in turn."""
    rows = ((seed, archs[seed % len(archs)], variant) for seed in seeds)
    waits = pytest.mark.xfail(reason="not equal to nvlink's", strict=True)
    return [
        pytest.param(*row, marks=waits if row[0] in OPEN.get(variant, ()) else ())
        for row in rows
        if is_possible(*row)
    ]


def differences(seed: int, arch: str, variant: str, folder: Path) -> list[str]:
    """What differs in one link of a program; empty when nothing does."""
    case = cases.prepare(generate(seed), arch, [variant], folder)
    (expected,) = case.links
    run = check.check_cli if variant in TEXT else check.check_api
    return run(case, expected)


EVERY_KIND = [row for variant in IMAGES for row in programs_for(variant, FAMILIES, SEEDS)]
# Programs with the features that came later.
LATER = (1006, 1010, 1014, 1026, 1032, 1045)
EVERY_KIND += [
    row for variant in ("exec", "r", "relink") for row in programs_for(variant, FAMILIES, LATER)
]
EVERY_ARCH = [
    row
    for variant in ("exec", "r", "order")
    for row in programs_for(variant, OTHERS, range(len(OTHERS)))
]
PRINTED = [row for variant in sorted(TEXT) for row in programs_for(variant, FAMILIES, SEEDS[::4])]


@oracle.needs_oracle
@pytest.mark.parametrize(("seed", "arch", "variant"), EVERY_KIND)
def test_every_kind_of_link(seed: int, arch: str, variant: str, tmp_path: Path) -> None:
    assert differences(seed, arch, variant, tmp_path) == []


@oracle.needs_oracle
@pytest.mark.parametrize(("seed", "arch", "variant"), EVERY_ARCH)
def test_every_arch(seed: int, arch: str, variant: str, tmp_path: Path) -> None:
    assert differences(seed, arch, variant, tmp_path) == []


@oracle.needs_oracle
@pytest.mark.parametrize(("seed", "arch", "variant"), PRINTED)
def test_text_and_exit_codes(seed: int, arch: str, variant: str, tmp_path: Path) -> None:
    assert differences(seed, arch, variant, tmp_path) == []
