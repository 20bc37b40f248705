"""The order reference against nvlink and against pylink, on generated and on random programs."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from differential.check import keywords
from helpers import oracle, programs
from helpers.copies_ptx import FEW, MANY, file
from helpers.order import difference, observe, predict, selection

import pylink

ARCHS = ["75", "90a", "100", "120"]
pytestmark = [oracle.needs_oracle, pytest.mark.parametrize("arch", ARCHS)]


def check(cubins: Sequence[bytes], arch: str, options: Sequence[str] = ()) -> bytes:
    """Compare the prediction with both linkers; nvlink's image, empty where it refuses."""
    theirs = oracle.link(cubins, arch, options)
    if theirs.code or theirs.image is None:
        return b""
    predicted = predict(cubins, arch, relocatable="-r" in options, selected=selection(options))
    ours = pylink.link(cubins, arch=f"sm_{arch}", **keywords(options))
    assert difference(predicted, observe(theirs.image)) == "", f"nvlink {options}"
    assert difference(predicted, observe(bytes(ours.image))) == "", f"pylink {options}"
    return theirs.image


@pytest.mark.parametrize("seed", [3, 6])
def test_generated_programs(arch: str, seed: int) -> None:
    program = programs.generate(seed)
    cubins = [
        oracle.compile(module.source, arch, module.flags, name=module.name)
        for module in program.modules
    ]
    assert check(cubins, arch)
    first = check(cubins, arch, ["-r"])
    assert check([first], arch)
    check(cubins[::-1], arch)


def tables(rng: random.Random, mark: int) -> dict[str, str]:
    """Tables of a file: names that others have too, or not, and what they hold."""
    found = {}
    for number in range(rng.randrange(4)):
        shared = rng.random() < 0.5
        name = f"weak w{number}" if shared else f"visible t{mark}_{number}"
        entries = rng.sample(["f", f"own{mark}", "1", "v"], 2)
        found[name] = ", ".join(entries)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_random_copies(arch: str, seed: int) -> None:
    """Copies of a weak function, and tables with addresses, in two to four files."""
    rng = random.Random(seed)
    cubins = [
        file(arch, mark, rng.choice([FEW, FEW, MANY]), "global", tables(rng, mark))
        for mark in range(rng.randrange(2, 5))
    ]
    first = check(cubins, arch, ["-r"])
    assert first
    assert check([first], arch)
    assert check(cubins, arch)
    check(cubins, arch, ["--kernels-used=k0"])
    if len(cubins) > 2:
        part = oracle.link(cubins[:2], arch, ["-r"]).image
        assert part is not None
        assert check([part, *cubins[2:]], arch)
        assert check([*cubins[2:], part], arch)
