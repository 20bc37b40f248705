"""The compilers of a link with LTO-IR, chosen as one set: nvJitLink, ptxas and libnvvm.

nvJitLink makes PTX of its own release, which no older ptxas reads, and reads LTO-IR of no newer
libnvvm. So they are chosen together: of one release where there is one, that of the release that is
followed or the next newer one first; else nvJitLink with the nearest newer ptxas.
"""

from __future__ import annotations

import glob
import os
import re

from pylink.subtools.programs import (
    cuda_tools,
    find_ptxas,
    is_program,
    tool_release,
    toolkits,
    wheel_directories,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pylink.diagnostics import Sink
    from pylink.options.model import Options

    Release = tuple[int, int]

# Below a toolkit, where its libraries are; a wheel has `lib`.
LIBRARIES = ("lib64", "lib", os.path.join("targets", "x86_64-linux", "lib"))
NVVM = ("nvvm/lib64/libnvvm.so", "nvvm/lib64/libnvvm.so.*", "lib/libnvvm.so.*")
SYSTEM_TOOLKIT = "/usr/local/cuda"
SYSTEM_LIBRARIES = "/usr/lib/*-linux-gnu"

# nvJitLink exports each function once for every release since 12.0 or 13.0, up to its own. The
# names lie in its table of strings, near the beginning of the file.
EXPORTED = re.compile(rb"\0__nvJitLinkCreate_([0-9]+)_([0-9]+)(?=\0)")
HEAD_SIZE = 1 << 20  # bytes


class Compilers:
    """The paths of a set; `ptxas` is None where only PTX is wanted, `nvvm` where none was found."""

    __slots__ = ("nvjitlink", "nvvm", "ptxas")

    def __init__(self, nvjitlink: str, ptxas: str | None, nvvm: str | None) -> None:
        self.nvjitlink = nvjitlink
        self.ptxas = ptxas
        self.nvvm = nvvm


class Part:
    """A program or library that was found, and its release; None if it does not tell."""

    __slots__ = ("path", "release")

    def __init__(self, path: str, release: Release | None) -> None:
        self.path = path
        self.release = release


def choose(options: Options, sink: Sink) -> Compilers:
    """The set for a link; LinkError when parts are missing, or fit no others."""
    nvjitlinks = [Part(path, library_release(path)) for path in find_nvjitlink(options.nvvmpath)]
    if not nvjitlinks:
        sink.fatal("nvjitlink-missing", reason="no libnvJitLink.so")
    wanted = number(options.follows)
    if options.emit_ptx:
        best = pick([(part, None) for part in nvjitlinks], wanted)
        return Compilers(best[0].path, None, find_nvvm(options.nvvmpath, best[0].path, None))
    tools = [Part(path, number(tool_release(path))) for path in find_assemblers(options)]
    if not tools:
        sink.fatal("ptxas-missing", file="lto.ptx")
    pairs = [(library, tool) for library in nvjitlinks for tool in tools]
    fitting = [pair for pair in pairs if same(*pair)] or sorted(
        (pair for pair in pairs if reads(*pair)), key=lambda pair: pair[1].release or (0, 0)
    )
    if not fitting:
        first = nvjitlinks[0].release
        sink.fatal(
            "compilers-differ",
            versions=", ".join(
                [described("nvJitLink", part) for part in nvjitlinks]
                + [described("ptxas", part) for part in tools]
            ),
            package=f"nvidia-cuda-nvcc=={text(first)}.*",
            other=f"nvidia-nvjitlink=={text(tools[0].release)}.*",
        )
    library, tool = pick(fitting, wanted)
    path = tool.path if tool is not None else None
    return Compilers(library.path, path, find_nvvm(options.nvvmpath, library.path, path))


def same(library: Part, tool: Part) -> bool:
    """Whether both are of one release. One that does not tell is what the user says it is."""
    return None in (library.release, tool.release) or library.release == tool.release


def reads(library: Part, tool: Part) -> bool:
    """Whether ptxas reads the PTX of the library: that of its own release and of older ones."""
    made, known = library.release, tool.release
    return made is not None and known is not None and made[0] == known[0] and made <= known


def pick(
    sets: Sequence[tuple[Part, Part | None]], wanted: Release | None
) -> tuple[Part, Part | None]:
    """The first set of a release, else of the next newer one, else of the last before it."""
    if wanted is None:
        return sets[0]
    releases = {part.release for part, _ in sets if part.release is not None}
    newer = min((release for release in releases if release >= wanted), default=None)
    nearest = newer or max(releases, default=None)
    return next((pair for pair in sets if pair[0].release == nearest), sets[0])


def number(release: str | None) -> Release | None:
    """A release such as 13.2 as numbers."""
    if release is None:
        return None
    major, _, minor = release.partition(".")
    return int(major), int(minor.partition(".")[0] or 0)


def text(release: Release | None) -> str:
    return "{}.{}".format(*release) if release is not None else "?"


def described(name: str, part: Part) -> str:
    return f"{name} {text(part.release)} ({part.path})"


def library_release(path: str) -> Release | None:
    """The release of an nvJitLink library, by the names that it exports; None if it has none.

    Nothing of it runs: a library can be anything until it is loaded.
    """
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD_SIZE)
    except OSError:
        return None
    versions = [(int(major), int(minor)) for major, minor in EXPORTED.findall(head)]
    return max(versions, default=None)


def find_assemblers(options: Options) -> Iterator[str]:
    """The paths of the ptxas that may take part: what --ptxas-path names, or all there are."""
    if options.ptxas_path is not None:
        named = find_ptxas(options)
        if named is not None:
            yield named
        return
    seen = set()
    beside = [os.path.join(root, "bin", "ptxas") for root in named_toolkit(options.nvvmpath)]
    for path in (*cuda_tools("ptxas"), *filter(is_program, beside)):
        if os.path.realpath(path) not in seen:
            seen.add(os.path.realpath(path))
            yield path


def named_toolkit(nvvmpath: str | None) -> list[str]:
    """The toolkit whose `nvvm` folder is named; nothing if there is no such folder."""
    if not nvvmpath or not os.path.isdir(nvvmpath):
        return []
    return [os.path.dirname(os.path.abspath(nvvmpath))]


def find_nvjitlink(nvvmpath: str | None = None, major: int | None = None) -> list[str]:
    """The paths of all nvJitLink libraries, of a major release or of any, each file once.

    Those of the toolkit that is named, of wheels, of toolkits of the environment, of
    /usr/local/cuda, of LD_LIBRARY_PATH, of the system. Paths, because the name alone means whatever
    was loaded by that name.
    """
    wheels = wheel_directories()
    folders = [
        os.path.join(root, place)
        for root in (*named_toolkit(nvvmpath), *wheels, *toolkits(), SYSTEM_TOOLKIT)
        for place in LIBRARIES
    ]
    folders += filter(os.path.isabs, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    # Wheels of CUDA 12 have a folder for each library.
    folders += [os.path.join(os.path.dirname(wheel), "nvjitlink", "lib") for wheel in wheels]
    folders += sorted(glob.glob(SYSTEM_LIBRARIES))
    return unique(
        path
        for folder in folders
        for path in sorted(
            glob.glob(os.path.join(glob.escape(folder), f"libnvJitLink.so.{major or '*'}"))
        )
    )


def find_nvvm(nvvmpath: str | None, nvjitlink: str, ptxas: str | None) -> str | None:
    """The libnvvm of the trees that a set is of; None if neither has one."""
    roots = [os.path.dirname(os.path.dirname(path)) for path in (nvjitlink, ptxas) if path]
    if ptxas:
        roots.append(os.path.dirname(os.path.dirname(os.path.realpath(ptxas))))
    places = [
        os.path.join(glob.escape(root), pattern)
        for root in (*roots, *named_toolkit(nvvmpath), *wheel_directories())
        for pattern in NVVM
    ]
    return next(iter(unique(path for place in places for path in sorted(glob.glob(place)))), None)


def unique(paths: Iterable[str]) -> list[str]:
    """Absolute paths of files, each file once, by the first of its names."""
    by_path: dict[str, str] = {}
    for path in paths:
        if os.path.isabs(path) and os.path.isfile(path):
            by_path.setdefault(os.path.realpath(path), path)
    return list(by_path.values())
