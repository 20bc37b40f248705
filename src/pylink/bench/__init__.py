"""Measures a link beside other linkers: `pylink bench`, and `measure` and `read` in Python.

`command.py` is the command. A `commandline.Link` is the link to measure. A contender is one way to
run the link (`contenders.py`), and a contest lets all contenders run it in turn (`contest.py`). The
`results.Results` are shown as tables, a page or CSV, and `compare.py` compares two of them. A link
does not load this package.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.bench.commandline import BadLink
    from pylink.bench.measuring import measure, read
    from pylink.bench.results import MalformedResults, Results

# The module that defines each public name, loaded when the name is first used.
_LAZY_MODULES = {
    "BadLink": "pylink.bench.commandline",
    "MalformedResults": "pylink.bench.results",
    "Results": "pylink.bench.results",
    "measure": "pylink.bench.measuring",
    "read": "pylink.bench.measuring",
}

__all__ = ["BadLink", "MalformedResults", "Results", "measure", "read"]


def __getattr__(name: str) -> object:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_LAZY_MODULES[name]), name)
    globals()[name] = value
    return value
