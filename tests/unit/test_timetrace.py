"""Traces: the fields that clang and lld write, events that nest, and readable faults."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers import demo

import pylink
from pylink.profile import timetrace
from pylink.profile.timetrace import Event, MalformedTrace, load

CUBINS = demo.cubins("sm_100")
PHASES = ["init", "read", "merge", "layout", "relocate", "finalize", "write"]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pylink.LinkResult]:
    path = tmp_path_factory.mktemp("trace") / "link.json"
    return path, pylink.link(CUBINS, arch="sm_100", output=path.parent / "out", time_trace=path)


def complete(events: list[Event]) -> list[Event]:
    return [
        event
        for event in events
        if event["ph"] == "X" and not str(event["name"]).startswith("Total")
    ]


def span(event: Event) -> tuple[int, int]:
    start, duration = event["ts"], event["dur"]
    assert isinstance(start, int)
    assert isinstance(duration, int)
    return start, start + duration


def test_fields_are_those_of_clang(trace: tuple[Path, pylink.LinkResult]) -> None:
    document = json.loads(trace[0].read_text())
    assert set(document) == {"traceEvents", "beginningOfTime"}
    assert abs(document["beginningOfTime"] / 1e6 - time.time()) < 3600
    for event in document["traceEvents"]:
        if event["ph"] == "M":
            assert set(event) == {"cat", "pid", "tid", "ts", "ph", "name", "args"}
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            continue
        assert event["ph"] == "X"
        assert set(event) == {"pid", "tid", "ts", "ph", "dur", "name", "args"}
        if event["name"].startswith("Total "):
            assert set(event["args"]) == {"count", "avg ms"}
            assert event["ts"] == 0
        else:
            assert isinstance(event["args"]["detail"], str)
    assert document["traceEvents"] == load(trace[0])


def test_events_nest(trace: tuple[Path, pylink.LinkResult]) -> None:
    events = complete(load(trace[0]))
    assert events
    for lane in {event["tid"] for event in events}:
        open_ends: list[int] = []
        for event in (candidate for candidate in events if candidate["tid"] == lane):
            start, end = span(event)
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1], event
            open_ends.append(end)


def test_the_link_contains_its_phases_and_they_their_steps(
    trace: tuple[Path, pylink.LinkResult],
) -> None:
    path, result = trace
    events = complete(load(path))
    assert events[0]["name"] == "Link"
    whole = span(events[0])
    by_name = {event["name"]: event for event in events}
    phases = [span(by_name[tag]) for tag in PHASES]
    assert all(whole[0] <= start and end <= whole[1] for start, end in phases)
    assert all(phase[1] <= other[0] for phase, other in pairwise(phases))
    assert result.profile is not None
    for phase in result.profile:
        outer = span(by_name[phase.tag])
        for step in phase.steps:
            start, end = span(by_name[step.name])
            assert outer[0] <= start
            assert end <= outer[1]


def test_totals_stand_alone_and_add_up(trace: tuple[Path, pylink.LinkResult]) -> None:
    path, result = trace
    events = load(path)
    totals = [event for event in events if str(event["name"]).startswith("Total ")]
    lanes = [event["tid"] for event in totals]
    assert len(set(lanes)) == len(lanes)
    assert not set(lanes) & {event["tid"] for event in complete(events)}
    assert [event["dur"] for event in totals] == sorted(
        (event["dur"] for event in totals), key=lambda value: -int(str(value))
    )
    found = {event["name"]: event["args"] for event in totals}
    read = found["Total Read"]
    assert isinstance(read, dict)
    assert result.profile is not None
    times = [file.read_ns for file in result.profile.files]
    assert read["count"] == len(times)
    assert read["avg ms"] == round(sum(times) / len(times) / 1e6, 3)


def test_inputs_that_took_long_have_events_of_their_own(
    trace: tuple[Path, pylink.LinkResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = trace[1].profile
    assert profile is not None
    limit = sorted(file.read_ns for file in profile.files)[len(profile.files) // 2]
    monkeypatch.setattr(timetrace, "FILE_THRESHOLD_NS", limit)
    shown = [event["args"] for event in timetrace.trace_events(profile) if event["name"] == "Read"]
    long = {file.name for file in profile.files if file.read_ns >= limit}
    assert {args["detail"] for args in shown if isinstance(args, dict)} == long


def test_the_command_line_writes_one(tmp_path: Path) -> None:
    argv = ["-arch=sm_100", *map(str, CUBINS), "-o", "out.cubin", "--time-trace", "t.json"]
    done = subprocess.run([sys.executable, "-m", "pylink", *argv], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert load(tmp_path / "t.json")


def test_a_trace_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    target = tmp_path / "missing" / "t.json"
    with pytest.raises(pylink.LinkError, match=r"missing/t\.json"):
        pylink.link(CUBINS, arch="sm_100", time_trace=target)


@pytest.mark.parametrize("option", ["time_trace", "Map", "depfile"])
def test_a_folder_is_no_file(tmp_path: Path, option: str) -> None:
    asked: dict[str, Any] = {option: tmp_path, "output": tmp_path / "out.cubin"}
    message = f"Could not open output file '{tmp_path}'\n    note: Is a directory"
    with pytest.raises(pylink.LinkError, match=message):
        pylink.link(CUBINS, arch="sm_100", **asked)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", ":1: Expecting value"),
        (b'{"traceEvents": [\n{"ph": ]}', ":2: Expecting value"),
        (b"\n\n\xff", ":3: not UTF-8"),
        (b'{"other": 1}', ":1: no list of traceEvents"),
        (b"[1]", ":1: event 0: not an object"),
        (b'[{"ph": "X"}]', ":1: event 0: no text 'name'"),
        (b'[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 0}]', "event 0: no number 'dur'"),
        (b'[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": -4, "dur": 0}]', "'ts' is -4"),
        (b'[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": NaN, "dur": 0}]', "'ts' is nan"),
        (b'[{"ph": "X", "name": "a", "pid": true, "tid": 1, "ts": 0, "dur": 0}]', "no number"),
        (b"[" * 100_000, ":1: nested too deeply"),
    ],
)
def test_faults_name_file_and_place(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(text)
    with pytest.raises(MalformedTrace) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
