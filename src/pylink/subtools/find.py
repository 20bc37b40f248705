"""Where ptxas is: an option, a wheel beside this Python, a toolkit, PATH."""

from __future__ import annotations

import importlib.util
import os
import shutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylink.options import Options

TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH")


def find_ptxas(options: Options) -> str | None:
    """The path of the ptxas to start; None when there is none.

    What --ptxas-path names is taken as it is: starting it tells whether it can be.
    """
    if options.ptxas_path is not None:
        if os.path.isdir(options.ptxas_path):
            return os.path.join(options.ptxas_path, "ptxas")
        return options.ptxas_path
    for path in candidates():
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return shutil.which("ptxas")


def candidates() -> Iterator[str]:
    """Places for ptxas before PATH, in the order in which they are tried."""
    for toolkit in wheel_directories():
        yield os.path.join(toolkit, "bin", "ptxas")
    for variable in TOOLKIT_VARIABLES:
        toolkit = os.environ.get(variable, "")
        if toolkit:
            yield os.path.join(toolkit, "bin", "ptxas")


def wheel_directories() -> list[str]:
    """Directories of NVIDIA's wheels laid out like a toolkit, the newest CUDA first.

    The wheels of CUDA 13 share `nvidia/cu13`; before, `nvidia-cuda-nvcc-cu12` had
    `nvidia/cuda_nvcc` for itself.
    """
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return []
    found: list[tuple[int, str]] = []
    for place in (spec and spec.submodule_search_locations) or ():
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            if name.startswith("cu") and name[2:].isdigit():
                found.append((int(name[2:]), os.path.join(place, name)))
            elif name == "cuda_nvcc":
                found.append((0, os.path.join(place, name)))
    return [path for _, path in sorted(found, key=lambda one: -one[0])]
