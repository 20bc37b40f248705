"""The real module `ncu_report`, and pylink in its place, over the same reports."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from helpers import demo, ncu, oracle
from helpers.ncu_dump import dump, instructions
from helpers.report_link import link_report
from helpers.report_nvtx import RESULTS, TWO, nvtx_report

import pylink
import pylink.report
from pylink.report import parse_report, read_report, report_bytes, write_report
from pylink.report.model import Report

pytestmark = ncu.needs_ncu_report

NVDISASM = oracle.optional_tool("nvdisasm")
FILTERS: list[tuple[list[str], list[str]]] = [
    *(([each], []) for each in RESULTS),
    *((includes, excludes) for includes, excludes, _ in TWO),
]


def valueless(report: Report) -> list[str]:
    """Metrics that have neither value nor instances: the real module crashes on them."""
    return [
        each.name
        for action in report.actions
        for each in action.metrics.values()
        if each.value is None and not each.instances
    ]


def our_dump(path: Path, skipped: list[str], filters: Any = ()) -> Any:
    return json.loads(json.dumps(dump(pylink.report, str(path), skipped, filters)))


@ncu.needs_samples
@pytest.mark.parametrize("path", ncu.SAMPLES, ids=lambda path: path.stem)
def test_reports_of_nsight_compute_say_the_same(path: Path) -> None:
    skipped = valueless(read_report(path))
    assert our_dump(path, skipped) == ncu.real_dump(path, skipped)


@ncu.needs_samples
@pytest.mark.parametrize("path", ncu.SAMPLES, ids=lambda path: path.stem)
def test_rewritten_reports_say_the_same(path: Path, tmp_path: Path) -> None:
    """All but the metrics without values survives: the tools see what they saw before."""
    report = read_report(path)
    skipped = valueless(report)
    written = tmp_path / path.name
    write_report(report, written)
    again = read_report(written)
    for action in report.actions:
        for name in skipped:
            action.metrics.pop(name, None)
    assert again == report
    assert our_dump(written, []) == ncu.real_dump(written)
    assert ncu.ncu_csv(written, "--page", "details") == ncu.ncu_csv(path, "--page", "details")


@ncu.needs_samples
@pytest.mark.parametrize("path", ncu.SAMPLES, ids=lambda path: path.stem)
def test_rule_messages_are_those_that_ncu_prints(path: Path) -> None:
    """The CLI prints each message under its section, wrapped and with its links resolved."""
    said = _squeezed(ncu.ncu(path, "--page", "details"))
    sections = {each.identifier for each in read_report(path).actions[0].sections}
    count = 0
    for result in read_report(path).actions[0].rule_results:
        if result.section_identifier and result.section_identifier not in sections:
            continue
        for message, _ in result.messages():
            text = re.sub(r"@section:[^:]*:([^@]*)@", r"\1", message.message)
            text = re.sub(r"@url:([^:]*):([^@]*)@", r"\1 (\2)", text)
            assert _squeezed(text) in said
            count += 1
    assert count > 0


@ncu.needs_samples
@pytest.mark.skipif(NVDISASM is None, reason="needs nvdisasm: pip install nvidia-cuda-nvdisasm")
@pytest.mark.parametrize("path", ncu.SAMPLES, ids=lambda path: path.stem)
def test_instructions_are_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert NVDISASM is not None
    monkeypatch.setenv("PATH", str(Path(NVDISASM).parent), prepend=os.pathsep)
    ours = instructions(pylink.report, str(path))
    assert len(ours) > 10
    assert ours == ncu.real("instructions", str(path))


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


@ncu.needs_samples
@pytest.mark.parametrize("path", ncu.SAMPLES, ids=lambda path: path.stem)
def test_units_are_those_that_ncu_prints(path: Path) -> None:
    names, units = ncu.ncu_csv(path, "--page", "raw", "--print-units", "base")[:2]
    action = pylink.report.load_report(path)[0][0]
    shown = {name: unit for name, unit in zip(names, units, strict=True) if name in action}
    ours = {name: action[name].unit() for name in shown}
    assert len(shown) > 700
    assert ours == shown


@ncu.needs_samples
@pytest.mark.parametrize("path", ncu.SAMPLES, ids=lambda path: path.stem)
def test_values_are_those_that_ncu_prints(path: Path) -> None:
    names, _, values = ncu.ncu_csv(path, "--page", "raw", "--print-units", "base", "--print-fp")[:3]
    action = pylink.report.load_report(path)[0][0]
    pairs = zip(names, values, strict=True)
    told = {name: shown for name, shown in pairs if name in action and shown not in ("", "no data")}
    assert len(told) > 700
    for name, shown in told.items():
        value = action[name].value()
        if isinstance(value, str):
            assert shown == value
        else:
            # Two places, rounded away from 0.
            assert float(shown.replace(",", "")) == pytest.approx(value, abs=0.0051), name


def test_our_report_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "link.ncu-rep"
    write_report(link_report(), path)
    found = ncu.real_dump(path)
    assert found == our_dump(path, [])
    assert [each["str"] for each in found[0]["actions"]][-2:] == ["write", "range"]


def test_filters_select_the_same(tmp_path: Path) -> None:
    path = tmp_path / "nvtx.ncu-rep"
    write_report(nvtx_report(), path)
    found = ncu.real_dump(path, filters=FILTERS)
    assert found == our_dump(path, [], FILTERS)
    expected = [list(each) for each in [*RESULTS.values(), *(each[2] for each in TWO)]]
    assert found[0]["filters"] == expected


@pytest.mark.parametrize("count", [0, 1, 500])
def test_many_actions(count: int, tmp_path: Path) -> None:
    report = link_report()
    report.actions = [report.actions[0]] * count
    path = tmp_path / "many.ncu-rep"
    write_report(report, path)
    (part,) = ncu.real_dump(path)
    assert len(part["actions"]) == count
    assert parse_report(report_bytes(report)) == report


@pytest.mark.skipif(
    not ncu.DEFINITIONS.is_dir(),
    reason="needs the definitions of reports: apt install nsight-compute",
)
def test_fields_are_those_of_the_published_definitions(tmp_path: Path) -> None:
    """Each field of each message has the same name, number, type and label, and lacks none."""
    protoc = pytest.importorskip("grpc_tools.protoc", reason="grpcio-tools is not installed")

    texts = {path.name: path for path in ncu.DEFINITIONS.glob("*.proto")}
    imports = re.findall(r'import "([^"]+)"', "".join(each.read_text() for each in texts.values()))
    places = {Path(each).name: each for each in imports}
    for name, path in texts.items():
        target = tmp_path / places.get(name, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    arguments = [f"-I{tmp_path}", f"--descriptor_set_out={tmp_path}/set", "--include_imports"]
    files = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.proto")]
    assert protoc.main(["protoc", *arguments, *files]) == 0
    theirs = descriptor_pb2.FileDescriptorSet()
    theirs.ParseFromString((tmp_path / "set").read_bytes())
    messages = {}
    for file in theirs.file:
        for each in file.message_type:
            messages[f".{file.package}.{each.name}"] = each
            for inner in each.nested_type:
                messages[f".{file.package}.{each.name}.{inner.name}"] = inner
    seen = _compared(messages)
    assert len(seen) > 90


def _compared(messages: dict[str, Any]) -> set[tuple[str, str]]:
    from pylink.report.proto import messages as pb  # noqa: PLC0415 -- what is compared

    seen: set[tuple[str, str]] = set()
    package = ".NV.Profiler.Messages."
    waiting: list[tuple[str, Any]] = [
        (package + each, getattr(pb, each).DESCRIPTOR)
        for each in ("FileHeader", "BlockHeader", "ProfileResult", "RangeResult")
    ]
    while waiting:
        name, ours = waiting.pop()
        if (name, ours.full_name) in seen:
            continue
        seen.add((name, ours.full_name))
        for field in messages[name].field:
            found = ours.fields_by_number[field.number]
            kinds = (field.LABEL_REPEATED, field.LABEL_REQUIRED)
            assert (found.name, found.type) == (field.name, field.type), name
            assert (found.is_repeated, found.is_required) == tuple(
                field.label == kind for kind in kinds
            ), f"{name}.{field.name}"
            if found.message_type is not None:
                waiting.append((field.type_name, found.message_type))
    return seen


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100"])
def test_the_report_of_a_link_says_the_same(
    arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every value of every action and instance, what they belong to, and what ncu prints."""
    monkeypatch.setenv("PYLINK_SECTIONS", str(tmp_path / "sections"))
    path = tmp_path / "link.ncu-rep"
    pylink.link(demo.cubins(arch), arch=arch, profile=path, set=["full"])
    found = ncu.real_dump(path)
    assert found == our_dump(path, [])
    assert sum(len(action["metrics"]) for span in found for action in span["actions"]) > 300
    options = ("--page", "raw", "--print-units", "base", "--print-fp")
    names, units, *rows = ncu.ncu_csv(path, *options)
    (span,) = pylink.report.load_report(path)
    for row, action in zip(rows, span, strict=True):
        for name, unit, shown in zip(names, units, row, strict=True):
            if name in action and shown:
                value = action[name].value()
                assert action[name].unit() == unit, name
                if isinstance(value, str):
                    assert shown == value
                else:
                    assert float(shown.replace(",", "")) == pytest.approx(value, abs=0.0051), name
