"""What is in a cubin, by the names of its sections."""

from __future__ import annotations

from pylink.inspect.image import Image


def functions(cubin: bytes) -> set[str]:
    """Functions with code."""
    return _behind(".text.", cubin)


def kernels(cubin: bytes) -> set[str]:
    """Kernels, which alone have a constant bank of parameters."""
    return _behind(".nv.constant0.", cubin)


def _behind(prefix: str, cubin: bytes) -> set[str]:
    names = (section.name for section in Image(cubin).sections)
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
