"""What following an advice of the stock rules saves, against what the rule says that it will.

Each case links a program that the rule warns of, does what the rule says, and links again: both in
turn, several times, and of each the least processor time counts. A claim may be too small, and too
large by `MARGIN` percent of the link: the advice is then still worth what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from helpers import oracle

import pylink
from benchmarks import inputs
from benchmarks.group import MODULES, sources
from pylink.profile.estimates import debug_ns, folding_ns
from pylink.profile.model import Profile

COUNT = 240
TURNS = 7
MARGIN = 10.0


def program(folder: Path, arch: str, flags: tuple[str, ...]) -> list[str]:
    """The modules of the benchmarks, compiled with these flags."""
    group = [oracle.compile(text, arch, flags, name=n) for n, text in sources("15KB").items()]
    names = []
    for number in range(COUNT):
        name = folder / f"{number}{''.join(flags)}.cubin"
        name.write_bytes(inputs.copy_of(group[number % MODULES], number // MODULES))
        names.append(str(name))
    return names


def in_turn(links: list[Callable[[], Profile]]) -> list[Profile]:
    """The profile of least processor time of each of the links."""
    best: list[Profile | None] = [None] * len(links)
    for _ in range(TURNS):
        for at, link in enumerate(links):
            made, known = link(), best[at]
            if known is None or made.cpu_ns < known.cpu_ns:
                best[at] = made
    return [one for one in best if one is not None]


def linker(
    names: list[str], arch: str, output: Path, merc_dedup: Literal["on", "off"] = "on"
) -> Callable[[], Profile]:
    def link() -> Profile:
        made = pylink.link(
            names, arch=f"sm_{arch}", output=output, profile=True, merc_dedup=merc_dedup
        ).profile
        assert made is not None
        return made

    return link


def check(claimed: float, before: Profile, after: Profile, what: str) -> None:
    gained = 100 * (1 - after.cpu_ns / before.cpu_ns)
    print(f"{what}: claimed {claimed:.1f}%, gained {gained:.1f}%")
    assert claimed <= gained + MARGIN


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["90a", "100"])
@pytest.mark.parametrize(
    ("given", "advised"), [(("-G",), ("-lineinfo",)), (("-lineinfo",), ())], ids=["G", "lineinfo"]
)
def test_debug_data(
    arch: str, given: tuple[str, ...], advised: tuple[str, ...], tmp_path: Path
) -> None:
    output = tmp_path / "linked.cubin"
    links = [linker(program(tmp_path, arch, flags), arch, output) for flags in (given, advised)]
    before, after = in_turn(links)
    check(100 * debug_ns(before) / before.cpu_ns, before, after, f"{arch} {given} to {advised}")


@oracle.needs_oracle
def test_deduplication(tmp_path: Path) -> None:
    names, output = program(tmp_path, "100", ("-lineinfo",)), tmp_path / "linked.cubin"
    # Modules that are there twice cannot be linked; kernels of weak templates could.
    before, after = in_turn(
        [linker(names, "100", output), linker(names, "100", output, merc_dedup="off")]
    )
    check(100 * folding_ns(before) / before.cpu_ns, before, after, "--merc-dedup=off")
