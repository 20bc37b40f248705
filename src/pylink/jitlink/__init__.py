"""Replaces nvJitLink in a process, so that programs that link in memory use pylink unchanged.

    import pylink.jitlink
    pylink.jitlink.install()  # before anything loads libnvJitLink

From then on cuda.core, numba-cuda and all other users of libnvJitLink link cubins, host objects,
archives and fat binaries with pylink. Links with PTX or LTO-IR for the target are passed to the
real library, in the same process, if it is installed.
"""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from pylink.jitlink.library import Standin

__all__ = ["MAJORS", "install", "is_installed"]

# Major releases of CUDA whose library can be replaced.
MAJORS = (12, 13)

# The loaded stand-ins, which are libraries in place of nvJitLink, by major release.
_installed: dict[int, Standin] = {}
_lock = threading.Lock()


def install(*, majors: tuple[int, ...] = (13,), real: str | os.PathLike[str] | None = None) -> None:
    """Make pylink the process's libnvJitLink of these major releases.

    Those that are installed already stay as they are. `real` is the path of the real library, for
    code that must be compiled (default: of a wheel, of CUDA_HOME, or of the system). RuntimeError
    if another libnvJitLink of such a release is loaded already, since its users keep it. OSError if
    this installation was built without the stand-in. ValueError for a major release that is not in
    `MAJORS`.
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
    """Return whether pylink is the process's libnvJitLink of that major release."""
    return major in _installed
