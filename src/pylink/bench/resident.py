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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypedDict

    class CopyRequest(TypedDict):  # paths of the files to copy, and of the output
        inputs: list[str]
        output: str

    class ApiRequest(TypedDict):  # a link by `pylink.link`; `output` is a path
        arch: str
        inputs: list[tuple[str, bool]]  # name, and whether all members of an archive are linked
        options: dict[str, Any]  # of pylink.link
        output: str

    class JitRequest(TypedDict):  # a link by the nvJitLink with the path `library`
        library: str
        options: list[str]
        inputs: list[tuple[int, str]]  # nvJitLink's number of the kind, and the name
        output: str

    Request = CopyRequest | ApiRequest | JitRequest
    LinkOnce = Callable[[Any], None]

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


def _prepare_copy() -> LinkOnce:
    """Return a function that copies the inputs of a request."""

    def link_once(request: CopyRequest) -> None:
        copy(request["inputs"], request["output"])

    return link_once


def _prepare_api() -> LinkOnce:
    """Import pylink, and return a function that links once with it."""
    import pylink

    def link_once(request: ApiRequest) -> None:
        inputs = [
            pylink.Input(name, whole_archive=is_whole) for name, is_whole in request["inputs"]
        ]
        pylink.link(inputs, arch=request["arch"], output=request["output"], **request["options"])

    return link_once


def _prepare_nvjitlink() -> LinkOnce:
    """Return a function that links once with nvJitLink, which it loads at the first request."""
    from pylink.jitlink.real import SUCCESS, Real

    libraries: dict[str, Real] = {}

    def link_once(request: JitRequest) -> None:
        path = request["library"]
        library = libraries.setdefault(path, Real(path, 0))
        status, handle = library.create([option.encode() for option in request["options"]])
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

    return link_once


# By contender: a function that loads what it needs, and returns one that carries out a request.
KINDS = {COPY: _prepare_copy, API: _prepare_api, NVJITLINK: _prepare_nvjitlink}


def _peak() -> int:
    """Return the peak resident bytes of this process, without those of its parent."""
    with open("/proc/self/status", "rb") as stream:
        for line in stream:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024  # the line has KiB
    return 0


def serve(kind: str) -> None:
    """Answer requests until standard input ends."""
    link_once = KINDS[kind]()
    # A called library may print to standard output: its text goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        start, cpu_start = time.perf_counter(), time.process_time()
        try:
            link_once(request)
        except Exception as error:
            answer: dict[str, object] = {"failed": str(error) or type(error).__name__}
        else:
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
            answer = {"seconds": seconds, "cpu": cpu, "rss": _peak()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])
    serve(sys.argv[1])
