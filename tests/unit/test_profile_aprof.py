"""The routines of a link in an aprof report, and what measuring them again leaves as it was."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from helpers import demo, oracle

import pylink
from benchmarks import inputs
from pylink import pipeline
from pylink.aprof import TIME_USEC, Fit, Report, encode, fit_report, fit_table, read
from pylink.aprof.shapes import is_steep
from pylink.diagnostics import Sink
from pylink.phases import report_symbols
from pylink.phases.layout import layout as real_layout
from pylink.phases.results import Merged, Objects, Placed
from pylink.profile import replay
from pylink.profile.model import Profile
from pylink.profile.replay import (
    LEAST_TURNS,
    REPETITIONS,
    SMALL_PART_INPUTS,
    SMALL_PART_REPETITIONS,
    part_sizes,
)
from pylink.profile.results import PhaseResults
from pylink.profile.routines import aprof_report

# A square that takes most of layout in a link of so many inputs.
COUNT, PLANTED_NS, PLANTED_RUNS = 240, 40_000_000, 6

PHASES = {"init", "read", "merge", "layout", "relocate", "finalize", "write"}
KERNELS = {"resolve", "merge_sections", "write_contents", "resolve_values", "write_tables", "order"}


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
    assert {tuple(way) for way in ways if len(way) == 1} == {("link",), ("replay",)}
    assert result.profile is not None
    for phase in result.profile:
        assert ["link", phase.tag] in ways
        for step in phase.steps:
            assert ["link", phase.tag, step.name] in ways
    assert ["link", "read", "read_files", "read_file"] in ways
    assert ["replay", "link", "merge", "resolve"] in ways


def test_parts_give_routines_several_sizes(linked: tuple[Report, pylink.LinkResult]) -> None:
    report, result = linked
    sizes = {fit.routine: len(fit.points) for fit in fit_report(report)}
    assert result.profile is not None
    count = len(part_sizes(len(result.profile.names)))
    assert sizes["resolve"] == sizes["parse"] == count >= 5
    resolve = next(routine for routine in report.routines if routine.name == "resolve")
    assert report.points()[resolve.id][-1].rms == result.profile["merge"].symbols


def test_costs_add_up(linked: tuple[Report, pylink.LinkResult]) -> None:
    report, result = linked
    assert result.profile is not None
    # The link alone, which nothing that ran again is part of.
    assert report.contexts[0].parent == -1
    assert abs(report.contexts[0].points[0].sum - result.profile.cost.cpu_ns / 1000) <= 1
    # What a program reads that adds up own costs may not exceed the total.
    tops = [context for context in report.contexts if context.parent == -1]
    assert report.total is not None
    assert report.total >= sum(point.sum for top in tops for point in top.points)
    assert report.total >= sum(
        point.self_sum for context in report.contexts for point in context.points
    )
    below = {}
    for context in report.contexts:
        inclusive = sum(point.sum for point in context.points)
        own = sum(point.self_sum for point in context.points)
        below[context.id] = inclusive - own
        for point in context.points:
            assert 1 <= point.min <= point.max
            assert point.self_sum <= point.sum
    for context in report.contexts:
        inner = [candidate for candidate in report.contexts if candidate.parent == context.id]
        calls = sum(point.occ for child in inner for point in child.points)
        costs = sum(point.sum for child in inner for point in child.points)
        # Each call is rounded to whole microseconds, up to one at least.
        own = sum(point.occ for point in context.points)
        assert below[context.id] <= costs + calls + own


def test_a_call_stands_in_a_report_once(linked: tuple[Report, pylink.LinkResult]) -> None:
    # A reader that knows contexts adds up the points of both, so that own costs exceed the total.
    report, _ = linked
    text = encode(report).decode()
    assert "\np " not in text
    assert text.count("\nq ") == sum(len(context.points) for context in report.contexts) > 0


def test_wall_time_stands_beside_processor_time(linked: tuple[Report, pylink.LinkResult]) -> None:
    report, _ = linked
    walls = report.walls()
    assert set(walls) == {routine.name for routine in report.routines}
    found = {fit.routine: fit for fit in fit_report(report)}
    assert "replay" not in found
    assert found["merge"].wall == walls["merge"][found["merge"].size] > 0
    assert " wall us " in fit_table(report)


def test_a_report_without_parts_has_the_link_alone() -> None:
    cubins = demo.cubins("sm_100")
    profile = pylink.link(cubins, arch="sm_100", profile=True).profile
    assert profile is not None
    report = aprof_report(profile)
    assert "replay" not in {routine.name for routine in report.routines}


def test_what_a_second_thread_does_counts() -> None:
    profile = pylink.link(demo.cubins("sm_100"), arch="sm_100", profile=True).profile
    assert profile is not None
    profile.cost.cpu_ns, profile.cost.thread_ns = 5_700_000, 5_000_000
    profile["init"].cost.cpu_ns = 41_600
    profile["init"].steps.clear()
    (step,) = [step for step in profile["read"].steps if step.name == "read_files"]
    step.cost.cpu_ns, step.cost.thread_ns = 1_600_000, 900_000
    for number, file in enumerate(profile.files):
        file.lane = number % 2
        file.read_cpu_ns = 50_000 if file.lane == 0 else 700_000
    report = aprof_report(profile)
    points = {routine.name: report.points()[routine.id] for routine in report.routines}
    inside = sum(50 if file.lane == 0 else 700 for file in profile.files)
    assert [point.sum for point in points["link"]] == [5_700]
    assert [point.sum for point in points["init"]] == [42]  # microseconds, rounded
    (reading,) = points["read_files"]
    assert (reading.sum, reading.self_sum) == (1_600, max(1_600 - inside, 0))
    (pair,) = profile.pairs
    sizes = (pair.stats.bytes_compared, len(pair.candidate.headers), len(pair.candidate.targets))
    stages = ("compare_primary", "compare_headers", "compare_targets")
    assert tuple(point.rms for name in stages for point in points[name]) == sizes


def test_parts_are_close_together_where_they_are_large() -> None:
    large = [200, 252, 317, 400, 504, 635, 800, 1008, 1270, 1600]
    assert part_sizes(1600) == [3, 6, 12, 25, 50, 100, *large]
    assert part_sizes(12) == [3, 4, 5, 6, 8, 10, 12]
    assert part_sizes(3) == [2, 3]
    assert part_sizes(2) == [2]
    assert part_sizes(1) == []


def test_the_bytes_of_a_part_are_those_of_its_inputs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[Objects] = []

    def watched(results: PhaseResults, *, shows_progress: bool) -> list[Profile]:
        seen.append(results.objects)
        return []

    monkeypatch.setattr(replay, "replay", watched)
    pylink.link(demo.cubins("sm_100"), arch="sm_100", profile_aprof=tmp_path / "link.aprof")
    (objects,) = seen
    for size in (1, len(objects.names)):
        arena = replay.arena_of_first(objects, size)
        last = objects.files[size - 1]
        assert arena == objects.arena[: len(arena)]
        assert last.offset + last.size <= len(arena) <= len(objects.arena)
    assert len(replay.arena_of_first(objects, 1)) == objects.files[0].offset + objects.files[0].size


@pytest.mark.parametrize(
    ("costs", "settled"),
    [([], True), ([100], True), ([100, 101], True), ([90, 100], False), ([102, 300, 103], True)],
)
def test_costs_are_settled_when_two_turns_agree(costs: list[int], settled: bool) -> None:
    assert replay.is_settled(costs) is settled


def test_parts_in_which_symbols_are_undefined_go_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(replay, "LONG_PART_NS", 1 << 62)  # on a busy machine a part may seem long
    # Most of the demo's modules use what only the last ones define.
    cubins = demo.cubins("sm_100")[::-1]
    path = tmp_path / "link.aprof"
    assert pylink.link(cubins, arch="sm_100", profile_aprof=path).diagnostics == ()
    report = read(path)
    names = {routine.id: routine.name for routine in report.routines}
    (top,) = [context.id for context in report.contexts if names[context.routine] == "replay"]
    (link,) = [context.id for context in report.contexts if context.parent == top]
    calls = {
        names[context.routine]: sum(point.occ for point in context.points)
        for context in report.contexts
        if context.parent == link
    }
    repetitions = (
        SMALL_PART_REPETITIONS if size <= SMALL_PART_INPUTS else REPETITIONS
        for size in part_sizes(len(cubins))
    )
    turn = sum(repetitions)
    assert calls["layout"] == calls["finalize"] >= LEAST_TURNS * turn
    assert calls["layout"] % turn == 0


def test_what_a_part_costs_does_not_depend_on_what_is_undefined_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Who has an undefined symbol is looked for in all inputs, whatever the size of the part.
    looked_for: list[int] = []
    real = report_symbols.report_undefined

    def watched(merged: Merged, sink: Sink) -> None:
        looked_for.append(len(merged.undefined))
        real(merged, sink)

    monkeypatch.setattr(report_symbols, "report_undefined", watched)
    cubins = demo.cubins("sm_100")[::-1]
    pylink.link(cubins, arch="sm_100", profile_aprof=tmp_path / "link.aprof")
    assert looked_for == []
    with pytest.raises(pylink.LinkError):
        pylink.link(cubins[:1], arch="sm_100")
    assert looked_for


@oracle.needs_oracle
def test_a_square_planted_in_a_phase_of_a_link_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder, names = inputs.cubins("100", "15KB", COUNT)

    def planted(sink: Sink, merged: Merged) -> Placed:
        """Layout, and as much processor time as the square of the inputs."""
        until = time.thread_time_ns() + PLANTED_NS * (len(merged.objects.names) / COUNT) ** 2
        while time.thread_time_ns() < until:
            pass
        return real_layout(sink, merged)

    monkeypatch.setattr(pipeline, "layout", planted)
    monkeypatch.setattr(replay, "layout", planted)
    monkeypatch.setattr(replay, "MAX_SECONDS", 1.5)
    path = tmp_path / "link.aprof"
    found: list[Fit] = []
    # On a machine that does much else, a run may have no forecast; it never has a smaller one.
    while not any(fit.growth.steep for fit in found) and len(found) < PLANTED_RUNS:
        pylink.link([folder / name for name in names], arch="sm_100", profile_aprof=path)
        found += [fit for fit in fit_report(read(path)) if fit.routine == "layout"]
    assert any(fit.growth.steep for fit in found)
    assert all(fit.model is None or is_steep(fit.model) for fit in found)
