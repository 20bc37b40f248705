"""Reports of input-sensitive profiles, in the text format of aprof.

A report has the cost of each routine at each size of its input, so that a single run shows how the
cost grows. `read` and `write` handle files, `model` is a report in memory, `fit` finds the growth
of each routine. docs/aprof.md describes the format.
"""

from pylink.aprof.fittable import fit_table
from pylink.aprof.growth import Fit, fit_report
from pylink.aprof.model import BB_COUNT, TIME_USEC, Context, Point, Report, Routine
from pylink.aprof.reader import MalformedReport, parse, read
from pylink.aprof.writer import encode, write

__all__ = [
    "BB_COUNT", "TIME_USEC", "Context", "Fit", "MalformedReport", "Point", "Report", "Routine",
    "encode", "fit_report", "fit_table", "parse", "read", "write",
]  # fmt: skip
