"""pylink in nvJitLink's place: programs that link in memory use it unchanged.

    import pylink.jitlink
    pylink.jitlink.install()  # before anything loads libnvJitLink

From then on cuda.core, numba-cuda and whoever else asks for libnvJitLink link cubins, host objects,
archives and fat binaries with pylink. What holds PTX or LTO-IR for the target goes on to the real
library, in the same process, when it is installed.
"""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from pylink.jitlink.library import Standin

__all__ = ["MAJORS", "install", "is_installed"]

# Major releases of CUDA whose library can be stood in for.
MAJORS = (12, 13)

_installed: dict[int, Standin] = {}
_lock = threading.Lock()


def install(*, majors: tuple[int, ...] = (13,), real: str | os.PathLike[str] | None = None) -> None:
    """Let pylink be the process's libnvJitLink of the major releases given; again does nothing.

    `real` is the path of the real library, for what must be compiled; by default that of a wheel,
    of CUDA_HOME, or of the system. RuntimeError when a libnvJitLink is loaded already: whoever has
    it keeps it. OSError when this installation was built without the stand-in. ValueError for a
    major release that is not one of `MAJORS`.
    """
    from pylink.jitlink import library
    from pylink.jitlink.real import Real

    unknown = [major for major in majors if major not in MAJORS]
    if unknown:
        raise ValueError(f"no libnvJitLink.so.{unknown[0]} can be stood in for; majors: {MAJORS}")
    with _lock:
        for major in majors:
            if major in _installed:
                continue
            if library.find_loaded(major) is not None:
                raise RuntimeError(
                    f"{library.soname(major)} is loaded already: call pylink.jitlink.install() "
                    "before the first import of what uses it"
                )
            path = None if real is None else str(real)
            _installed[major] = library.Standin(major, Real(path, major))


def is_installed(major: int = 13) -> bool:
    """Whether pylink is the process's libnvJitLink of that major release."""
    return major in _installed
