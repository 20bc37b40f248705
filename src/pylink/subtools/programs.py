"""Finds the programs that pylink starts: by an option, in wheels, in toolkits, in PATH.

Only absolute paths count: a program in the working directory could be a trap. Python has the
working directory among its module paths if it is started with -m or -c, and an empty element of
PATH means it.

Modules that are needed only to start a program are imported late: steps and links that just look
for a library start faster without them.
"""

from __future__ import annotations

import os
import sys

from pylink.packages.sites import add_sites
from pylink.subtools.environment import search_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pylink.options.model import Options

    Release = tuple[int, int]

# Environment variables that name the directory of a CUDA toolkit.
TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH")

# Patterns in the version text of nvcc, ptxas and nvlink.
RELEASE = r"release ([0-9]+\.[0-9]+)"
VERSION = r"\bV([0-9]+\.[0-9]+\.[0-9]+)"

# Seconds that a tool may take to print its version.
VERSION_TIMEOUT = 30


def find_ptxas(options: Options) -> str | None:
    """Return the path of the ptxas to start; None if not found.

    --ptxas-path is not checked: starting it shows whether it works. A link that follows a chosen
    release prefers the ptxas of that release, then that of the next newer one.
    """
    if options.ptxas_path is not None:
        path = os.path.abspath(options.ptxas_path)
        return os.path.join(path, "ptxas") if os.path.isdir(path) else path
    if options.follows is None:
        return find_cuda_tool("ptxas")
    return nearest_release(cuda_tools("ptxas"), options.follows)


def nearest_release(tools: Iterable[str], release: str) -> str | None:
    """Return the tool whose release is nearest to `release`; None without tools.

    That is the first tool of this release, else of the next newer one, else of the last before it.
    """
    requested = parse_release(release)
    programs: dict[Release, str] = {}
    for path in tools:
        tools_release = parse_release(tool_release(path) or "0")
        if tools_release == requested:
            return path
        programs.setdefault(tools_release, path)
    nearest = choose_release(programs, requested)
    return programs[nearest] if nearest is not None else None


def choose_release(releases: Collection[Release], requested: Release) -> Release | None:
    """Return the requested release, else the next newer one, else the newest; None without any."""
    newer = min((release for release in releases if release >= requested), default=None)
    return newer or max(releases, default=None)


def parse_release(release: str) -> Release:
    """Parse a release such as 13.2; a third number is ignored."""
    major, _, minor = release.partition(".")
    return int(major), int(minor.partition(".")[0] or 0)


def find_cuda_tool(name: str) -> str | None:
    """Return the absolute path of a tool of a CUDA toolkit; None if not found."""
    return next(cuda_tools(name), None)


def cuda_tools(name: str) -> Iterator[str]:
    """Yield the absolute paths of a CUDA tool: in wheels, in toolkits, in PATH."""
    directories = [os.path.join(place, "bin") for place in (*wheel_directories(), *toolkits())]
    for directory in (*directories, *search_path().split(os.pathsep)):
        path = os.path.join(directory, name)
        if os.path.isabs(path) and is_program(path):
            yield path


def tool_release(path: str) -> str | None:
    """Return the release that a CUDA tool prints, such as 13.2; None if it prints none."""
    import re

    match = re.search(RELEASE, version_text(path))
    return match[1] if match else None


def tool_version(path: str) -> str | None:
    """Return the version that a CUDA tool prints, such as 13.2.78; None if it prints none.

    If it prints only its release, this is the release.
    """
    import re

    text = version_text(path)
    match = re.search(VERSION, text) or re.search(RELEASE, text)
    return match[1] if match else None


def version_text(path: str) -> str:
    """Return the output of `--version` of a program; empty if that fails."""
    from pylink.subtools.runner import output_of

    return output_of([path, "--version"], timeout=VERSION_TIMEOUT)


def find_program(name: str) -> str | None:
    """Return the absolute path of a program in the absolute directories of PATH.

    None if not found.
    """
    import shutil

    return shutil.which(name, path=search_path())


def is_program(path: str) -> bool:
    """Return whether the path is an executable file."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def find_own_program() -> str | None:
    """Return the program `pylink` that is installed beside this Python; None if not found."""
    path = os.path.join(os.path.dirname(sys.executable), "pylink")
    return path if is_program(path) else None


def find_python() -> str:
    """Return the absolute path of this Python; a program that embeds Python may not provide it."""
    return sys.executable or os.path.join(sys.base_prefix, "bin", "python3")


def toolkits() -> Iterator[str]:
    """Yield the directories of toolkits that the environment names."""
    for variable in TOOLKIT_VARIABLES:
        toolkit = os.environ.get(variable, "")
        if os.path.isabs(toolkit):
            yield toolkit


def wheel_directories() -> list[str]:
    """Return directories of NVIDIA's wheels laid out like a toolkit, the newest CUDA first.

    The wheels of CUDA 13 share `nvidia/cu13`; before, `nvidia-cuda-nvcc-cu12` had
    `nvidia/cuda_nvcc` for itself.
    """
    directories: list[tuple[int, str]] = []
    for site in module_paths():
        nvidia_path = os.path.join(site, "nvidia")
        try:
            names = os.listdir(nvidia_path)
        except OSError:
            continue
        for name in names:
            if name.startswith("cu") and name[2:].isdigit():
                directories.append((int(name[2:]), os.path.join(nvidia_path, name)))
            elif name == "cuda_nvcc":
                directories.append((0, os.path.join(nvidia_path, name)))
    return [path for _, path in sorted(directories, key=lambda pair: -pair[0])]


def module_paths() -> list[str]:
    """Return the module paths of this Python, without the working directory and relative paths.

    The working directory stays if this Python installs packages there.
    """
    add_sites()
    try:
        working_directory = os.path.realpath(os.getcwd())
    except OSError:  # it was deleted
        working_directory = ""
    return [
        path
        for path in sys.path
        if os.path.isabs(path) and (os.path.realpath(path) != working_directory or _is_site(path))
    ]


def _is_site(path: str) -> bool:
    """Return whether this Python installs packages in this directory."""
    import sysconfig

    return path in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
