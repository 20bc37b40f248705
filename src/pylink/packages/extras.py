"""Optional packages, and what to do where one is missing: which extra has it."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Packages of another extra than REPORT.
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
    """A package that is not installed; the text says how to get it."""


def need(module: str) -> Any:
    """A module of an optional package. MissingPackage where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackage(advice(module)) from error


def advice(module: str) -> str:
    """What to install for a module."""
    top = module.partition(".")[0]
    extra = EXTRAS.get(top, REPORT)
    package = PACKAGES.get(top, top)
    return f"this needs the package {package}: pip install 'pylink-cuda[{extra}]'"


def reason_of_import(error: ImportError) -> str:
    """Why a command cannot run: the text of an error that says it, else what to install."""
    says_it = "pip install" in str(error) or error.name is None
    return str(error) if says_it else advice(error.name or "")
