"""The errors of reading and writing reports."""

from __future__ import annotations


class ReportError(ValueError):
    """A report that cannot be read or written."""


class MalformedReport(ReportError):
    """A file that is not a report, or a damaged one.

    `block` is the number of the block with the error, from 0; None if it is in the file header.
    `offset` is in bytes from the file's start.
    """

    def __init__(self, file: str, block: int | None, offset: int, reason: str) -> None:
        self.file = file
        self.block = block
        self.offset = offset
        self.reason = reason
        position = "header" if block is None else f"block {block}"
        super().__init__(f"{file}: {position}, offset {offset:#x}: {reason}")
