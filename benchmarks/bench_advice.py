"""Advice of the stock rules: the time that it saves, and the time that the rule claims.

Each case links a program about which a rule warns, follows the advice, and links again: both in
turn, several times, and the least processor time of each counts. A claim may be too small by any
amount, and too large by `MARGIN` percent of the link.
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

COUNT = 240  # inputs of a link
TURNS = 7  # links of each kind, the fastest of which counts
MARGIN = 10.0  # percent


def compile_modules(
    folder: Path, arch: str, flags: tuple[str, ...], size: str = "15KB", count: int = COUNT
) -> list[str]:
    """Write `count` modules of the benchmarks, compiled with these flags; return their names."""
    group = [oracle.compile(text, arch, flags, name=n) for n, text in sources(size).items()]
    names = []
    for number in range(count):
        name = folder / f"{number}{''.join(flags)}.cubin"
        name.write_bytes(inputs.copy_of(group[number % MODULES], number // MODULES))
        names.append(str(name))
    return names


def fastest_profiles(links: list[Callable[[], Profile]]) -> list[Profile]:
    """Run all links in turn, TURNS times; return of each the profile with least processor time."""
    best: list[Profile | None] = [None] * len(links)
    for _ in range(TURNS):
        for number, link in enumerate(links):
            profile, best_so_far = link(), best[number]
            if best_so_far is None or profile.cpu_ns < best_so_far.cpu_ns:
                best[number] = profile
    return [profile for profile in best if profile is not None]


def link_function(
    names: list[str], arch: str, output: Path, merc_dedup: Literal["on", "off"] = "on"
) -> Callable[[], Profile]:
    """Return a function that links the files once, and returns the profile."""

    def link() -> Profile:
        profile = pylink.link(
            names, arch=f"sm_{arch}", output=output, profile=True, merc_dedup=merc_dedup
        ).profile
        assert profile is not None
        return profile

    return link


def check(claimed: float, before: Profile, after: Profile, label: str) -> None:
    """Check that a link gained the claimed percentage of processor time, or at most MARGIN less."""
    gained = 100 * (1 - after.cpu_ns / before.cpu_ns)
    print(f"{label}: claimed {claimed:.1f}%, gained {gained:.1f}%")
    assert claimed <= gained + MARGIN


@oracle.needs_oracle
@pytest.mark.parametrize("arch", ["90a", "100"])
@pytest.mark.parametrize(
    ("flags_before", "flags_after"),
    [(("-G",), ("-lineinfo",)), (("-lineinfo",), ())],
    ids=["G", "lineinfo"],
)
def test_debug_data(
    arch: str, flags_before: tuple[str, ...], flags_after: tuple[str, ...], tmp_path: Path
) -> None:
    output = tmp_path / "linked.cubin"
    links = [
        link_function(compile_modules(tmp_path, arch, flags), arch, output)
        for flags in (flags_before, flags_after)
    ]
    before, after = fastest_profiles(links)
    check(
        100 * debug_ns(before) / before.cpu_ns,
        before,
        after,
        f"{arch} {flags_before} to {flags_after}",
    )


@oracle.needs_oracle
def test_deduplication(tmp_path: Path) -> None:
    names, output = compile_modules(tmp_path, "100", ("-lineinfo",)), tmp_path / "linked.cubin"
    # No module is linked twice, since its symbols would clash; so nothing folds here.
    before, after = fastest_profiles(
        [link_function(names, "100", output), link_function(names, "100", output, merc_dedup="off")]
    )
    check(100 * folding_ns(before) / before.cpu_ns, before, after, "--merc-dedup=off")


@oracle.needs_oracle
@pytest.mark.parametrize("flags", [("-G",), ("-lineinfo",), ()], ids=["G", "lineinfo", "none"])
@pytest.mark.parametrize(("size", "count"), [("15KB", 1200), ("50KB", 40)], ids=["many", "few"])
def test_what_is_said_holds_for_other_programs(
    size: str, count: int, flags: tuple[str, ...], tmp_path: Path
) -> None:
    """A report's rule on debug data has a message exactly if the inputs, few or many, have some."""
    names = compile_modules(tmp_path, "100", flags, size, count)
    output, report = tmp_path / "linked.cubin", tmp_path / "link.ncu-rep"
    pylink.link(names, arch="sm_100", output=output, profile=report)
    texts = {name: text for name, (_, text) in claims_of(read_report(report)).items()}
    assert ("LinkDebugBytes" in texts) == bool(flags)
    if flags:
        assert ("compile with -lineinfo" in texts["LinkDebugBytes"]) == (flags == ("-G",))
        names_after = compile_modules(
            tmp_path, "100", ("-lineinfo",) if flags == ("-G",) else (), size, count
        )
        before, after = fastest_profiles(
            [link_function(name, "100", output) for name in (names, names_after)]
        )
        share = 100 * debug_ns(before) / before.cpu_ns
        check(share, before, after, f"{count} of {size}, {flags}")


@oracle.needs_oracle
def test_a_second_link_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    names = compile_modules(tmp_path, "90a", ("-lineinfo",), "50KB", 400)
    output, report = tmp_path / "linked.cubin", tmp_path / "link.ncu-rep"

    def forget() -> None:
        """Drop the inputs from the page cache, so that the next link reads them from disk."""
        for name in names:
            with Path(name).open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    claims, cold, warm = [], [], []
    for _ in range(TURNS):
        forget()
        profile = pylink.link(names, arch="sm_90a", output=output, profile=report).profile
        assert profile is not None
        claim = claims_of(read_report(report)).get("LinkColdCache")
        if claim is None:
            pytest.skip("this file system does not forget what it has read")
        claims.append(claim[0])
        cold.append(profile.wall_ns)
        profile = pylink.link(names, arch="sm_90a", output=output, profile=True).profile
        assert profile is not None
        warm.append(profile.wall_ns)
    claimed, gained = min(claims), 100 * (1 - min(warm) / min(cold))
    print(f"cold cache: claimed {claimed:.1f}%, gained {gained:.1f}% of wall time")
    assert claimed <= gained + MARGIN


def claims_of(report: Report) -> dict[str, tuple[float, str]]:
    """Return, by rule, the gain that it claims in percent (0 without a claim), and its message."""
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
