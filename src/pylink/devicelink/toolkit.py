"""The CUDA toolkit of a step: where its nvcc and its libraries are, and its release."""

from __future__ import annotations

import os

from pylink.diagnostics.nvlink import NOTES_FILE, RELEASE_FILE
from pylink.facts.releases import FOLLOWED, release_named
from pylink.subtools.programs import cuda_tools

# pylink's own options: where the toolkit is, and that all command lines of nvcc are taken.
CUDA, AS_NVCC = "--cuda", "--as-nvcc"

DEVICE_RUNTIME = "libcudadevrt.a"
# nvcc searches one of these, by its release, which wheels may not have.
LIBRARIES = ("lib64", "lib")
PROFILE = "nvcc.profile"
# The metadata of a wheel.
WHEEL = "nvidia_cuda_nvcc-"


class Toolkit:
    """Where nvcc is, None without a toolkit, and the directories that it searches.

    `stated` are the two that nvcc names for nvlink, `library_path` those that are searched.
    `release` is the release whose linker links follow, a name of `facts/releases.py`; None for
    that of the newest input.
    """

    __slots__ = ("library_path", "nvcc", "nvvm", "release", "stated")

    def __init__(self, nvcc: str | None, release: str | None = None) -> None:
        self.nvcc = nvcc
        self.release = release
        self.stated: list[str] = []
        self.library_path: list[str] = []
        self.nvvm: str | None = None
        if nvcc is None:
            return
        binaries = os.path.dirname(nvcc)
        lib = _profile_library(binaries)
        self.stated = [f"{binaries}/../{lib}/stubs", f"{binaries}/../{lib}"]
        self.library_path = [*self.stated, *(f"{binaries}/../{name}" for name in LIBRARIES)]
        self.nvvm = f"{binaries}/../nvvm"


def find_toolkit(root: str | None = None) -> Toolkit:
    """The toolkit in `root`, else the first of wheels, of the environment and of PATH.

    A nvcc without its profile beside it is a script that starts another one. Links follow a toolkit
    that was named, as those of its nvcc do.
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
    """What files say of the release of the toolkit whose programs are in a folder.

    Starting nvcc would tell as well, and cost as much as a step. An overlay has a file, as have
    toolkits of installers; wheels stand beside their metadata.
    """
    version: str | None = _read(os.path.join(binaries, RELEASE_FILE)).strip()
    root = os.path.dirname(binaries)
    if not version:
        version_text = _stated_version(_read(f"{root}/version.json"))
        version = version_text or _wheel_version(os.path.dirname(os.path.dirname(root)))
    row = release_named(version) if version else None
    return row.name if row is not None and row.name in FOLLOWED else None


def wants_notes(root: str | None) -> bool | None:
    """True for an overlay with notes after nvlink's lines, None for all else."""
    return (root is not None and os.path.isfile(os.path.join(root, "bin", NOTES_FILE))) or None


def _stated_version(text: str) -> str | None:
    """The version of nvcc in version.json of a toolkit; neither re nor json is worth its start."""
    _, _, row = text.partition('"cuda_nvcc"')
    _, _, value = row.partition("}")[0].partition('"version"')
    version = value.partition('"')[2].partition('"')[0]
    return version if version.replace(".", "").isdigit() else None


def _wheel_version(site: str) -> str | None:
    """The version of the only wheel of nvcc in a folder of packages."""
    try:
        names = [name for name in os.listdir(site) if name.startswith(WHEEL)]
    except OSError:
        return None
    return names[0][len(WHEEL) :].removesuffix(".dist-info") if len(names) == 1 else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read(1 << 16)
    except (OSError, ValueError):
        return ""


def _profile_library(binaries: str) -> str:
    """`lib` or `/lib64`, as the profile beside nvcc has it, with an empty folder in between."""
    text = _read(os.path.join(binaries, PROFILE))
    return "/lib64" if "$(_TARGET_DIR_)/lib$(_TARGET_SIZE_)" in text else "lib"
