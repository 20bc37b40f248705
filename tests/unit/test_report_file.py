"""Report files: what is written, and that what is read says the same."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from helpers.report_link import PHASES, link_report
from hypothesis import given, settings
from hypothesis import strategies as st

from pylink.report import ReportError, parse_report, read_report, report_bytes, write_report
from pylink.report.file.frames import Frames, with_length
from pylink.report.model import (
    Action,
    Instance,
    MessageType,
    Metric,
    Process,
    Report,
    RuleItem,
    RuleMessage,
    RuleResult,
    Scope,
    Section,
    ValueKind,
)
from pylink.report.proto import messages as pb

# The smallest report that Nsight Compute opens: one action, three metrics.
SMALLEST = bytes.fromhex(
    "4e565200 02000000 0807 5a000000 0800 1001 2238"
    "0a14 6c696e6b5f5f70686173655f74696d652e73756d"
    "0a14 6c696e6b5f5f62797465735f726561642e73756d"
    "0a0a 6c696e6b5f5f61726368 284e 3216 089221 1209 6c6f63616c686f7374 1a06 70796c696e6b 3800"
    "4a000000 0801 1000 1801 2000 2a0472656164 320472656164 3a0472656164 4001 4a00 5200 5a00"
    "6a08 0800 1204 2887ad4b 6a0d 0801 1209 190000000000000c40 6a0b 0802 1207 0a05 736d5f3830"
    "7a00"
)


def headers(data: bytes) -> list[pb.BlockHeader]:
    frames = Frames("test", data)
    frames.read_file_header()
    found = []
    while (block := frames.read_block_header()) is not None:
        found.append(block[0])
        frames.position = block[1]
    return found


def report_of(*metrics: Metric) -> Report:
    action = Action("a", "a", "a")
    for metric in metrics:
        action.add(metric)
    return Report(Process(1), actions=[action])


def metrics_of(report: Report) -> dict[str, Metric]:
    return parse_report(report_bytes(report)).actions[0].metrics


def test_smallest_report_is_read() -> None:
    assert len(SMALLEST) == 182
    report = parse_report(SMALLEST)
    assert report.version == 7
    assert report.process == Process(4242, "localhost", "pylink")
    (action,) = report.actions
    assert (action.function_name, action.thread_id, action.program_handle) == ("read", 1, 1)
    assert {name: (each.value, each.kind) for name, each in action.metrics.items()} == {
        "link__phase_time.sum": (1234567, ValueKind.UINT64),
        "link__bytes_read.sum": (3.5, ValueKind.DOUBLE),
        "link__arch": ("sm_80", ValueKind.STRING),
    }


def test_report_survives_being_written(tmp_path: Path) -> None:
    report = link_report()
    write_report(report, tmp_path / "link.ncu-rep")
    assert read_report(tmp_path / "link.ncu-rep") == report
    assert [each.name for each in tmp_path.iterdir()] == ["link.ncu-rep"]


def test_output_depends_on_the_report_alone() -> None:
    assert report_bytes(link_report()) == report_bytes(link_report())


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "old.ncu-rep"
    path.write_bytes(b"old")
    with pytest.raises(ReportError, match=r"metric 'm'.* as uint64"):
        write_report(report_of(Metric("m", 1 << 64)), path)
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["old.ncu-rep"]


def test_ranges_have_blocks_of_their_own() -> None:
    report = Report(Process(1))
    for scope in (Scope.LAUNCH, Scope.RANGE, Scope.RANGE, Scope.LAUNCH):
        report.actions.append(Action(scope=scope))
    counts = [(each.NumResults, each.NumRangeResults) for each in headers(report_bytes(report))]
    assert counts == [(0, 0), (1, 0), (0, 2), (1, 0)]
    scopes = [each.scope for each in parse_report(report_bytes(report)).actions]
    assert scopes == [each.scope for each in report.actions]


def test_every_block_names_its_process() -> None:
    report = Report(Process(1, "host", "first"))
    other = Process(2, "host", "second")
    report.actions = [Action("a"), Action("b", process=other), Action("c")]
    blocks = headers(report_bytes(report))
    assert [each.Process.ProcessID for each in blocks] == [1, 1, 2, 1]
    assert parse_report(report_bytes(report)) == report


def test_a_block_holds_only_names_that_are_new() -> None:
    report = report_of(Metric("a", 1), Metric("b", 2))
    total = Action(scope=Scope.RANGE)
    total.set("b", 3)
    total.set("c", 4)
    report.actions.append(total)
    names = [list(each.StringTable.Strings) for each in headers(report_bytes(report))]
    assert names == [[], ["a", "b"], ["c"]]
    again = parse_report(report_bytes(report))
    assert {name: each.value for name, each in again.actions[1].metrics.items()} == {"b": 3, "c": 4}


def test_names_may_come_after_the_results_that_use_them() -> None:
    data = bytearray(b"NVR\0" + with_length(pb.FileHeader(Version=7).SerializeToString()))
    result = pb.ProfileResult()
    result.MergeFromString(_payload(SMALLEST))
    header = pb.BlockHeader(NumResults=1, PayloadSize=4 + len(result.SerializeToString()))
    data += with_length(header.SerializeToString()) + with_length(result.SerializeToString())
    late = pb.BlockHeader()
    late.StringTable.Strings.extend(["x", "y", "z"])
    data += with_length(late.SerializeToString())
    assert list(parse_report(bytes(data)).actions[0].metrics) == ["x", "y", "z"]


def _payload(data: bytes) -> bytes:
    """The last message of a file."""
    frames = Frames("test", data)
    frames.read_file_header()
    found = frames.read_block_header()
    assert found is not None
    return frames.read_message(pb.ProfileResult, found[1])[1]


@pytest.mark.parametrize(
    ("metric", "value", "kind"),
    [
        (Metric("m", 0), 0, ValueKind.UINT64),
        (Metric("m", (1 << 64) - 1), (1 << 64) - 1, ValueKind.UINT64),
        (Metric("m", -3), -3.0, ValueKind.DOUBLE),
        (Metric("m", 0.5), 0.5, ValueKind.DOUBLE),
        (Metric("m", 0.5, ValueKind.FLOAT), 0.5, ValueKind.FLOAT),
        (Metric("m", 7, ValueKind.UINT32), 7, ValueKind.UINT32),
        (Metric("m", ""), "", ValueKind.STRING),
        (Metric("m", "größer"), "größer", ValueKind.STRING),
    ],
)
def test_values_keep_their_kind(metric: Metric, value: object, kind: ValueKind) -> None:
    found = metrics_of(report_of(metric))["m"]
    assert (found.value, found.kind) == (value, kind)


def test_instances_keep_values_kinds_and_ids() -> None:
    rows = [Instance(1, "a"), Instance(2.5, 7), Instance("x"), Instance(3, 9, ValueKind.UINT32)]
    found = metrics_of(report_of(Metric("m", None, instances=rows)))["m"]
    assert found.instances == rows
    assert found.value is None
    assert not found.has_ids
    assert found.by_id() == {"a": 1, 7: 2.5, 9: 3}


def test_metric_without_value_is_not_written() -> None:
    assert list(metrics_of(report_of(Metric("nothing"), Metric("m", 1)))) == ["m"]


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (Metric("m", 1 << 32, ValueKind.UINT32), "4294967296 cannot be stored as uint32"),
        (Metric("m", "x", ValueKind.DOUBLE), "'x' cannot be stored as double"),
        (Metric("m", 1, ValueKind.ANY), "a value cannot be stored as"),
    ],
)
def test_values_that_a_file_cannot_hold(metric: Metric, reason: str) -> None:
    with pytest.raises(ReportError, match=f"action 'a': metric 'm'.*{reason}"):
        report_bytes(report_of(metric))


def test_fields_that_a_file_cannot_hold() -> None:
    report = report_of(Metric("m", 1))
    report.actions[0].sections.append(Section("S", "S", order=-1))
    with pytest.raises(ReportError, match=r"Section\.order"):
        report_bytes(report)


def test_fields_of_newer_tools_are_kept() -> None:
    extra = b"\xfa\x3f\x03new"  # field 1023
    report = link_report()
    action = report.actions[3]
    marked: list[Any] = [
        report,
        report.process,
        report.session,
        report.sources[0],
        action,
        action.metrics["link__arch"],
        action.sections[0],
        action.rule_results[0],
        action.rule_results[0].items()[0],
        action.nvtx,
    ]
    for each in marked:
        each.unknown = extra
    report.block_unknown = extra
    data = report_bytes(report)
    # One for each place, of the process and the shared section in each block and action.
    assert data.count(extra) > len(marked)
    again = parse_report(data)
    assert again == report
    assert report_bytes(again) == data


def test_numbers_that_newer_tools_gave_meaning_are_kept() -> None:
    report = report_of(Metric("m", 1))
    result = RuleResult("R", "R")
    result.add(RuleItem(RuleMessage("speed up", MessageType.OPTIMIZATION)))
    result.add(RuleItem(RuleMessage("?", 77)))
    report.actions[0].rule_results.append(result)
    report.actions[0].api = 5
    again = parse_report(report_bytes(report)).actions[0]
    assert [each.type for each, _ in again.rule_results[0].messages()] == [4, 77]
    assert again.api == 5


def test_sections_of_one_definition_are_one_object() -> None:
    again = parse_report(report_bytes(link_report()))
    assert again.actions[0].sections[0] is again.actions[1].sections[0]


def test_newer_versions_are_read() -> None:
    report = Report(version=9)
    assert parse_report(report_bytes(report)).version == 9


def test_large_reports_are_split_into_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pylink.report.file.writer._BLOCK_SIZE", 100)
    report = link_report()
    assert len(headers(report_bytes(report))) == 2 + len(PHASES)
    assert parse_report(report_bytes(report)) == report


def test_an_action_larger_than_a_message_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_of(Metric("m", "x" * 1000))
    monkeypatch.setattr("pylink.report.file.writer._MESSAGE_LIMIT", 1000)
    with pytest.raises(ReportError, match="action 'a' has more than 2 GiB of data"):
        report_bytes(report)


def test_missing_protobuf_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['google.protobuf'] = None\n"
        "import pylink.report as r\n"
        "r.IContext(None)\n"
        "try: r.load_report('x')\n"
        "except ImportError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'pylink-cuda[report]'" in said.stdout


def test_names_of_attributes_are_those_of_the_format() -> None:
    """`Action` has an attribute for each field of both its messages."""
    renamed = {"sections", "metrics", "scope", "process", "unknown"}
    plain = {each.name.replace("_", "") for each in fields(Action)} - renamed
    for message in (pb.ProfileResult, pb.RangeResult):
        for field in message.DESCRIPTOR.fields:
            name = field.name.lower().removeprefix("kernel") if "Name" in field.name else field.name
            assert name.lower() in plain | {"metricresults", "sections"}, field.name


def test_lengths_are_little_endian() -> None:
    assert with_length(b"abc") == struct.pack("<I", 3) + b"abc"


def test_text_that_is_no_utf8_is_escaped() -> None:
    report = report_of(Metric("m", "caf\udce9"), Metric("caf\udce9", 1))
    report.actions[0].function_name = "caf\udce9"
    again = parse_report(report_bytes(report)).actions[0]
    assert again.function_name == r"caf\udce9"
    assert again.metrics["m"].value == r"caf\udce9"
    damaged = SMALLEST.replace(b"sm_80", b"sm_\xff0").replace(b"link__arch", b"link__\xffrch")
    metrics = parse_report(damaged).actions[0].metrics
    assert metrics[r"link__\xffrch"].value == r"sm_\xff0"


SCALARS = st.one_of(
    st.integers(0, (1 << 64) - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
METRICS = st.builds(
    Metric,
    NAMES,
    SCALARS,
    instances=st.lists(st.builds(Instance, SCALARS, st.none() | SCALARS), max_size=4),
)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), NAMES, st.lists(METRICS, max_size=4)), max_size=5))
def test_any_values_survive(drawn: list[tuple[bool, str, list[Metric]]]) -> None:
    report = Report(Process(1))
    for ranged, name, metrics in drawn:
        scope = Scope.RANGE if ranged else Scope.LAUNCH
        action = Action("" if ranged else name, scope=scope)
        for metric in metrics:
            action.add(metric)
        report.actions.append(action)
    assert parse_report(report_bytes(report)) == report
