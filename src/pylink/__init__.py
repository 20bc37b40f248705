"""pylink: an open, embeddable, fast CUDA device linker.

    result = pylink.link(["a.cubin", "b.cubin"], arch="sm_90a")
    module = load(result.image)

The names below load on first use, so that the command line pays for none it does not need.
docs/python.md says what each is for, and what of them is stable.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.api.coroutine import alink
    from pylink.api.dlink import DlinkResult, dlink
    from pylink.api.following import LinkCancelled
    from pylink.api.growth import Growth, growth
    from pylink.api.inputs import Input
    from pylink.api.linker import Linker, link
    from pylink.api.many import LinkJob, link_many
    from pylink.api.options import LinkOptions
    from pylink.api.result import LinkResult
    from pylink.diagnostics.errors import LinkError
    from pylink.diagnostics.levels import Severity
    from pylink.diagnostics.record import Diagnostic
    from pylink.tabular.table import Table

__all__ = [
    "Diagnostic", "DlinkResult", "Growth", "Input", "LinkCancelled", "LinkError", "LinkJob",
    "LinkOptions", "LinkResult", "Linker", "Severity", "Table", "__version__", "alink", "dlink",
    "growth", "link", "link_many",
]  # fmt: skip

__version__ = "0.1.0"

# The module that defines each name; it is loaded on first use.
_LAZY_MODULES = {
    "Diagnostic": "pylink.diagnostics.record",
    "DlinkResult": "pylink.api.dlink",
    "Growth": "pylink.api.growth",
    "Input": "pylink.api.inputs",
    "LinkCancelled": "pylink.api.following",
    "LinkError": "pylink.diagnostics.errors",
    "LinkJob": "pylink.api.many",
    "LinkOptions": "pylink.api.options",
    "LinkResult": "pylink.api.result",
    "Linker": "pylink.api.linker",
    "Severity": "pylink.diagnostics.levels",
    "Table": "pylink.tabular.table",
    "alink": "pylink.api.coroutine",
    "dlink": "pylink.api.dlink",
    "growth": "pylink.api.growth",
    "link": "pylink.api.linker",
    "link_many": "pylink.api.many",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_LAZY_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
