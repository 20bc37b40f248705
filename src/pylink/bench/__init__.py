"""What a link costs beside other linkers: `pylink bench`, and `measure` and `read` in Python.

`command.py` is the command. A `commandline.Link` is the link that somebody named. A contender does
it in its way (`contenders.py`); a contest has all do it in turn (`contest.py`). It returns
`results.Results`, which tables, a page and a CSV show and which `compare.py` sets against another.
Nothing here is loaded by a link.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.bench.commandline import BadLink
    from pylink.bench.measuring import measure, read
    from pylink.bench.results import MalformedResults, Results

_HOMES = {
    "BadLink": "pylink.bench.commandline",
    "MalformedResults": "pylink.bench.results",
    "Results": "pylink.bench.results",
    "measure": "pylink.bench.measuring",
    "read": "pylink.bench.measuring",
}

__all__ = ["BadLink", "MalformedResults", "Results", "measure", "read"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
