"""Writes a `Report` as a file for Nsight Compute."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby

from pylink.files.atomic import write_whole
from pylink.report.errors import ReportError
from pylink.report.file.actions import ActionWriter
from pylink.report.file.conversion import to_message
from pylink.report.file.frames import with_length
from pylink.report.model import Action, Process, Report, Scope
from pylink.report.model.report import MAGIC
from pylink.report.proto import messages as pb
from pylink.report.proto.messages import SourceData

# Bytes of actions after which a block ends: tools read all of a block at once, and Nsight
# Compute's blocks have about this size.
_BLOCK_SIZE = 32 << 20
# The most bytes that protobuf allows in a message; a larger action cannot be written.
_MESSAGE_LIMIT = (1 << 31) - 1


def write_report(report: Report, path: str | os.PathLike[str]) -> None:
    """Write a report; the file appears atomically.

    Raises ReportError if a value cannot be stored, OSError if the file cannot be written.
    """
    write_whole(os.fspath(path), report_bytes(report))


def report_bytes(report: Report) -> bytes:
    """Return the contents of the file of a report; raise ReportError like `write_report`."""
    header = pb.FileHeader(Version=report.version)
    header.MergeFromString(report.unknown)
    return b"".join([MAGIC, with_length(header.SerializeToString()), *_encode_blocks(report)])


def _encode_blocks(report: Report) -> Iterator[bytes]:
    """Yield a block with the session and the report's sources, then blocks of the actions in order.

    A new block begins when the process changes, between ranges and other actions, and after
    `_BLOCK_SIZE` bytes.
    """
    first_header = pb.BlockHeader()
    to_message(report.session, first_header.SessionDetails)
    first_header.SessionDetails.SetInParent()
    if report.block_unknown:
        first_header.MergeFromString(report.block_unknown)
    sources = []
    for source in report.sources:
        message = SourceData()
        to_message(source, message)
        sources.append(message.SerializeToString())
    first_header.NumSources = len(sources)
    yield _encode_block(first_header, sources, report.process)

    writer = ActionWriter()

    def group_key(action: Action) -> tuple[Process, Scope]:
        """Return the process and the scope, which all actions of a block have in common."""
        return action.process or report.process, action.scope

    for (process, scope), group in groupby(report.actions, group_key):
        for payload in _encode_in_portions(group, writer):
            header = pb.BlockHeader(NumSources=0, NumResults=0, NumRangeResults=0)
            if scope is Scope.RANGE:
                header.NumRangeResults = len(payload)
            else:
                header.NumResults = len(payload)
            # A block has only the names that earlier blocks lack: readers join the names of all.
            header.StringTable.Strings.extend(writer.names.drain_new())
            yield _encode_block(header, payload, process)


def _encode_in_portions(actions: Iterator[Action], writer: ActionWriter) -> Iterator[list[bytes]]:
    """Yield the encoded actions in portions of about `_BLOCK_SIZE`."""
    portion: list[bytes] = []
    size = 0
    for action in actions:
        encoded = writer.write(action)
        if len(encoded) > _MESSAGE_LIMIT:
            raise ReportError(f"action {action.function_name!r} has more than 2 GiB of data")
        portion.append(encoded)
        size += len(encoded)
        if size >= _BLOCK_SIZE:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _encode_block(header: pb.BlockHeader, payload: list[bytes], process: Process) -> bytes:
    """Return a block: its header, with process and size set, and the encoded messages `payload`."""
    # Every block names its process: without it, `ncu --page raw --csv` crashes.
    to_message(process, header.Process)
    entries = b"".join(map(with_length, payload))
    header.PayloadSize = len(entries)
    return with_length(header.SerializeToString()) + entries
