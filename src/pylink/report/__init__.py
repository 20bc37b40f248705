"""Reports of links, in the file format of Nsight Compute, and the interface of its scripts.

* Scripts: `load_report` returns an `IContext`. The classes are those of the `ncu_report` module, so
  a script only has to change its import to `import pylink.report as ncu_report`.
* Programs: `read_report` and `write_report` turn files into a `Report` of `pylink.report.model`,
  plain objects that can be changed, and back.

To read or write files, protobuf must be installed; to look up source lines, pyelftools. The extra
`pylink-cuda[report]` has both. The model and the other functions for scripts need neither.
"""

from __future__ import annotations

from pylink.report.api.action import IAction, ISourceInfo
from pylink.report.api.context import IBaseContext, IContext, IRange, load_report
from pylink.report.api.metric import IMetric, IMutableMetric
from pylink.report.api.nvtx import INvtxDomainInfo, INvtxRange, INvtxState
from pylink.report.errors import MalformedReport, ReportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.report.file import parse_report, read_report, report_bytes, write_report

__all__ = [
    "IAction", "IBaseContext", "IContext", "IMetric", "IMutableMetric", "INvtxDomainInfo",
    "INvtxRange", "INvtxState", "IRange", "ISourceInfo", "MalformedReport", "ReportError",
    "load_report", "parse_report", "read_report", "report_bytes", "write_report",
]  # fmt: skip

_FILE_FUNCTIONS = ("parse_report", "read_report", "report_bytes", "write_report")


def __getattr__(name: str) -> object:
    """Return a function that reads or writes files; only its first use imports protobuf."""
    if name not in _FILE_FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pylink.report import file

    return getattr(file, name)
