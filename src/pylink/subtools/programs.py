"""Where the programs are that pylink starts: an option, a wheel, a toolkit, PATH.

Only absolute places count: what lies in the working directory is there by chance, or for a trap.
Python has that directory among its module paths when it is started with -m or -c, and an empty
element of PATH stands for it.

Steps and links that only look for a library start faster without the modules that this one imports
where it starts a program.
"""

from __future__ import annotations

import os
import sys

from pylink.packages.sites import add_sites
from pylink.subtools.environment import search_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pylink.options.model import Options

TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH")

# In what nvcc, ptxas and nvlink print of their version.
RELEASE = r"release ([0-9]+\.[0-9]+)"
VERSION = r"\bV([0-9]+\.[0-9]+\.[0-9]+)"

# For tools that print no more than their version.
SECONDS = 30


def find_ptxas(options: Options) -> str | None:
    """The path of the ptxas to start; None when there is none.

    What --ptxas-path names is taken as it is: starting it tells whether it can be. Where links
    follow a release that was asked for, its ptxas goes before all others, then that of the next.
    """
    if options.ptxas_path is not None:
        path = os.path.abspath(options.ptxas_path)
        return os.path.join(path, "ptxas") if os.path.isdir(path) else path
    if options.follows is None:
        return find_cuda_tool("ptxas")
    return nearest(cuda_tools("ptxas"), options.follows)


def nearest(tools: Iterable[str], release: str) -> str | None:
    """The first tool of a release, else of the next newer one, else of the last before it."""
    wanted = _number(release)
    programs: dict[tuple[int, ...], str] = {}
    for path in tools:
        has = _number(tool_release(path) or "0")
        if has == wanted:
            return path
        programs.setdefault(has, path)
    newer = min((has for has in programs if has > wanted), default=None)
    return programs.get(newer or max(programs, default=wanted))


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def find_cuda_tool(name: str) -> str | None:
    """The absolute path of a tool of a CUDA toolkit; None when there is none."""
    return next(cuda_tools(name), None)


def cuda_tools(name: str) -> Iterator[str]:
    """The absolute paths of a tool of CUDA toolkits: of the wheels, of toolkits, of PATH."""
    folders = [os.path.join(place, "bin") for place in (*wheel_directories(), *toolkits())]
    for folder in (*folders, *search_path().split(os.pathsep)):
        path = os.path.join(folder, name)
        if os.path.isabs(path) and is_program(path):
            yield path


def tool_release(path: str) -> str | None:
    """The release of a tool of a CUDA toolkit by its own words, such as 13.2; None without any."""
    import re

    match = re.search(RELEASE, version_text(path))
    return match[1] if match else None


def tool_version(path: str) -> str | None:
    """The version of a tool of a CUDA toolkit by its own words, such as 13.2.78; None without any.

    Where it tells no more, that is its release.
    """
    import re

    text = version_text(path)
    match = re.search(VERSION, text) or re.search(RELEASE, text)
    return match[1] if match else None


def version_text(path: str) -> str:
    """What a program says of its version; nothing when it fails."""
    from pylink.subtools.runner import answer

    return answer([path, "--version"], timeout=SECONDS)


def find_program(name: str) -> str | None:
    """The absolute path of a program in PATH, by its absolute elements alone."""
    import shutil

    return shutil.which(name, path=search_path())


def is_program(path: str) -> bool:
    """Whether it is a file that may be executed."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def find_own() -> str | None:
    """The program `pylink` that is installed beside this Python; None where there is none."""
    path = os.path.join(os.path.dirname(sys.executable), "pylink")
    return path if is_program(path) else None


def find_python() -> str:
    """The absolute path of this Python; a program that embeds it may not say."""
    return sys.executable or os.path.join(sys.base_prefix, "bin", "python3")


def toolkits() -> Iterator[str]:
    """The directories of toolkits that the environment names."""
    for variable in TOOLKIT_VARIABLES:
        toolkit = os.environ.get(variable, "")
        if os.path.isabs(toolkit):
            yield toolkit


def wheel_directories() -> list[str]:
    """Directories of NVIDIA's wheels laid out like a toolkit, the newest CUDA first.

    The wheels of CUDA 13 share `nvidia/cu13`; before, `nvidia-cuda-nvcc-cu12` had
    `nvidia/cuda_nvcc` for itself.
    """
    directories: list[tuple[int, str]] = []
    for site in module_paths():
        place = os.path.join(site, "nvidia")
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            if name.startswith("cu") and name[2:].isdigit():
                directories.append((int(name[2:]), os.path.join(place, name)))
            elif name == "cuda_nvcc":
                directories.append((0, os.path.join(place, name)))
    return [path for _, path in sorted(directories, key=lambda pair: -pair[0])]


def module_paths() -> list[str]:
    """Where this Python has its modules, without the working directory and relative places.

    A working directory that is a site directory of this Python stays.
    """
    add_sites()
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was deleted
        here = ""
    return [
        place
        for place in sys.path
        if os.path.isabs(place) and (os.path.realpath(place) != here or _is_site(place))
    ]


def _is_site(place: str) -> bool:
    """Whether this Python installs packages there."""
    import sysconfig

    return place in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
