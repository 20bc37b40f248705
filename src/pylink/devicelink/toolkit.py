"""The CUDA toolkit of a step: its nvcc, its library directories and its release."""

from __future__ import annotations

import os

from pylink.facts.releases import release_named
from pylink.files.overlayfiles import read_release
from pylink.subtools.programs import cuda_tools

# Options of `pylink dlink` that nvcc lacks: one names the toolkit, the other says that any command
# line of nvcc is accepted.
CUDA_OPTION, AS_NVCC = "--cuda", "--as-nvcc"

# Library directories of a toolkit: nvcc searches one of them, depending on its release, but a
# toolkit from wheels may have only the other.
LIBRARY_DIRECTORIES = ("lib64", "lib")
PROFILE = "nvcc.profile"
# Prefix of the metadata directory of a wheel.
WHEEL = "nvidia_cuda_nvcc-"


class Toolkit:
    """A toolkit: the path of its nvcc (None without a toolkit), and its directories.

    `nvlink_directories` are the two library directories that nvcc names to nvlink, `library_path`
    all that are searched. `nvvm` is the directory with the compiler for LTO-IR. `release` is the
    release that links follow, a name of `facts/releases.py`; None for that of the newest input.
    """

    __slots__ = ("library_path", "nvcc", "nvlink_directories", "nvvm", "release")

    def __init__(self, nvcc: str | None, release: str | None = None) -> None:
        self.nvcc = nvcc
        self.release = release
        self.nvlink_directories: list[str] = []
        self.library_path: list[str] = []
        self.nvvm: str | None = None
        if nvcc is None:
            return
        binaries = os.path.dirname(nvcc)
        lib = _profile_library(binaries)
        self.nvlink_directories = [f"{binaries}/../{lib}/stubs", f"{binaries}/../{lib}"]
        self.library_path = [
            *self.nvlink_directories,
            *(f"{binaries}/../{name}" for name in LIBRARY_DIRECTORIES),
        ]
        self.nvvm = f"{binaries}/../nvvm"


def find_toolkit(root: str | None = None) -> Toolkit:
    """Return the toolkit in `root` or, if that is None, the first in wheels, environment and PATH.

    An nvcc without its profile beside it is skipped: it is a script that starts another one. If
    none remains, the toolkit has no nvcc. Links follow the release of a toolkit that was named by
    `root`, like those of its nvcc.
    """
    if root is not None:
        places = [os.path.join(os.path.abspath(root), "bin", "nvcc")]
    else:
        places = list(cuda_tools("nvcc"))
    for path in places:
        if os.path.isfile(os.path.join(os.path.dirname(path), PROFILE)):
            return Toolkit(path, None if root is None else find_release(os.path.dirname(path)))
    return Toolkit(None)


def find_release(binaries: str) -> str | None:
    """Return the release of the toolkit with this directory of programs.

    None if files do not show it, or links cannot follow it.

    nvcc is not asked, since its start takes as long as a step. Overlays and toolkits of installers
    have a file with the release; a wheel has metadata in the directory of packages.
    """
    root = os.path.dirname(binaries)
    version = (
        read_release(binaries)
        or _version_in_json(_read_text(f"{root}/version.json"))
        or _wheel_version(os.path.dirname(os.path.dirname(root)))
    )
    row = release_named(version) if version else None
    return None if row is None else row.name


def _version_in_json(text: str) -> str | None:
    """Return the version of nvcc in the text of version.json; None without one.

    It is parsed by hand, as importing re or json is slow.
    """
    _, _, row = text.partition('"cuda_nvcc"')
    _, _, value = row.partition("}")[0].partition('"version"')
    version = value.partition('"')[2].partition('"')[0]
    return version if version.replace(".", "").isdigit() else None


def _wheel_version(site: str) -> str | None:
    """Return the version of the only wheel of nvcc in a directory of packages; None otherwise."""
    try:
        names = [name for name in os.listdir(site) if name.startswith(WHEEL)]
    except OSError:
        return None
    return names[0][len(WHEEL) :].removesuffix(".dist-info") if len(names) == 1 else None


def _read_text(path: str) -> str:
    """Return the text of a small file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read(1 << 16)
    except (OSError, ValueError):
        return ""


def _profile_library(binaries: str) -> str:
    """Return the library directory that the profile beside nvcc names: `lib` or `/lib64`.

    `/lib64` begins with a slash since nvcc puts it after a part of the path that is empty.
    """
    text = _read_text(os.path.join(binaries, PROFILE))
    return "/lib64" if "$(_TARGET_DIR_)/lib$(_TARGET_SIZE_)" in text else "lib"
