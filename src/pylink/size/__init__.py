"""Sizes of device code by file, kind, target, unit, part, template and function.

    sizes = pylink.size.measure(["libfoo.so"])
    for row in pylink.size.rows(sizes, ("target", "kind")):
        print(row.keys, row.installed)

No function here writes to a measured file.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.size.levels import Row, Selection, rows
    from pylink.size.model import LEVELS, File, Leaf, Sizes
    from pylink.size.walk import measure, measure_bytes

__all__ = [
    "LEVELS", "File", "Leaf", "Row", "Selection", "Sizes", "measure", "measure_bytes", "rows",
]  # fmt: skip

# The module that defines each public name. A module is loaded when one of its names is first used,
# since `pylink size` loads the modules that print only while threads count bytes.
_LAZY_MODULES = {
    "LEVELS": "model",
    "File": "model",
    "Leaf": "model",
    "Row": "levels",
    "Selection": "levels",
    "Sizes": "model",
    "measure": "walk",
    "measure_bytes": "walk",
    "rows": "levels",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    member: object = getattr(import_module(f"{__name__}.{_LAZY_MODULES[name]}"), name)
    globals()[name] = member
    return member
