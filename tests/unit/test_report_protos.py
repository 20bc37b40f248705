"""The compiled .proto files are up to date, and the model has a place for each field."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pylink.report import model
from pylink.report.file.convert import EXCEPTIONS, plan
from pylink.report.proto import nvtx_pb2, report_pb2, rule_pb2, section_pb2, session_pb2, source_pb2

SCRIPT = Path(__file__).parents[2] / "scripts" / "compile_protos.py"


@pytest.mark.skipif(
    importlib.util.find_spec("grpc_tools") is None, reason="grpcio-tools is not installed"
)
def test_compiled_modules_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "up to date\n")


ROOTS: list[tuple[type[model.Message], Any]] = [
    (model.Session, session_pb2.ReportSessionDetails),
    (model.Process, session_pb2.ProcessInfo),
    (model.Source, source_pb2.SourceData),
    (model.CpuStack, source_pb2.CpuStacktraceStackMessage),
    (model.NvtxState, nvtx_pb2.NvtxState),
    (model.Section, section_pb2.ProfilerSection),
    (model.RuleResult, rule_pb2.RuleResult),
    (model.SeriesInfo, report_pb2.ProfileSeriesInfoMessage),
    (model.ClockStatus, report_pb2.ProfilerClockStatusMessage),
]


def test_the_model_has_every_field() -> None:
    seen: set[tuple[type, str]] = set()
    waiting = [(cls, message()) for cls, message in ROOTS]
    while waiting:
        cls, message = waiting.pop()
        name = message.DESCRIPTOR.full_name
        if (cls, name) in seen or cls in EXCEPTIONS:
            continue
        seen.add((cls, name))
        known = plan(cls, message)
        assert set(known.by_name) == {field.name for field in message.DESCRIPTOR.fields}, name
        # The widgets alone share a class, and have some of its switches each.
        assert not known.foreign or cls is model.MemoryWidget, name
        for field in known.fields:
            below = getattr(message, field.name)
            assert (field.model is None) == (
                message.DESCRIPTOR.fields_by_name[field.name].message_type is None
            )
            if field.model is not None:
                waiting.append((field.model, below.add() if field.repeated else below))
    assert len(seen) > 70


def test_enumerations_of_the_model_have_the_numbers_of_the_format() -> None:
    enumerations: list[tuple[Any, str]] = [
        (model.MessageType, "RuleMessageType"),
        (model.Severity, "FocusSeverity"),
        (model.Order, "TableOrder"),
        (model.SortKey, "SortKeyType"),
        (model.SortDirection, "SortDirectionType"),
        (model.Direction, "BarDirection"),
        (model.Alignment, "AxisAlignment"),
        (model.CollectionScope, "CollectionScope"),
        (model.Importance, "ImportanceType"),
        (model.ColorType, "ColorType"),
        (model.NvtxMessageType, "NvtxMessageType"),
        (model.NvtxPayloadType, "NvtxPayloadType"),
        (model.Platform, "PlatformType"),
    ]
    from pylink.report.proto import enums_pb2  # noqa: PLC0415 -- looked up by name

    for ours, name in enumerations:
        words = getattr(enums_pb2, name).DESCRIPTOR.enum_types_by_name["Value"].values_by_number
        assert {each.value for each in ours} == set(words), name
