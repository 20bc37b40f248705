"""pylink: an open, embeddable, fast CUDA device linker.

    result = pylink.link(["a.cubin", "b.cubin"], arch="sm_90a")
    module = load(result.image)

The names below load on first use, so that the command line pays for none it does not need.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.errors import LinkError
    from pylink.linker import Linker, LinkResult, link

__all__ = ["LinkError", "LinkResult", "Linker", "__version__", "link"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "LinkError":
        from pylink.errors import LinkError  # noqa: PLC0415

        return LinkError
    if name in ("LinkResult", "Linker", "link"):
        from pylink import linker  # noqa: PLC0415

        return getattr(linker, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
