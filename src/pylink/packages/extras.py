"""Optional packages, and the extra to install if one is missing.

A link reports a package that an input needs by a diagnostic instead (`package-missing`), which
names that input.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# By module: the extra that installs it. Modules that are not listed are in the extra REPORT.
EXTRAS = {
    "distributed": "fleet-dask",
    "duckdb": "fleet",
    "matplotlib": "plot",
    "pyarrow": "fleet",
    "yaml": "remarks",
}
REPORT = "report"
# Packages that every installation has, unless somebody removed them.
REQUIRED = ("lz4", "xxhash", "zstandard")
# The package that contains a module, if its name differs.
PACKAGES = {"google": "protobuf", "yaml": "PyYAML"}


class MissingPackage(ImportError):
    """A package is not installed; the text says how to install it."""


def need(module: str, purpose: str = "this", extra: str = "") -> Any:
    """Import a module of an optional package; MissingPackage if it is not installed.

    `purpose` is what needs the package, for people. `extra` is the extra to install (default: as in
    EXTRAS).
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackage(install_advice(module, purpose, extra)) from error


def install_advice(module: str, purpose: str = "this", extra: str = "") -> str:
    """Return the text that says which package to install for a module."""
    top = module.partition(".")[0]
    extra = extra or EXTRAS.get(top, REPORT)
    package = PACKAGES.get(top, top)
    argument = package if package in REQUIRED else f"'pylink-cuda[{extra}]'"
    return f"{purpose} needs the package {package}: pip install {argument}"


def reason_of_import(error: ImportError) -> str:
    """Return why a command cannot run: the error's text, or what to install.

    The text is returned if it says what to install, or if the error names no module.
    """
    has_advice = "pip install" in str(error) or error.name is None
    return str(error) if has_advice else install_advice(error.name or "")
