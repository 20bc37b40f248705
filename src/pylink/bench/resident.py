"""The program of a process that links repeatedly, for contenders that are called, not started.

Run as a script with the name of a contender and `sys.path` as JSON, it reads one JSON object per
line and answers `{"seconds", "cpu", "rss"}` (like the launcher, but only for the call; peak memory
is that of all calls so far) or `{"failed": reason}`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypedDict

    from pylink.jitlink.real import RealHandle

    class CopyRequest(TypedDict):  # paths of the files to copy, and of the output
        inputs: list[str]
        output: str

    class ApiRequest(TypedDict):  # a link by `pylink.link`; `output` is a path
        arch: str
        inputs: list[tuple[str, bool]]  # name, and whether all members of an archive are linked
        options: dict[str, Any]  # further keyword arguments of pylink.link
        output: str

    class JitRequest(TypedDict):  # a link by the nvJitLink with the path `library`
        library: str
        options: list[str]
        inputs: list[tuple[int, str]]  # nvJitLink's number of the kind, and the name
        output: str

    Request = CopyRequest | ApiRequest | JitRequest
    Answer = dict[str, Any]
    # Prepares one link by a request, and returns the function to time.
    Prepare = Callable[[Any], Callable[[], None]]

# Names of contenders, as the first argument of this program has them.
COPY, API, NVJITLINK = "copy", "api", "nvjitlink"

# Bytes to copy at a time; they fit into the processor's cache.
COPY_SIZE = 1 << 18


def copy(inputs: Sequence[str], output: str) -> None:
    """Write the bytes of all inputs to one file while reading: no linker can do less."""
    with open(output, "wb", buffering=0) as file:
        for name in inputs:
            with open(name, "rb", buffering=0) as stream:
                shutil.copyfileobj(stream, file, COPY_SIZE)


def _load_copy() -> Prepare:
    """Return a function that prepares a copy of the inputs of a request."""

    def prepare(request: CopyRequest) -> Callable[[], None]:
        return partial(copy, request["inputs"], request["output"])

    return prepare


def _load_api() -> Prepare:
    """Import pylink, and return a function that prepares a link; the whole link is timed."""
    import pylink

    def link(request: ApiRequest) -> None:
        inputs = [
            pylink.Input(name, whole_archive=is_whole) for name, is_whole in request["inputs"]
        ]
        pylink.link(inputs, arch=request["arch"], output=request["output"], **request["options"])

    return lambda request: partial(link, request)


def _load_nvjitlink() -> Prepare:
    """Return a function that prepares a link with nvJitLink.

    The returned function creates the handle, and loads the library at the first request. Neither is
    timed.
    """
    from pylink.jitlink.real import SUCCESS, Real

    libraries: dict[str, Real] = {}

    def prepare(request: JitRequest) -> Callable[[], None]:
        path = request["library"]
        library = libraries.setdefault(path, Real(path, 0))
        status, handle = library.create([option.encode() for option in request["options"]])
        return partial(link, status, handle, request)

    def link(status: int, handle: RealHandle, request: JitRequest) -> None:
        try:
            for kind, name in request["inputs"]:
                status = status or handle.add_file(kind, name.encode())
            status = status or handle.complete()
            if status != SUCCESS:
                log = handle.read_result("ErrorLog").decode(errors="replace").strip("\0 \n")
                raise RuntimeError(log or f"nvJitLinkResult {status}")
            image = handle.read_result("LinkedCubin")
        finally:
            handle.destroy()
        with open(request["output"], "wb") as stream:
            stream.write(image)

    return prepare


# By contender: a function that loads what the contender needs, and returns the function that
# prepares a link.
KINDS = {COPY: _load_copy, API: _load_api, NVJITLINK: _load_nvjitlink}


def time_link(prepare: Prepare, request: Request) -> Answer:
    """Link once by a request, and return the answer; what `prepare` itself does is not timed."""
    try:
        link = prepare(request)
        start, cpu_start = time.perf_counter(), time.process_time()
        link()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    except Exception as error:
        return {"failed": str(error) or type(error).__name__}
    return {"seconds": seconds, "cpu": cpu, "rss": _peak()}


def _peak() -> int:
    """Return the peak resident bytes of this process, without those of its parent."""
    with open("/proc/self/status", "rb") as stream:
        for line in stream:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024  # the line has KiB
    return 0


def serve(kind: str) -> None:
    """Answer requests until standard input ends."""
    prepare = KINDS[kind]()
    # A called library may print to standard output: its text goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(time_link(prepare, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])
    serve(sys.argv[1])
