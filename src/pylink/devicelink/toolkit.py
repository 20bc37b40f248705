"""The CUDA toolkit of a step: its nvcc, which does what is left to it, and its libraries."""

from __future__ import annotations

import os
import re
import shlex
import subprocess

from pylink.diagnostics.nvlink import NOTES_FILE, OWN_NAME
from pylink.diagnostics.stream import write
from pylink.facts.releases import FOLLOWED, release_named
from pylink.subtools.find import cuda_tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from pylink.devicelink.request import NotOurs
    from pylink.diagnostics import Sink

# pylink's own option for all command lines of nvcc; and nvcc's for a link without a step.
AS_NVCC, NO_STEP = "--as-nvcc", "--no-device-link"

DEVICE_RUNTIME = "libcudadevrt.a"
# nvcc searches one of these, by its release, which wheels may not have.
LIBRARIES = ("lib64", "lib")
PROFILE = "nvcc.profile"
# Where an overlay says its release, and that it has notes (command/toolkitrelease.py); and the
# metadata of a wheel.
RELEASE_FILE = "nvlink.release"
WHEEL = "nvidia_cuda_nvcc-"
ARCHITECTURE = re.compile(r"(?:sm|compute|lto)_[0-9]+[af]?", re.ASCII)
COMPILER_VERSION = re.compile(r'"cuda_nvcc"\s*:\s*{[^}]*"version"\s*:\s*"([0-9.]+)"')
# Set for an nvcc that was started here: what it starts must not come back.
STARTED = "PYLINK_DLINK_HANDED_ON"


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
        said = COMPILER_VERSION.search(_read(f"{root}/version.json"))
        version = said[1] if said else _wheel_version(os.path.dirname(os.path.dirname(root)))
    row = release_named(version) if version else None
    return row.name if row is not None and row.name in FOLLOWED else None


def wants_notes(root: str | None) -> bool | None:
    """True for an overlay with notes after nvlink's lines, None for all else."""
    return (root is not None and os.path.isfile(os.path.join(root, "bin", NOTES_FILE))) or None


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


def hand_on(
    words: Sequence[str],
    reason: NotOurs,
    toolkit: Toolkit,
    sink: Sink,
    *,
    shown: bool,
    notes: bool = True,
) -> int:
    """The status of nvcc for these words; a fatal diagnostic where there is none to start.

    With `notes` a line follows what nvcc says of an architecture that CUDA no longer knows.
    """
    option = reason.option or ""
    if toolkit.nvcc is None or os.environ.get(STARTED):
        if reason.file is not None:
            sink.fatal("input-for-nvcc", file=reason.file)
        if arch := _dropped(option):
            from pylink.options.suggestions import suggest_value

            sink.fatal("undefined-value", value=arch, option="arch", explain=suggest_value)
        sink.fatal("option-for-nvcc", option=option)
    command = [toolkit.nvcc, *words]
    if shown:
        write(None, f"#$ {shlex.join(command)}\n")
    try:
        status = subprocess.call(command, env=without_step())
    except OSError as error:
        report_not_started(toolkit.nvcc, error, sink)
    arch = _dropped(option)
    if status and arch and notes:
        from pylink.options.suggestions import dropped_note

        write(None, f"{OWN_NAME} note    : {dropped_note(arch)}\n")
    return status


def _dropped(option: str) -> str | None:
    """The architecture in words of -arch or -gencode that CUDA no longer knows by this name."""
    from pylink.options.suggestions import dropped_note

    found = ARCHITECTURE.search(option)
    return found[0] if found and dropped_note(found[0]) else None


def without_step() -> dict[str, str]:
    """The environment of an nvcc that must not come back here."""
    return {**os.environ, STARTED: "1"}


def report_no_nvcc(sink: Sink) -> NoReturn:
    """A link of a program is wanted, and there is no nvcc for it."""
    sink.fatal("option-for-nvcc", option=AS_NVCC)


def report_not_started(tool: str, error: OSError, sink: Sink) -> NoReturn:
    from pylink.diagnostics.errors import reason_of

    sink.fatal("nvcc-not-started", tool=tool, reason=reason_of(error))
