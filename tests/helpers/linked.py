"""Lists of the functions and kernels in a cubin, by the names of its sections."""

from __future__ import annotations

import re

from pylink.inspect.image import Image


def functions(cubin: bytes) -> set[str]:
    """Return the functions with code."""
    return _names_after(".text.", cubin)


def kernels(cubin: bytes) -> set[str]:
    """Return the kernels: only these have a constant bank with parameters."""
    return _names_after(".nv.constant0.", cubin)


def _names_after(prefix: str, cubin: bytes) -> set[str]:
    """Return what follows a prefix in names of sections: the names of functions."""
    names = (section.name for section in Image(cubin).sections)
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


def runnable(image: bytes) -> list[str]:
    """Return the kernels with one pointer argument, by their mangled names."""
    return sorted(name for name in kernels(image) if re.search(r"P[a-z]$", name))


def forces(image: bytes) -> list[str]:
    """Return the kernels of the demo that add up the energy of a force."""
    return sorted(name for name in kernels(image) if name.startswith("_Z7field_"))
