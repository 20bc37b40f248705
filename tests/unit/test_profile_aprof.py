"""The routines of a link in an aprof report, and what measuring them again leaves as it was."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import demo, oracle

import pylink
from benchmarks import inputs
from pylink import pipeline
from pylink.aprof import TIME_USEC, Report, encode, fit_report, fit_table, read
from pylink.diagnostics import Sink
from pylink.phases import report_symbols
from pylink.phases.layout import layout as real_layout
from pylink.phases.results import Merged, Placed
from pylink.profile import replay
from pylink.profile.replay import FEWEST_TURNS, parts_of
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
    assert {tuple(one) for one in ways if len(one) == 1} == {("link",), ("replay",)}
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
    count = len(parts_of(len(result.profile.names)))
    assert sizes["resolve"] == sizes["parse"] == count >= 5
    resolve = next(one for one in report.routines if one.name == "resolve")
    assert report.points()[resolve.id][-1].rms == result.profile["merge"].symbols


def test_costs_add_up(linked: tuple[Report, pylink.LinkResult]) -> None:
    report, result = linked
    assert result.profile is not None
    # The link alone, which nothing that ran again is part of.
    assert report.contexts[0].parent == -1
    assert report.total == report.contexts[0].points[0].sum
    helped = sum(file.read_cpu_ns for file in result.profile.files if file.lane)
    assert abs(report.total - (result.profile.cost.thread_ns + helped) / 1000) <= 1
    below = {}
    for context in report.contexts:
        inclusive = sum(point.sum for point in context.points)
        own = sum(point.self_sum for point in context.points)
        below[context.id] = inclusive - own
        for point in context.points:
            assert 1 <= point.min <= point.max
            assert point.self_sum <= point.sum
    for context in report.contexts:
        inner = [one for one in report.contexts if one.parent == context.id]
        calls = sum(point.occ for one in inner for point in one.points)
        costs = sum(point.sum for one in inner for point in one.points)
        # Each call is rounded to whole microseconds, up to one at least.
        own = sum(point.occ for point in context.points)
        assert below[context.id] <= costs + calls + own


def test_routines_have_the_points_of_all_their_contexts(
    linked: tuple[Report, pylink.LinkResult],
) -> None:
    report, _ = linked
    for routine in report.routines:
        mine = [one for one in report.contexts if one.routine == routine.id]
        for column in ("sum", "occ", "self_sum", "sqr"):
            told = sum(getattr(point, column) for point in routine.points)
            assert told == sum(getattr(p, column) for one in mine for p in one.points)
    text = encode(report).decode()
    assert text.count("\np ") == sum(len(one.points) for one in report.routines) > 0


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


def test_what_a_helper_reads_counts_for_the_step() -> None:
    profile = pylink.link(demo.cubins("sm_100"), arch="sm_100", profile=True).profile
    assert profile is not None
    profile.cost.thread_ns = 5_000_000
    profile["init"].cost.thread_ns = 41_600
    profile["init"].steps.clear()
    (step,) = [step for step in profile["read"].steps if step.name == "read_files"]
    step.cost.thread_ns = 900_000
    for number, file in enumerate(profile.files):
        file.lane = number % 2
        file.read_cpu_ns = 50_000 if file.lane == 0 else 700_000
    report = aprof_report(profile)
    points = {routine.name: report.points()[routine.id] for routine in report.routines}
    inside = sum(50 if file.lane == 0 else 700 for file in profile.files)
    helped = sum(700 for file in profile.files if file.lane)
    assert [one.sum for one in points["link"]] == [5_000 + helped]
    assert [one.sum for one in points["init"]] == [42]  # microseconds, rounded
    (reading,) = points["read_files"]
    assert (reading.sum, reading.self_sum) == (900 + helped, 900 + helped - inside)
    (pair,) = profile.pairs
    sizes = (pair.stats.bytes_compared, len(pair.candidate.headers), len(pair.candidate.targets))
    stages = ("compare_primary", "compare_headers", "compare_targets")
    assert tuple(one.rms for name in stages for one in points[name]) == sizes


def test_parts_are_close_together_where_they_are_large() -> None:
    parts = parts_of(1600)
    assert [size for size, _ in parts] == [1600, 1131, 800, 566, 400, 200, 100, 50, 25, 12, 6, 3]
    assert [count for _, count in parts] == [2, 2, 2, 2, 2, 1, 1, 1, 2, 4, 4, 4]
    assert [size for size, _ in parts_of(12)] == [12, 10, 8, 6, 5, 4, 3]
    assert parts_of(3) == [(3, 4), (2, 4)]
    assert parts_of(2) == [(2, 4)]
    assert parts_of(1) == []


def test_parts_in_which_symbols_are_undefined_go_on(tmp_path: Path) -> None:
    # Most of the demo's modules use what only the last ones define.
    cubins = demo.cubins("sm_100")[::-1]
    path = tmp_path / "link.aprof"
    assert pylink.link(cubins, arch="sm_100", profile_aprof=path).diagnostics == ()
    report = read(path)
    names = {routine.id: routine.name for routine in report.routines}
    (top,) = [one.id for one in report.contexts if names[one.routine] == "replay"]
    (link,) = [one.id for one in report.contexts if one.parent == top]
    calls = {
        names[one.routine]: sum(point.occ for point in one.points)
        for one in report.contexts
        if one.parent == link
    }
    turn = sum(repetitions for _, repetitions in parts_of(len(cubins)))
    assert calls["layout"] == calls["finalize"] >= FEWEST_TURNS * turn
    assert calls["layout"] % turn == 0


def test_what_a_part_costs_does_not_depend_on_what_is_undefined_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Who has an undefined symbol is looked for in all inputs, whatever the size of the part.
    looked_for: list[int] = []
    real = report_symbols.report_undefined

    def watched(merged: Merged, undefined: Sequence[int], sink: Sink) -> None:
        looked_for.append(len(undefined))
        real(merged, undefined, sink)

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

    def planted(merged: Merged, sink: Sink) -> Placed:
        """Layout, and as much processor time as the square of the inputs."""
        until = time.thread_time_ns() + PLANTED_NS * (len(merged.objects.names) / COUNT) ** 2
        while time.thread_time_ns() < until:
            pass
        return real_layout(merged, sink)

    monkeypatch.setattr(pipeline, "layout", planted)
    monkeypatch.setattr(replay, "layout", planted)
    path = tmp_path / "link.aprof"
    found: list[str | None] = []
    # On a machine that does much else, a run may have no model; it never has a smaller one.
    while found.count("n^2") < 2 and len(found) < PLANTED_RUNS:
        pylink.link([folder / name for name in names], arch="sm_100", profile_aprof=path)
        (fit,) = [each for each in fit_report(read(path)) if each.routine == "layout"]
        found.append(fit.model)
    assert "n^2" in found
    assert set(found) <= {"n^2", None}
