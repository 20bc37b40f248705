"""What following an advice of the stock rules saves, against what the rule says that it will.

Each case links a program that the rule warns of, does what the rule says, and links again: both in
turn, several times, and of each the least processor time counts. A claim may be too small, and too
large by `MARGIN` percent of the link: the advice is then still worth what it says.
"""

from __future__ import annotations

import os
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
from pylink.report import read_report
from pylink.report.model import Report
from pylink.report.rules.frontend import SPEEDUP_METRIC

COUNT = 240
TURNS = 7
MARGIN = 10.0


def program(
    folder: Path, arch: str, flags: tuple[str, ...], size: str = "15KB", count: int = COUNT
) -> list[str]:
    """The modules of the benchmarks, compiled with these flags."""
    group = [oracle.compile(text, arch, flags, name=n) for n, text in sources(size).items()]
    names = []
    for number in range(count):
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
    return [time for time in best if time is not None]


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


@oracle.needs_oracle
@pytest.mark.parametrize("flags", [("-G",), ("-lineinfo",), ()], ids=["G", "lineinfo", "none"])
@pytest.mark.parametrize(("size", "count"), [("15KB", 1200), ("50KB", 40)], ids=["many", "few"])
def test_what_is_said_holds_for_other_programs(
    size: str, count: int, flags: tuple[str, ...], tmp_path: Path
) -> None:
    """Many small inputs, few large ones: debug data is named where there is some, nowhere else."""
    names = program(tmp_path, "100", flags, size, count)
    output, report = tmp_path / "linked.cubin", tmp_path / "link.ncu-rep"
    pylink.link(names, arch="sm_100", output=output, profile=report)
    told = {name: text for name, (_, text) in said(read_report(report)).items()}
    assert ("LinkDebugBytes" in told) == bool(flags)
    if flags:
        assert ("compile with -lineinfo" in told["LinkDebugBytes"]) == (flags == ("-G",))
        less = program(tmp_path, "100", ("-lineinfo",) if flags == ("-G",) else (), size, count)
        before, after = in_turn([linker(name, "100", output) for name in (names, less)])
        share = 100 * debug_ns(before) / before.cpu_ns
        check(share, before, after, f"{count} of {size}, {flags}")


@oracle.needs_oracle
def test_a_second_link_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    names = program(tmp_path, "90a", ("-lineinfo",), "50KB", 400)
    output, report = tmp_path / "linked.cubin", tmp_path / "link.ncu-rep"

    def forget() -> None:
        for name in names:
            with Path(name).open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    claims, cold, warm = [], [], []
    for _ in range(TURNS):
        forget()
        made = pylink.link(names, arch="sm_90a", output=output, profile=report).profile
        assert made is not None
        found = said(read_report(report)).get("LinkColdCache")
        if found is None:
            pytest.skip("this file system does not forget what it has read")
        claims.append(found[0])
        cold.append(made.wall_ns)
        made = pylink.link(names, arch="sm_90a", output=output, profile=True).profile
        assert made is not None
        warm.append(made.wall_ns)
    claimed, gained = min(claims), 100 * (1 - min(warm) / min(cold))
    print(f"cold cache: claimed {claimed:.1f}%, gained {gained:.1f}% of wall time")
    assert claimed <= gained + MARGIN


def said(report: Report) -> dict[str, tuple[float, str]]:
    """By rule, the gain that it claims in percent, 0 without one, and its words."""
    return {
        result.identifier: (
            max(
                (item.metric_value or 0.0 for item in focus if item.metric_name == SPEEDUP_METRIC),
                default=0.0,
            ),
            message.message,
        )
        for action in report.actions
        for result in action.rule_results
        for message, focus in result.messages()
    }
