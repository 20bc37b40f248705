"""Who links: a contender makes the output of a link in its own way, and says what that took.

A program's time is that of its whole process. pylink's Python interface and nvJitLink are called in
a process that stays, and the time is that of the call, from file names to the file in its place. So
does the copy: it reads every input and writes the bytes to one file, and no linker can do less.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod

from pylink import __version__
from pylink.bench import resident
from pylink.bench.processes import Failed, Resident
from pylink.bench.server import Server
from pylink.inputs import kinds
from pylink.jitlink import real
from pylink.options.table import BY_ATTRIBUTE, FLAG, LIST
from pylink.subtools.compilers import find_nvjitlink, library_release, number
from pylink.subtools.programs import (
    cuda_tools,
    find_cuda_tool,
    find_own,
    find_program,
    version_text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.bench.commandline import Link
    from pylink.bench.processes import Launcher, Run

COPY, API, CLI, NVLINK, NVJITLINK = "copy", "pylink API", "pylink CLI", "nvlink", "nvJitLink"
SERVED = "pylink serve"

# nvJitLink.h: nvJitLinkInputType, by what an input is.
JIT_TYPES = {
    kinds.CUBIN: 1,
    kinds.PTX: 2,
    kinds.LTOIR: 3,
    kinds.FATBIN: 4,
    kinds.HOST: 5,
    kinds.ARCHIVE: 6,
}

# Options that nvJitLink has, by attribute; values of a list are an option each. What changes
# nothing that it does is left away.
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

COPY_PROGRAM = "writes every input to one file, each as it is read, in a process that stays"


class Contender(ABC):
    """One way to make the output.

    `name` is what tables call it, `about` says what it is and what of it is timed. `links` is False
    for what makes no linked file, `is_pylink` says whose words it takes, and `failed` why it takes
    part no longer. `release` is that of CUDA, as far as it says so.
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
        """Make `link.output_path` from the first `size` inputs; Failed when that does not work."""

    def close(self) -> None:  # noqa: B027 -- most have nothing that runs
        """Let go what runs for it."""


class Program(Contender):
    """A linker that is started, with the words of the link after its own."""

    def __init__(
        self,
        name: str,
        about: str,
        command: Sequence[str],
        launcher: Launcher,
        release: str = "",
    ) -> None:
        super().__init__(name, about)
        self.release = release
        self.is_pylink = name.startswith(CLI)
        self._command = list(command)
        self._launcher = launcher

    def run(self, link: Link, size: int) -> Run:
        return self._launcher.run([*self._command, *link.words(size)], os.getcwd())


class Served(Contender):
    """The program `pylink` where a server links for it: the process of the client counts.

    The server starts with the first link.
    """

    is_pylink = True

    def __init__(self, path: str, version: str) -> None:
        super().__init__(
            SERVED,
            f"{path}, pylink {version}, the whole process of the client of a `pylink serve`; "
            "processor time and memory are the client's alone",
        )
        self._path = path
        self._server: Server | None = None

    def run(self, link: Link, size: int) -> Run:
        if self._server is None:
            self._server = Server(self._path)
        return self._server.launcher.run([self._path, *link.words(size)], os.getcwd())

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


class InProcess(Contender):
    """A contender that works in a process that stays, by a program of `resident`."""

    def __init__(self, name: str, about: str, program: str) -> None:
        super().__init__(name, about)
        self._process = Resident(program, os.getcwd())

    def close(self) -> None:
        self._process.close()


class Copy(InProcess):
    links = False

    def __init__(self) -> None:
        super().__init__(COPY, COPY_PROGRAM, resident.COPY)

    def run(self, link: Link, size: int) -> Run:
        names = [link.inputs[place][0] for place in link.part(size)] + link.libraries
        return self._process.run({"inputs": names, "output": link.output_path})


class Api(InProcess):
    is_pylink = True

    def __init__(self) -> None:
        about = f"pylink.link of pylink {__version__}, in a process that stays"
        super().__init__(API, about, resident.API)

    def run(self, link: Link, size: int) -> Run:
        return self._process.run(
            {
                "arch": link.arch,
                "inputs": [link.inputs[place] for place in link.part(size)],
                "options": {
                    name: value for name, value in link.values.items() if BY_ATTRIBUTE[name].in_call
                },
                "output": link.output_path,
            }
        )


class NvJitLink(InProcess):
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
            (JIT_TYPES[link.kinds[place]], link.inputs[place][0]) for place in link.part(size)
        ]
        inputs += [(JIT_TYPES[kinds.ARCHIVE], name) for name in link.libraries]
        return self._process.run(
            {
                "library": self._library,
                "words": jit_words(link),
                "inputs": inputs,
                "output": link.output_path,
            }
        )


def jit_words(link: Link) -> list[str]:
    """The options of a link as nvJitLink has them; Failed, with the reason, where it cannot."""
    argv = [f"-arch={link.arch}"]
    for kind, (name, whole) in zip(link.kinds, link.inputs, strict=True):
        if kind not in JIT_TYPES:
            raise Failed(f"it takes no input such as {name}")
        if whole and kind == kinds.ARCHIVE:
            raise Failed("it has no --whole-archive")
    for name, value in link.values.items():
        option = BY_ATTRIBUTE[name]
        if name in JIT_IDLE or value in (False, None, ()):
            continue
        if name not in JIT_OPTIONS:
            raise Failed(f"it has no --{option.long}")
        word = JIT_OPTIONS[name]
        if option.takes == FLAG:
            argv.append(word)
        elif option.takes == LIST:
            assert isinstance(value, tuple)
            argv += [f"{word}{item}" for item in value]
        else:
            argv.append(f"{word}{value}")
    return list(dict.fromkeys(argv))


def contenders(
    link: Link, launcher: Launcher, nvlinks: Sequence[str], pylinks: Sequence[str]
) -> list[Contender]:
    """All that can be found: the copy, pylink called, started and served, nvlink, and nvJitLink.

    `nvlinks` and `pylinks` are programs to start; without any, nvlink is the one that the command
    line named or else of the newest toolkit, and pylink this one.
    """
    contenders_here: list[Contender] = [Copy(), Api()]
    # The same path twice is one contender.
    nvlinks, pylinks = list(dict.fromkeys(nvlinks)), list(dict.fromkeys(pylinks))
    for path in pylinks or [this_program()]:
        name = CLI if len(pylinks) < 2 else f"{CLI} {path}"
        match = _version(path, r"pylink Version (\S+)")
        contenders_here.append(
            Program(name, f"{path}, pylink {match}, the whole process", [path], launcher)
        )
        if len(pylinks) < 2:
            contenders_here.append(Served(path, match))
    named = list(nvlinks)
    program = find_program(link.linker) if link.linker else None
    if not named and program and _is_nvidia(program):
        named = [program]
    if not named:
        named = [path for path in cuda_tools(NVLINK) if _is_nvidia(path)][:1]
    releases = [_version(path, r"V([0-9.]+)") for path in named]
    for path, match in zip(named, releases, strict=True):
        name = NVLINK if len(named) < 2 else f"{NVLINK} {_distinguish(path, match, releases)}"
        about = f"{path}, nvlink {match}, the whole process"
        release = "" if match == UNKNOWN else match
        contenders_here.append(Program(name, about, [path], launcher, release))
    library = _nvjitlink([contender.release for contender in contenders_here if contender.release])
    if library is not None:
        version = ".".join(map(str, real.Real(library, 0).version()))
        contenders_here.append(NvJitLink(library, version))
    return contenders_here


def _distinguish(path: str, release: str, releases: Sequence[str]) -> str:
    """What names an nvlink among several: its release, with its path where others have that."""
    if release == UNKNOWN:
        return path
    return release if releases.count(release) == 1 else f"{release} {path}"


def _nvjitlink(releases: Sequence[str]) -> str | None:
    """The library of a release that an nvlink has, else that of the newest major release."""
    libraries = find_nvjitlink()
    for release in releases:
        for path in libraries:
            if library_release(path) == number(release):
                return path
    return next(filter(None, map(real.find, (13, 12))), None)


UNKNOWN = "of unknown release"


def this_program() -> str:
    """The program `pylink` that belongs to this Python."""
    return find_own() or find_cuda_tool("pylink") or "pylink"


def _is_nvidia(path: str) -> bool:
    """Whether a program named nvlink is not pylink in its place."""
    return "NVIDIA" in version_text(path) and "pylink" not in version_text(path)


def _version(path: str, pattern: str) -> str:
    """What a program says its version is."""
    match = re.search(pattern, version_text(path))
    return match[1] if match else UNKNOWN
