"""`pylink dedup` and `study`, which is the same in Python; the public names of `pylink.mercury`."""

from __future__ import annotations

from pylink.mercury import FoldResult, MalformedCubin, MercuryObject, Stats, Verdict, compare, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.dedup.analysis import Analysis
    from pylink.dedup.files import study

# What a link that compares has no need of, and where it is.
_HOMES = {"Analysis": "pylink.dedup.analysis", "study": "pylink.dedup.files"}

__all__ = [
    "Analysis",
    "FoldResult",
    "MalformedCubin",
    "MercuryObject",
    "Stats",
    "Verdict",
    "compare",
    "fold",
    "study",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
