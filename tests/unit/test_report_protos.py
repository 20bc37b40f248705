"""The compiled .proto files are up to date, and the model has a place for each field."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pylink.report import model
from pylink.report.file.conversion import SPECIAL_CLASSES, plan_for
from pylink.report.proto import messages

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
    (model.Session, messages.ReportSessionDetails),
    (model.Process, messages.ProcessInfo),
    (model.Source, messages.SourceData),
    (model.CpuStack, messages.CpuStacktraceStackMessage),
    (model.NvtxState, messages.NvtxState),
    (model.Section, messages.ProfilerSection),
    (model.RuleResult, messages.RuleResult),
    (model.SeriesInfo, messages.ProfileSeriesInfoMessage),
    (model.ClockStatus, messages.ProfilerClockStatusMessage),
]


def test_the_model_has_every_field() -> None:
    seen: set[tuple[type, str]] = set()
    waiting = [(cls, message()) for cls, message in ROOTS]
    while waiting:
        cls, message = waiting.pop()
        name = message.DESCRIPTOR.full_name
        if (cls, name) in seen or cls in SPECIAL_CLASSES:
            continue
        seen.add((cls, name))
        known = plan_for(cls, message)
        assert set(known.by_name) == {field.name for field in message.DESCRIPTOR.fields}, name
        # The widgets alone share a class, and have some of its switches each.
        assert not known.fieldless or cls is model.MemoryWidget, name
        for field in known.fields:
            below = getattr(message, field.name)
            assert (field.submodel is None) == (
                message.DESCRIPTOR.fields_by_name[field.name].message_type is None
            )
            if field.submodel is not None:
                waiting.append((field.submodel, below.add() if field.repeated else below))
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
    for ours, name in enumerations:
        words = getattr(messages, name).DESCRIPTOR.enum_types_by_name["Value"].values_by_number
        assert {each.value for each in ours} == set(words), name
