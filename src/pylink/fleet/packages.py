"""The packages of the extra `fleet`, and what to do where one is missing."""

from __future__ import annotations

import importlib
from typing import Any

# Where a package is asked for by another name than that of its module.
EXTRAS = {"distributed": "fleet-dask", "matplotlib": "plot"}


class MissingPackage(ImportError):
    """A package that is not installed; the text says how to get it."""


def need(module: str) -> Any:
    """A module of an optional package. MissingPackage where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        extra = EXTRAS.get(package, "fleet")
        raise MissingPackage(
            f"this needs the package {package}: pip install 'pylink-cuda[{extra}]'"
        ) from error
