"""Damaged report files: one clear error that names file, block and offset."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from helpers.report_link import link_report
from hypothesis import given, settings
from hypothesis import strategies as st

from pylink.report import MalformedReport, load_report, parse_report, report_bytes
from pylink.report.file.frames import with_length
from pylink.report.proto import messages as pb

REPORT = report_bytes(link_report())
MAGIC = b"NVR\0"
HEADER = MAGIC + with_length(pb.FileHeader(Version=7).SerializeToString())


def result(**fields: object) -> pb.ProfileResult:
    message = pb.ProfileResult(
        ThreadID=1,
        APICallID=0,
        ProgramHandle=1,
        KernelID=0,
        KernelMangledName="k",
        KernelFunctionName="k",
        KernelDemangledName="k",
        WorkDimensions=1,
    )
    for name in ("GlobalWorkOffset", "GridSize", "BlockSize", "Source"):
        getattr(message, name).SetInParent()
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def block(payload: bytes, **counts: int) -> bytes:
    header = pb.BlockHeader(PayloadSize=len(payload))
    for name, count in counts.items():
        setattr(header, name, count)
    return HEADER + with_length(header.SerializeToString()) + payload


ENTRY = with_length(result().SerializeToString())
NAMELESS = result()
NAMELESS.MetricResults.add(NameId=3).MetricValue.Uint64Value = 1
INCOMPLETE = result()
INCOMPLETE.ClearField("KernelID")
BAD = {
    "empty": (b"", "file: header, offset 0x0: this is not a report"),
    "other": (b"\x7fELF" + bytes(60), "file: header, offset 0x0: this is not a report"),
    "magic alone": (MAGIC, "header, offset 0x4: 0 bytes are left where a FileHeader should begin"),
    "cut header": (HEADER[:-1], "header, offset 0x4: FileHeader of 2 bytes does not fit in the 1"),
    "no version": (
        MAGIC + with_length(b""),
        "header, offset 0x8: FileHeader lacks required fields: V",
    ),
    "old": (MAGIC + with_length(b"\x08\x06"), "header, offset 0x0: version 6 .* is older than 7"),
    "cut length": (HEADER + b"\1", "block 0, offset 0xa: 1 bytes are left where a BlockHeader"),
    "long length": (
        HEADER + b"\xff\xff\xff\xff",
        "block 0, offset 0xa: BlockHeader of 4294967295 bytes does not fit in the 0 left",
    ),
    "no message": (HEADER + with_length(b"\xff"), "block 0, offset 0xe: BlockHeader is damaged"),
    "payload cut": (
        block(ENTRY, NumResults=1)[:-1],
        "block 0, offset 0xa: the payload should have .* bytes, but only .* follow",
    ),
    "payload size too small": (
        block(ENTRY, NumResults=1, PayloadSize=len(ENTRY) - 1),
        "block 0, offset 0x.*: ProfileResult of .* bytes does not fit",
    ),
    "entries missing": (
        block(ENTRY, NumResults=1 << 31),
        "block 0, offset 0x.*: the payload ends after 1 of 2147483648 ProfileResult",
    ),
    "entries left": (
        block(ENTRY * 2, NumResults=1),
        "block 0.* bytes of payload belong to no entry",
    ),
    "required field": (
        block(with_length(INCOMPLETE.SerializePartialToString()), NumResults=1),
        "block 0, offset 0x.*: ProfileResult lacks required fields: KernelID",
    ),
    "name out of range": (
        block(with_length(NAMELESS.SerializeToString()), NumResults=1),
        "block 0.*the number of a metric's name is not below 0",
    ),
    "garbage at the end": (REPORT + b"garbage", "block 3, offset 0x.*: "),
    "nested too deeply": (
        block(with_length(b"\x8a\x01" + b"\x2a\x02" * 5000), NumResults=1),
        "block 0.*ProfileResult is damaged",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_damage_is_named(name: str) -> None:
    data, message = BAD[name]
    with pytest.raises(MalformedReport, match=message) as caught:
        parse_report(data, "file")
    assert caught.value.file == "file"
    assert 0 <= caught.value.offset <= len(data)


def test_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no.ncu-rep"
    path.write_bytes(b"nothing")
    with pytest.raises(MalformedReport, match=f"^{path}: "):
        load_report(path)
    with pytest.raises(FileNotFoundError):
        load_report(tmp_path / "missing")


def test_lenient_loading_gives_no_ranges(tmp_path: Path) -> None:
    path = tmp_path / "no.ncu-rep"
    path.write_bytes(b"nothing")
    assert len(load_report(path, strict=False)) == 0
    assert list(load_report(tmp_path / "missing", strict=False)) == []


def test_every_truncation_is_an_error() -> None:
    whole_link = set()
    for end in range(len(REPORT)):
        try:
            parse_report(REPORT[:end])
        except MalformedReport:
            continue
        whole_link.add(end)
    # The ends of the file header and of the blocks: what is before is a report of fewer blocks.
    assert len(whole_link) == 3


@settings(max_examples=150)
@given(st.data())
def test_changed_bytes_raise_nothing_else(data: st.DataObject) -> None:
    changed = bytearray(REPORT)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at] = data.draw(st.integers(0, 255))
    _survives(bytes(changed))


@settings(max_examples=150)
@given(st.binary(max_size=200))
def test_arbitrary_payloads_raise_nothing_else(payload: bytes) -> None:
    _survives(HEADER + payload)
    _survives(block(struct.pack("<I", len(payload)) + payload, NumResults=1))
    _survives(block(struct.pack("<I", len(payload)) + payload, NumRangeResults=1))


def _survives(data: bytes) -> None:
    """Reading gives a report that can be written, or the one error."""
    try:
        report = parse_report(data)
    except MalformedReport:
        return
    assert parse_report(report_bytes(report)).version == report.version
