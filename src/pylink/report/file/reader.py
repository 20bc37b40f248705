"""Reads report files of pylink and of Nsight Compute into a `Report`."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from pylink.files.reading import read_incoming
from pylink.report.file.actions import ActionReader
from pylink.report.file.conversion import to_model, unknown_fields
from pylink.report.file.frames import Frames
from pylink.report.file.values import decode_text
from pylink.report.model import VERSION, Action, Process, Report, Session, Source
from pylink.report.proto import messages as pb
from pylink.report.proto.messages import ReportSessionDetails, SourceData


class _EncodedAction(NamedTuple):
    """An action's message, from which the action is created when the names of all blocks are known.

    `encoded` are the bytes of the message, `block` and `offset` its position, for errors. `process`
    is None for an action of the report's process.
    """

    message: Any
    encoded: bytes
    block: int | None
    offset: int
    process: Process | None


def read_report(path: str | os.PathLike[str]) -> Report:
    """Read a report file; raise OSError if unreadable, MalformedReport if not a report."""
    return parse_report(read_incoming(path), os.fspath(path))


def parse_report(data: bytes, name: str = "<report>") -> Report:
    """Parse the report in `data`, the contents of file `name`; may raise MalformedReport."""
    frames = Frames(name, data)
    header = frames.read_file_header()
    if header.Version < VERSION:
        raise frames.fail(f"version {header.Version} of the format is older than {VERSION}", 0)
    report = Report(version=header.Version, unknown=unknown_fields(header))
    session = ReportSessionDetails()
    unknown: list[bytes] = []
    names: list[str] = []
    encoded_actions: list[_EncodedAction] = []
    has_process = False  # whether a block named a process
    while (next_block := frames.read_block_header()) is not None:
        block, end = next_block
        # A block may have names of metrics that actions of earlier blocks use.
        names.extend(map(decode_text, block.StringTable.Strings))
        session.MergeFrom(block.SessionDetails)
        unknown.append(unknown_fields(block))
        process = None
        if block.HasField("Process"):
            process = to_model(block.Process, Process, keeps_unknown=True)
            if not has_process:
                report.process, has_process = process, True
            if process == report.process:
                process = None
        for source, _ in frames.read_messages(SourceData, block.NumSources, end):
            report.sources.append(to_model(source, Source, keeps_unknown=True))
        encoded_actions += _read_actions(frames, pb.ProfileResult, block.NumResults, end, process)
        encoded_actions += _read_actions(
            frames, pb.RangeResult, block.NumRangeResults, end, process
        )
        frames.check_block_end(end)
    report.block_unknown = b"".join(unknown)
    report.session = to_model(session, Session, keeps_unknown=True)
    report.actions = _decode_actions(frames, names, encoded_actions)
    return report


def _read_actions(
    frames: Frames, kind: Any, count: int, end: int, process: Process | None
) -> list[_EncodedAction]:
    """Read `count` messages of class `kind` from the payload that ends at `end`."""
    encoded_actions = []
    offset = frames.position
    for message, encoded in frames.read_messages(kind, count, end):
        encoded_actions.append(_EncodedAction(message, encoded, frames.block, offset, process))
        offset = frames.position
    return encoded_actions


def _decode_actions(
    frames: Frames, names: list[str], encoded_actions: list[_EncodedAction]
) -> list[Action]:
    """Return the actions; `names` has the names of metrics, by their numbers in the file."""
    reader = ActionReader(names)
    actions = []
    for message, encoded, block, offset, process in encoded_actions:
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
