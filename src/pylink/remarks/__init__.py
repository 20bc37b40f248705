"""Remarks: the decisions of a link that a user may ask about, in LLVM's form.

Passes of `pylink.remarks.passes` read the results of phases and emit a `Remark` for each decision
to a `Remarks` channel. The channel shows it on the terminal and writes it to a file, depending on
the options. `pylink.remarks.observer` runs the passes during a link. `read_remarks` and
`write_remarks` handle files of remarks, also those of other tools.
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
    "ANALYSIS", "ANALYSIS_ALIASING", "ANALYSIS_FP_COMMUTE", "FAILURE", "MISSED", "PASSED",
    "MalformedRemarks", "Remark", "Remarks", "read_remarks", "write_remarks",
]  # fmt: skip
