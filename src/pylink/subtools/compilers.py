"""The compilers of a link with LTO-IR, chosen as one set: nvJitLink, ptxas and libnvvm.

nvJitLink writes PTX of its own release, which an older ptxas rejects, and rejects LTO-IR of a newer
libnvvm. So they are chosen together, from one release if possible: the one that the link follows,
else the next newer one. Otherwise nvJitLink is combined with the nearest newer ptxas.
"""

from __future__ import annotations

import glob
import os
import re

from pylink.subtools.programs import (
    choose_release,
    cuda_tools,
    find_ptxas,
    is_program,
    parse_release,
    tool_release,
    toolkits,
    wheel_directories,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pylink.diagnostics import Sink
    from pylink.options.model import Options
    from pylink.subtools.programs import Release

# Directories of libraries in a toolkit or wheel.
LIBRARY_DIRECTORIES = ("lib64", "lib", os.path.join("targets", "x86_64-linux", "lib"))
NVVM_PATTERNS = ("nvvm/lib64/libnvvm.so", "nvvm/lib64/libnvvm.so.*", "lib/libnvvm.so.*")
SYSTEM_TOOLKIT = "/usr/local/cuda"
SYSTEM_LIBRARIES = "/usr/lib/*-linux-gnu"

# nvJitLink exports each function once for every release since 12.0 or 13.0, up to its own. The
# names are in its string table, near the start of the file.
EXPORTED_RELEASE = re.compile(rb"\0__nvJitLinkCreate_([0-9]+)_([0-9]+)(?=\0)")
HEAD_SIZE = 1 << 20  # bytes


class Compilers:
    """The paths of a set of compilers that fit together.

    `ptxas` is None if the link ends with PTX, `nvvm` if not found.
    """

    __slots__ = ("nvjitlink", "nvvm", "ptxas")

    def __init__(self, nvjitlink: str, ptxas: str | None, nvvm: str | None) -> None:
        self.nvjitlink = nvjitlink
        self.ptxas = ptxas
        self.nvvm = nvvm


class ToolCandidate:
    """A program or library that may be used; `release` is None if unknown."""

    __slots__ = ("path", "release")

    def __init__(self, path: str, release: Release | None) -> None:
        self.path = path
        self.release = release


def choose_compilers(options: Options, sink: Sink) -> Compilers:
    """Choose the compilers of a link; LinkError without nvJitLink or ptxas, or if no set fits."""
    nvjitlinks = [
        ToolCandidate(path, library_release(path)) for path in find_nvjitlink(options.nvvmpath)
    ]
    if not nvjitlinks:
        sink.fatal("nvjitlink-missing", reason="no libnvJitLink.so")
    followed_release = parse_release(options.follows) if options.follows else None
    if options.emit_ptx:
        best = _pick_nearest([(candidate, None) for candidate in nvjitlinks], followed_release)
        return Compilers(best[0].path, None, _find_nvvm(options.nvvmpath, best[0].path, None))
    tools = [
        ToolCandidate(path, parse_release(release) if release else None)
        for path in _find_ptxas_candidates(options)
        for release in [tool_release(path)]
    ]
    if not tools:
        sink.fatal("ptxas-missing", file="lto.ptx")
    pairs = [(library, tool) for library in nvjitlinks for tool in tools]
    fitting = [pair for pair in pairs if _have_same_release(*pair)] or sorted(
        (pair for pair in pairs if _can_read(*pair)), key=lambda pair: pair[1].release or (0, 0)
    )
    if not fitting:
        first_release = nvjitlinks[0].release
        sink.fatal(
            "compilers-differ",
            versions=", ".join(
                [_describe_candidate("nvJitLink", candidate) for candidate in nvjitlinks]
                + [_describe_candidate("ptxas", candidate) for candidate in tools]
            ),
            package=f"nvidia-cuda-nvcc=={release_text(first_release)}.*",
            other=f"nvidia-nvjitlink=={release_text(tools[0].release)}.*",
        )
    library, tool = _pick_nearest(fitting, followed_release)
    path = tool.path if tool is not None else None
    return Compilers(library.path, path, _find_nvvm(options.nvvmpath, library.path, path))


def _have_same_release(library: ToolCandidate, tool: ToolCandidate) -> bool:
    """Return whether both have the same release; an unknown release fits any."""
    return None in (library.release, tool.release) or library.release == tool.release


def _can_read(library: ToolCandidate, tool: ToolCandidate) -> bool:
    """Return whether the ptxas `tool` can read the PTX that the nvJitLink `library` writes."""
    ptx_release, supported = library.release, tool.release
    return (
        ptx_release is not None
        and supported is not None
        and ptx_release[0] == supported[0]
        and ptx_release <= supported
    )


def _pick_nearest(
    sets: Sequence[tuple[ToolCandidate, ToolCandidate | None]], followed_release: Release | None
) -> tuple[ToolCandidate, ToolCandidate | None]:
    """Return the set of compilers whose release is nearest to the followed one.

    That is the first set of this release, else of the next newer one, else of the last before it.
    A set is an nvJitLink and a ptxas or None. Without a followed release, return the first of all.
    """
    if followed_release is None:
        return sets[0]
    releases = {candidate.release for candidate, _ in sets if candidate.release is not None}
    nearest = choose_release(releases, followed_release)
    return next((pair for pair in sets if pair[0].release == nearest), sets[0])


def release_text(release: Release | None) -> str:
    """Return a release such as `13.0`, or `?` if unknown."""
    return "{}.{}".format(*release) if release is not None else "?"


def _describe_candidate(name: str, candidate: ToolCandidate) -> str:
    """Return the name, release and path of a tool that could be used, for a message."""
    return f"{name} {release_text(candidate.release)} ({candidate.path})"


def library_release(path: str) -> Release | None:
    """Return the release of an nvJitLink library, read from the names that it exports.

    None if unknown. The library is not loaded, so none of its code runs.
    """
    try:
        with open(path, "rb") as stream:
            head = stream.read(HEAD_SIZE)
    except OSError:
        return None
    versions = [(int(major), int(minor)) for major, minor in EXPORTED_RELEASE.findall(head)]
    return max(versions, default=None)


def _find_ptxas_candidates(options: Options) -> Iterator[str]:
    """Yield the paths of candidate ptxas programs: that of --ptxas-path, or all that are found."""
    if options.ptxas_path is not None:
        chosen = find_ptxas(options)
        if chosen is not None:
            yield chosen
        return
    seen = set()
    toolkit_paths = [
        os.path.join(root, "bin", "ptxas") for root in _named_toolkit(options.nvvmpath)
    ]
    for path in (*cuda_tools("ptxas"), *filter(is_program, toolkit_paths)):
        if os.path.realpath(path) not in seen:
            seen.add(os.path.realpath(path))
            yield path


def _named_toolkit(nvvmpath: str | None) -> list[str]:
    """Return the toolkit that contains the directory `nvvmpath`; empty if that does not exist."""
    if not nvvmpath or not os.path.isdir(nvvmpath):
        return []
    return [os.path.dirname(os.path.abspath(nvvmpath))]


def find_nvjitlink(nvvmpath: str | None = None, major: int | None = None) -> list[str]:
    """Return the paths of all nvJitLink libraries, of a major release or of any, each file once.

    They are looked for in the toolkit of `nvvmpath`, in wheels, toolkits of the environment,
    /usr/local/cuda, LD_LIBRARY_PATH and the system. The paths are absolute: loading a bare name
    would return a library that was already loaded under that name.
    """
    wheels = wheel_directories()
    directories = [
        os.path.join(root, place)
        for root in (*_named_toolkit(nvvmpath), *wheels, *toolkits(), SYSTEM_TOOLKIT)
        for place in LIBRARY_DIRECTORIES
    ]
    directories += filter(os.path.isabs, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    # Wheels of CUDA 12 have a directory for each library.
    directories += [os.path.join(os.path.dirname(wheel), "nvjitlink", "lib") for wheel in wheels]
    directories += sorted(glob.glob(SYSTEM_LIBRARIES))
    return _unique_files(
        path
        for directory in directories
        for path in sorted(
            glob.glob(os.path.join(glob.escape(directory), f"libnvJitLink.so.{major or '*'}"))
        )
    )


def _find_nvvm(nvvmpath: str | None, nvjitlink: str, ptxas: str | None) -> str | None:
    """Return the libnvvm beside these compilers, else that of `nvvmpath` or of a wheel, or None."""
    roots = [os.path.dirname(os.path.dirname(path)) for path in (nvjitlink, ptxas) if path]
    if ptxas:
        roots.append(os.path.dirname(os.path.dirname(os.path.realpath(ptxas))))
    places = [
        os.path.join(glob.escape(root), pattern)
        for root in (*roots, *_named_toolkit(nvvmpath), *wheel_directories())
        for pattern in NVVM_PATTERNS
    ]
    return next(
        iter(_unique_files(path for place in places for path in sorted(glob.glob(place)))), None
    )


def _unique_files(paths: Iterable[str]) -> list[str]:
    """Return the absolute paths of existing files, each file once, by its first path."""
    by_path: dict[str, str] = {}
    for path in paths:
        if os.path.isabs(path) and os.path.isfile(path):
            by_path.setdefault(os.path.realpath(path), path)
    return list(by_path.values())
