"""The contenders: each writes the output of a link in its own way and measures itself.

The time of a program is that of its whole process. pylink's Python interface and nvJitLink are
called in a process that stays; their time is that of the call, from file names to the written file.
The copy works in such a process, too. It reads every input and writes the bytes to one file: no
linker can do less.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod

from pylink import __version__
from pylink.bench import resident
from pylink.bench.processes import Resident, RunFailed
from pylink.bench.server import Server
from pylink.facts import inputkinds
from pylink.jitlink import real
from pylink.options.table import BY_ATTRIBUTE, FLAG, LIST
from pylink.subtools.compilers import find_nvjitlink, library_release
from pylink.subtools.programs import (
    cuda_tools,
    find_cuda_tool,
    find_own_program,
    find_program,
    parse_release,
    version_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.bench.commandline import Link
    from pylink.bench.processes import Launcher, Run

# Names of contenders.
COPY, API, CLI, NVLINK, NVJITLINK = "copy", "pylink API", "pylink CLI", "nvlink", "nvJitLink"
SERVED = "pylink serve"

# nvJitLinkInputType of nvJitLink.h, by the kind of an input.
JIT_TYPES = {
    inputkinds.CUBIN: 1,
    inputkinds.PTX: 2,
    inputkinds.LTOIR: 3,
    inputkinds.FATBIN: 4,
    inputkinds.HOST: 5,
    inputkinds.ARCHIVE: 6,
}

# Options of nvJitLink, by the attribute of pylink's option; each value of a list becomes an option.
# Options in JIT_IDLE would have no effect on nvJitLink and are omitted.
JIT_OPTIONS = {
    "debug": "-g",
    "dlto": "-lto",
    "disable_warnings": "-no-warnings",
    "kernels_used": "-kernels-used=",
    "link_time_opt": "-lto",
    "maxrregcount": "-maxrregcount=",
    "variables_used": "-variables-used=",
    "Xnvvm": "-Xnvvm=",
    "Xptxas": "-Xptxas=",
}
JIT_IDLE = ("machine", "cpu_arch", "library", "library_path", "verbose", "host_ccbin")

COPY_DESCRIPTION = "writes every input to one file while reading, in a process that stays"


class Contender(ABC):
    """One way to write the output, which is measured beside others.

    * `name`: its name in tables.
    * `about`: a description, which says what of its work is timed.
    * `links`: False if it does not write a linked file.
    * `is_pylink`: whether it accepts pylink's options.
    * `failed`: why it no longer takes part, or empty.
    * `release`: its release of CUDA; empty if unknown.
    """

    links = True
    is_pylink = False
    release = ""

    def __init__(self, name: str, about: str) -> None:
        self.name = name
        self.about = about
        self.failed = ""

    @abstractmethod
    def run(self, link: Link, size: int) -> Run:
        """Link the part with `size` inputs to `link.output_path`; RunFailed if that fails."""

    def close(self) -> None:  # noqa: B027 -- most have no process
        """End its process."""


class Program(Contender):
    """A linker that is started as a program with the arguments of the link."""

    def __init__(
        self, name: str, about: str, command: Sequence[str], launcher: Launcher, release: str = ""
    ) -> None:
        super().__init__(name, about)
        self.release = release
        self.is_pylink = name.startswith(CLI)
        self._command = list(command)
        self._launcher = launcher

    def run(self, link: Link, size: int) -> Run:
        return self._launcher.run([*self._command, *link.arguments_for(size)], os.getcwd())


class Served(Contender):
    """The program `pylink` as a client of a server; only the client's process is measured.

    The server starts with the first link.
    """

    is_pylink = True

    def __init__(self, path: str, version: str) -> None:
        super().__init__(
            SERVED,
            f"{path}, pylink {version}, the whole process of the client of a `pylink serve`; "
            "processor time and memory are only the client's",
        )
        self._path = path
        self._server: Server | None = None

    def run(self, link: Link, size: int) -> Run:
        if self._server is None:
            self._server = Server(self._path)
        return self._server.launcher.run([self._path, *link.arguments_for(size)], os.getcwd())

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


class InProcess(Contender):
    """A contender that is called in one process (`resident.py`) for the whole measurement.

    `program` is a key of `resident.KINDS`.
    """

    def __init__(self, name: str, about: str, program: str) -> None:
        super().__init__(name, about)
        self._process = Resident(program, os.getcwd())

    def close(self) -> None:
        self._process.close()


class Copy(InProcess):
    """The copy of all inputs to one file, which bounds what a linker can do."""

    links = False

    def __init__(self) -> None:
        super().__init__(COPY, COPY_DESCRIPTION, resident.COPY)

    def run(self, link: Link, size: int) -> Run:
        names = [link.inputs[index][0] for index in link.part(size)] + link.libraries
        return self._process.run({"inputs": names, "output": link.output_path})


class Api(InProcess):
    """pylink called from Python."""

    is_pylink = True

    def __init__(self) -> None:
        about = f"pylink.link of pylink {__version__}, in a process that stays"
        super().__init__(API, about, resident.API)

    def run(self, link: Link, size: int) -> Run:
        return self._process.run(
            {
                "arch": link.arch,
                "inputs": [link.inputs[index] for index in link.part(size)],
                "options": {
                    name: value for name, value in link.values.items() if BY_ATTRIBUTE[name].in_call
                },
                "output": link.output_path,
            }
        )


class NvJitLink(InProcess):
    """nvJitLink, called as a library."""

    def __init__(self, library: str, version: str) -> None:
        super().__init__(
            NVJITLINK,
            f"nvJitLink {version}, from the first nvJitLinkAddFile to the written file, in a "
            "process that stays",
            resident.NVJITLINK,
        )
        self.release = version
        self._library = library

    def run(self, link: Link, size: int) -> Run:
        inputs = [
            (JIT_TYPES[link.kinds[index]], link.inputs[index][0]) for index in link.part(size)
        ]
        inputs += [(JIT_TYPES[inputkinds.ARCHIVE], name) for name in link.libraries]
        return self._process.run(
            {
                "library": self._library,
                "options": jit_options(link),
                "inputs": inputs,
                "output": link.output_path,
            }
        )


def jit_options(link: Link) -> list[str]:
    """Return the options of a link for nvJitLink; RunFailed if nvJitLink cannot do this link."""
    argv = [f"-arch={link.arch}"]
    for kind, (name, is_whole) in zip(link.kinds, link.inputs, strict=True):
        if kind not in JIT_TYPES:
            raise RunFailed(f"it does not accept an input such as {name}")
        if is_whole and kind == inputkinds.ARCHIVE:
            raise RunFailed("it has no --whole-archive")
    for name, value in link.values.items():
        option = BY_ATTRIBUTE[name]
        if name in JIT_IDLE or value in (False, None, ()):
            continue
        if name not in JIT_OPTIONS:
            raise RunFailed(f"it has no --{option.long}")
        jit_option = JIT_OPTIONS[name]
        if option.takes == FLAG:
            argv.append(jit_option)
        elif option.takes == LIST:
            assert isinstance(value, tuple)
            argv += [f"{jit_option}{item}" for item in value]
        else:
            argv.append(f"{jit_option}{value}")
    return list(dict.fromkeys(argv))


def contenders(
    link: Link, launcher: Launcher, nvlinks: Sequence[str], pylinks: Sequence[str]
) -> list[Contender]:
    """Return all contenders that are installed: copy, pylink (API, CLI, server), nvlink, nvJitLink.

    `nvlinks` and `pylinks` are paths of programs. The default of nvlink is the one that the command
    line names, or else the first in wheels, toolkits and PATH; the default of pylink is this
    installation. With several `pylinks`, no server is a contender.
    """
    available: list[Contender] = [Copy(), Api()]
    # A path that is given twice is one contender.
    nvlinks, pylinks = list(dict.fromkeys(nvlinks)), list(dict.fromkeys(pylinks))
    for path in pylinks or [this_program()]:
        name = CLI if len(pylinks) < 2 else f"{CLI} {path}"
        version = _version(path, r"pylink Version (\S+)")
        available.append(
            Program(name, f"{path}, pylink {version}, the whole process", [path], launcher)
        )
        if len(pylinks) < 2:
            available.append(Served(path, version))
    nvlink_paths = list(nvlinks)
    program = find_program(link.linker) if link.linker else None
    if not nvlink_paths and program and _is_nvidia(program):
        nvlink_paths = [program]
    if not nvlink_paths:
        nvlink_paths = [path for path in cuda_tools(NVLINK) if _is_nvidia(path)][:1]
    releases = [_version(path, r"V([0-9.]+)") for path in nvlink_paths]
    for path, version in zip(nvlink_paths, releases, strict=True):
        name = (
            NVLINK if len(nvlink_paths) < 2 else f"{NVLINK} {_distinguish(path, version, releases)}"
        )
        about = f"{path}, nvlink {version}, the whole process"
        release = "" if version == UNKNOWN else version
        available.append(Program(name, about, [path], launcher, release))
    library = _find_nvjitlink([contender.release for contender in available if contender.release])
    if library is not None:
        library_version = ".".join(map(str, real.Real(library, 0).version()))
        available.append(NvJitLink(library, library_version))
    return available


def _distinguish(path: str, release: str, releases: Sequence[str]) -> str:
    """Return what distinguishes an nvlink: its release, with its path if others have the same.

    It is the path alone if the release is unknown.
    """
    if release == UNKNOWN:
        return path
    return release if releases.count(release) == 1 else f"{release} {path}"


def _find_nvjitlink(releases: Sequence[str]) -> str | None:
    """Return the path of nvJitLink of the first of `releases` that has one.

    Without it, the path is that of CUDA 13 or 12, or None.
    """
    libraries = find_nvjitlink()
    for release in releases:
        for path in libraries:
            if library_release(path) == parse_release(release):
                return path
    return next(filter(None, map(real.find, (13, 12))), None)


UNKNOWN = "of unknown release"  # stands in texts instead of a release


def this_program() -> str:
    """Return the path of `pylink`: beside this Python, or else in wheels, toolkits or PATH.

    Without such a program, the result is only its name.
    """
    return find_own_program() or find_cuda_tool("pylink") or "pylink"


def _is_nvidia(path: str) -> bool:
    """Return whether a program named nvlink is NVIDIA's, not pylink under that name."""
    return "NVIDIA" in version_text(path) and "pylink" not in version_text(path)


def _version(path: str, pattern: str) -> str:
    """Return the version that a program prints, by a pattern with one group; else UNKNOWN."""
    match = re.search(pattern, version_text(path))
    return match[1] if match else UNKNOWN
