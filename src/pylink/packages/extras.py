"""Optional packages, and the extra to install if one is missing."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Packages of other extras than REPORT.
EXTRAS = {
    "distributed": "fleet-dask",
    "duckdb": "fleet",
    "matplotlib": "plot",
    "pyarrow": "fleet",
    "xxhash": "fleet",
    "yaml": "remarks",
}
REPORT = "report"
# Modules whose package has another name.
PACKAGES = {"google": "protobuf", "yaml": "PyYAML"}


class MissingPackage(ImportError):
    """A package is not installed; the text says how to install it."""


def need(module: str) -> Any:
    """Import a module of an optional package; MissingPackage if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackage(advice(module)) from error


def advice(module: str) -> str:
    """The text that says which package to install for a module."""
    top = module.partition(".")[0]
    extra = EXTRAS.get(top, REPORT)
    package = PACKAGES.get(top, top)
    return f"this needs the package {package}: pip install 'pylink-cuda[{extra}]'"


def reason_of_import(error: ImportError) -> str:
    """Why a command cannot run: the error's text if it names a remedy, else what to install."""
    has_advice = "pip install" in str(error) or error.name is None
    return str(error) if has_advice else advice(error.name or "")
