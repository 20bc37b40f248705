"""Reads report files of pylink and of Nsight Compute into a `Report`."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from pylink.files.reading import read_incoming
from pylink.report.file.actions import ActionReader
from pylink.report.file.conversion import to_model, unknown_fields
from pylink.report.file.frames import Frames
from pylink.report.file.values import text
from pylink.report.model import VERSION, Action, Process, Report, Session, Source
from pylink.report.proto import messages as pb
from pylink.report.proto.messages import ReportSessionDetails, SourceData


class _Entry(NamedTuple):
    """An action that is decoded when the names of all blocks have been read."""

    message: Any
    encoded: bytes
    block: int | None
    offset: int
    process: Process | None


def read_report(path: str | os.PathLike[str]) -> Report:
    """Read a report file. Raises OSError if unreadable, MalformedReport if not a report."""
    return parse_report(read_incoming(path), os.fspath(path))


def parse_report(data: bytes, name: str = "<report>") -> Report:
    """Parse the report in `data`, the contents of file `name`. Raises MalformedReport."""
    frames = Frames(name, data)
    header = frames.file_header()
    if header.Version < VERSION:
        raise frames.fail(f"version {header.Version} of the format is older than {VERSION}", 0)
    report = Report(version=header.Version, unknown=unknown_fields(header))
    session = ReportSessionDetails()
    unknown: list[bytes] = []
    names: list[str] = []
    entries: list[_Entry] = []
    first = True
    while (next_block := frames.block_header()) is not None:
        block, end = next_block
        # Results may come before the block that names their metrics.
        names.extend(map(text, block.StringTable.Strings))
        session.MergeFrom(block.SessionDetails)
        unknown.append(unknown_fields(block))
        process = None
        if block.HasField("Process"):
            process = to_model(block.Process, Process, careful=True)
            if first:
                report.process, first = process, False
            if process == report.process:
                process = None
        for source, _ in frames.entries(SourceData, block.NumSources, end):
            report.sources.append(to_model(source, Source, careful=True))
        entries += _entries(frames, pb.ProfileResult, block.NumResults, end, process)
        entries += _entries(frames, pb.RangeResult, block.NumRangeResults, end, process)
        frames.end_block(end)
    report.block_unknown = b"".join(unknown)
    report.session = to_model(session, Session, careful=True)
    report.actions = _actions(frames, names, entries)
    return report


def _entries(
    frames: Frames, kind: Any, count: int, end: int, process: Process | None
) -> list[_Entry]:
    entries = []
    offset = frames.position
    for message, encoded in frames.entries(kind, count, end):
        entries.append(_Entry(message, encoded, frames.block, offset, process))
        offset = frames.position
    return entries


def _actions(frames: Frames, names: list[str], entries: list[_Entry]) -> list[Action]:
    reader = ActionReader(names)
    actions = []
    for message, encoded, block, offset, process in entries:
        try:
            action = reader.read(message, encoded)
        except IndexError as error:
            frames.block = block
            raise frames.fail(
                f"the number of a metric's name is not below {len(names)}, the count of names",
                offset,
            ) from error
        action.process = process
        actions.append(action)
    return actions
