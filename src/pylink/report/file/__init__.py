"""Report files of version 7: `read_report` and `write_report`.

    "NVR\\0", u32 length, FileHeader
    per block: u32 length, BlockHeader, then PayloadSize bytes: each SourceData, then each
    ProfileResult, then each RangeResult, all as u32 length and message

Integers are little endian. The names of metrics are numbers into one table for the whole file: the
string tables of all blocks, one after the other. Tools drop the range results of a block that also
has profile results, so ranges get blocks of their own.
"""

from __future__ import annotations

import pylink.report.proto.messages  # noqa: F401 -- first: its ImportError names the package
from pylink.report.file.reader import parse_report, read_report
from pylink.report.file.writer import report_bytes, write_report

__all__ = ["parse_report", "read_report", "report_bytes", "write_report"]
