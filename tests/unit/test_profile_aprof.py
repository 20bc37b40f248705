"""The routines of a link in an aprof report, and what measuring them again leaves as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import demo

import pylink
from pylink.aprof import TIME_USEC, Report, fit_report, read
from pylink.profile.replay import parts_of
from pylink.profile.routines import aprof_report

PHASES = {"init", "read", "merge", "layout", "relocate", "finalize", "write"}
KERNELS = {"resolve", "merge_sections", "copy_contents", "resolve_values", "patch", "order"}


@pytest.fixture(scope="module", params=["sm_90a", "sm_100"])
def linked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Report, pylink.LinkResult]:
    path = tmp_path_factory.mktemp("aprof") / "link.aprof"
    cubins = demo.cubins(request.param)
    result = pylink.link(cubins, arch=request.param, profile_aprof=path)
    assert result.image == pylink.link(cubins, arch=request.param).image
    return read(path), result


def test_every_phase_and_kernel_is_a_routine(linked: tuple[Report, pylink.LinkResult]) -> None:
    report, _ = linked
    assert report.metric == TIME_USEC
    assert report.warnings == []
    assert {routine.name for routine in report.routines} >= PHASES | KERNELS | {"link"}
    assert all(report.points().values())


def test_contexts_follow_the_link(linked: tuple[Report, pylink.LinkResult]) -> None:
    report, result = linked
    names = {routine.id: routine.name for routine in report.routines}
    by_id = {context.id: context for context in report.contexts}

    def way(context: int) -> list[str]:
        found: list[str] = []
        while context != -1:
            found.append(names[by_id[context].routine])
            context = by_id[context].parent
        return found[::-1]

    ways = [way(context.id) for context in report.contexts]
    assert {tuple(one) for one in ways if len(one) == 1} == {("link",), ("part",)}
    assert result.profile is not None
    for phase in result.profile:
        assert ["link", phase.tag] in ways
        for step in phase.steps:
            assert ["link", phase.tag, step.name] in ways
    assert ["link", "read", "read_files", "read_file"] in ways
    assert ["part", "merge", "resolve"] in ways


def test_parts_give_routines_several_sizes(linked: tuple[Report, pylink.LinkResult]) -> None:
    report, result = linked
    sizes = {fit.routine: len(fit.points) for fit in fit_report(report)}
    assert result.profile is not None
    count = len(parts_of(len(result.profile.names)))
    assert sizes["resolve"] == sizes["parse"] == count >= 5
    resolve = next(one for one in report.routines if one.name == "resolve")
    assert report.points()[resolve.id][-1].rms == result.profile["merge"].symbols


def test_costs_add_up(linked: tuple[Report, pylink.LinkResult]) -> None:
    report, _ = linked
    own = sum(point.self_sum for one in report.contexts for point in one.points)
    assert own == report.total
    for context in report.contexts:
        for point in context.points:
            assert 1 <= point.min <= point.max
            assert point.self_sum <= point.sum


def test_a_report_without_parts_has_the_link_alone() -> None:
    cubins = demo.cubins("sm_100")
    profile = pylink.link(cubins, arch="sm_100", profile=True).profile
    assert profile is not None
    report = aprof_report(profile)
    assert "part" not in {routine.name for routine in report.routines}


def test_what_a_helper_reads_is_no_part_of_the_step() -> None:
    profile = pylink.link(demo.cubins("sm_100"), arch="sm_100", profile=True).profile
    assert profile is not None
    profile.cost.wall_ns = 5_000_000
    profile["init"].cost.wall_ns = 41_600
    profile["init"].steps.clear()
    (step,) = [step for step in profile["read"].steps if step.name == "read_files"]
    step.cost.wall_ns = 900_000
    for number, file in enumerate(profile.files):
        file.lane = number % 2
        file.read_ns = 100_000 if file.lane == 0 else 700_000
    report = aprof_report(profile)
    points = {routine.name: report.points()[routine.id] for routine in report.routines}
    assert [one.sum for one in points["link"]] == [5_000]
    assert [one.sum for one in points["init"]] == [42]  # microseconds, rounded
    (reading,) = points["read_files"]
    own = 900 - 100 * sum(file.lane == 0 for file in profile.files)
    assert (reading.sum, reading.self_sum) == (900, own)
    (pair,) = profile.pairs
    sizes = (pair.stats.bytes_compared, len(pair.candidate.headers), len(pair.candidate.targets))
    stages = ("compare_primary", "compare_headers", "compare_targets")
    assert tuple(one.rms for name in stages for one in points[name]) == sizes


def test_parts_halve_and_short_ones_repeat() -> None:
    assert parts_of(1600)[:5] == [(1600, 1), (800, 1), (400, 1), (200, 2), (100, 4)]
    assert parts_of(1600)[-1] == (3, 8)
    assert [size for size, _ in parts_of(12)] == [12, 9, 7, 5, 4, 3, 2]
    assert parts_of(3) == [(3, 8), (2, 8)]
    assert parts_of(2) == [(2, 8)]
    assert parts_of(1) == []


def test_parts_that_cannot_be_linked_end_after_layout(tmp_path: Path) -> None:
    # Most of the demo's modules use what only the last ones define.
    cubins = demo.cubins("sm_100")[::-1]
    path = tmp_path / "link.aprof"
    assert pylink.link(cubins, arch="sm_100", profile_aprof=path).diagnostics == ()
    report = read(path)
    names = {routine.id: routine.name for routine in report.routines}
    part = next(one.id for one in report.contexts if names[one.routine] == "part")
    calls = {
        names[one.routine]: sum(point.occ for point in one.points)
        for one in report.contexts
        if one.parent == part
    }
    parts = parts_of(len(cubins))
    assert calls["layout"] == sum(repetitions for _, repetitions in parts)
    assert calls["relocate"] == parts[0][1]  # the whole link alone
