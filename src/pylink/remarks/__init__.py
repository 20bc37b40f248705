"""Remarks: every decision of a link that a user may ask about, in LLVM's form.

Passes of `pylink.remarks.passes` read the results of phases and emit a `Remark` for each decision
into a `Remarks` channel, which shows it on the terminal and writes it to a file, as the options
say. `pylink.remarks.observer` ties them to a link. `read_remarks` and `write_remarks` are for files
of remarks, whoever wrote them.
"""

from __future__ import annotations

from pylink.remarks.channel import Remarks
from pylink.remarks.files import read_remarks, write_remarks
from pylink.remarks.record import (
    ANALYSIS,
    ANALYSIS_ALIASING,
    ANALYSIS_FP_COMMUTE,
    FAILURE,
    MISSED,
    PASSED,
    MalformedRemarks,
    Remark,
)

__all__ = [
    "ANALYSIS",
    "ANALYSIS_ALIASING",
    "ANALYSIS_FP_COMMUTE",
    "FAILURE",
    "MISSED",
    "PASSED",
    "MalformedRemarks",
    "Remark",
    "Remarks",
    "read_remarks",
    "write_remarks",
]
