"""Reads and writes the frame of a report file: lengths and encoded messages."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from pylink.report.errors import MalformedReport
from pylink.report.model.report import MAGIC
from pylink.report.proto import messages as pb

# The length in bytes of a message, which stands in front of the message.
_LENGTH = struct.Struct("<I")

M = TypeVar("M", bound=Message)


@dataclass(slots=True)
class Frames:
    """Reads the bytes of a file from `position` on.

    `name` is that of the file, and `block` the number of the current block (None in the file
    header); error messages contain both.
    """

    name: str
    data: bytes
    position: int = 0
    block: int | None = None

    def fail(self, reason: str, offset: int | None = None) -> MalformedReport:
        """Return the exception for an error at `offset` (default: the current position)."""
        return MalformedReport(
            self.name, self.block, self.position if offset is None else offset, reason
        )

    def read_file_header(self) -> pb.FileHeader:
        """Check the magic and read the file header."""
        if self.data[: len(MAGIC)] != MAGIC:
            raise self.fail("this is not a report: it does not start with NVR and a zero byte")
        self.position = len(MAGIC)
        return self.read_message(pb.FileHeader, len(self.data))[0]

    def read_block_header(self) -> tuple[pb.BlockHeader, int] | None:
        """Return the next block's header and the end of its payload; None at the file's end."""
        if self.position == len(self.data):
            return None
        self.block = 0 if self.block is None else self.block + 1
        start = self.position
        header = self.read_message(pb.BlockHeader, len(self.data))[0]
        bytes_left = len(self.data) - self.position
        if header.PayloadSize > bytes_left:
            raise self.fail(
                f"the payload should have {header.PayloadSize} bytes, but only {bytes_left} follow",
                start,
            )
        return header, self.position + header.PayloadSize

    def read_messages(self, kind: type[M], count: int, end: int) -> Iterator[tuple[M, bytes]]:
        """Yield the next `count` messages of the payload that ends at `end`.

        Each is a pair of the decoded message and its bytes.
        """
        for number in range(count):
            if self.position == end:
                raise self.fail(
                    f"the payload ends after {number} of {count} {kind.DESCRIPTOR.name}"
                )
            yield self.read_message(kind, end)

    def check_block_end(self, end: int) -> None:
        """Check that the messages that were read fill the payload, which ends at `end`."""
        if self.position != end:
            raise self.fail(f"{end - self.position} bytes of payload belong to no entry")

    def read_message(self, kind: type[M], limit: int) -> tuple[M, bytes]:
        """Read a length and a message that ends at `limit` at the latest.

        Return the decoded message and its bytes.
        """
        start, name = self.position, kind.DESCRIPTOR.name
        if limit - start < _LENGTH.size:
            raise self.fail(f"{limit - start} bytes are left where a {name} should begin")
        (size,) = _LENGTH.unpack_from(self.data, start)
        start += _LENGTH.size
        if size > limit - start:
            raise self.fail(f"{name} of {size} bytes does not fit in the {limit - start} left")
        encoded = self.data[start : start + size]
        message = kind()
        try:
            message.ParseFromString(encoded)
        except (DecodeError, RecursionError) as error:
            raise self.fail(f"{name} is damaged", start) from error
        if not message.IsInitialized():
            missing_names = ", ".join(_missing_fields(message))
            raise self.fail(f"{name} lacks required fields: {missing_names}", start)
        self.position = start + size
        return message, encoded


def _missing_fields(message: Any) -> list[str]:
    """Return the names of the required fields that a message lacks."""
    names: list[str] = message.FindInitializationErrors()
    return names


def with_length(encoded: bytes) -> bytes:
    """Return an encoded message with its length in front."""
    return _LENGTH.pack(len(encoded)) + encoded
