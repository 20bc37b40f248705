"""Pass finalize: files whose optimized code keeps the schedule of an older compiler."""

from __future__ import annotations

import struct

import pytest
from helpers import exits_builder as builder
from helpers.exits_builder import Kernel, build, exit_, plain_slot
from helpers.exits_update import with_bits

import pylink

DADD = struct.pack("<H", 0x7229) + builder.MOVE[2:]
SLOW = with_bits(DADD, 104, 119, 0x3FDE)


def told(kernel: Kernel, arch: str, release: str) -> list[str]:
    """The remarks of pass finalize, of an object that names no toolkit: it may be of any."""
    remarks = pylink.link(
        [pylink.Input(build([kernel]), name="a.o")],
        arch=arch,
        nvlink_version=release,  # type: ignore[arg-type]
        pass_remarks_missed="finalize",
    ).diagnostics
    return [remark.message for remark in remarks]


@pytest.mark.parametrize(("release", "count"), [("13.0", 0), ("13.2", 0), ("13.3", 1), ("13.5", 1)])
def test_a_file_with_fp64_keeps_its_schedule(release: str, count: int) -> None:
    kernel = Kernel("k", [plain_slot(), plain_slot(DADD), exit_()])
    messages = told(kernel, "sm_100", release)
    assert len(messages) == count
    for message in messages:
        assert message.startswith("a.o keeps the schedule of CUDA 12 in 1 functions")


def test_code_that_was_not_scheduled_keeps_nothing() -> None:
    slots = [plain_slot(with_bits(word, 104, 119, 0x3FDE)) for word in (builder.MOVE, DADD)]
    assert told(Kernel("k", slots), "sm_100", "13.5") == []


def test_integers_have_the_same_schedule_but_for_sm_120() -> None:
    assert told(Kernel("k", [plain_slot(), exit_()]), "sm_100", "13.5") == []
