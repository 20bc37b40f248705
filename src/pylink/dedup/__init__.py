"""`pylink dedup`, `study` (the same in Python), and the public names of `pylink.mercury`."""

from __future__ import annotations

from pylink.mercury import FoldResult, MalformedCubin, MercuryObject, Stats, Verdict, compare, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.dedup.analysis import Analysis
    from pylink.dedup.files import study

# Public names that a link does not need, with the modules that are loaded for them.
_LAZY_MODULES = {"Analysis": "pylink.dedup.analysis", "study": "pylink.dedup.files"}

__all__ = [
    "Analysis", "FoldResult", "MalformedCubin", "MercuryObject", "Stats", "Verdict", "compare",
    "fold", "study",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_LAZY_MODULES[name]), name)
    globals()[name] = value
    return value
