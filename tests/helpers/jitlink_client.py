"""A program that links through libnvJitLink, in a process of its own.

    python jitlink_client.py standin|LIBRARY < requests > replies

With `standin` it installs pylink first and then loads the library by its name, as any program does.
A request is a pickled list of `(options, steps)`. A step is `("data", type, bytes, name)`,
`("file", type, path)` or `("complete",)`. The reply has, for each request, the result of every
call, both logs and the linked cubin.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
from typing import Any

Step = tuple[Any, ...]
Request = tuple[list[str], list[Step]]
Reply = tuple[list[int], dict[str, bytes]]

# Results that are asked for, and bytes after the room for each, which must stay.
NAMES = ("LinkedCubin", "ErrorLog", "InfoLog")
GUARD = b"\xaa" * 8


def ask(library: ctypes.CDLL, request: Request) -> Reply:
    """Do the steps of a request with one handle; none if the handle cannot be created."""
    options, steps = request
    handle = ctypes.c_void_p()
    words = (ctypes.c_char_p * max(1, len(options)))(*(word.encode() for word in options))
    results = [library.nvJitLinkCreate(ctypes.byref(handle), len(options), words)]
    referenced = []  # what the library was given the addresses of
    for step in steps if results == [0] else ():
        if step[0] == "data":
            _, kind, data, name = step
            referenced.append((data, name))
            size = ctypes.c_size_t(len(data))
            results.append(library.nvJitLinkAddData(handle, kind, data, size, name))
        elif step[0] == "file":
            results.append(library.nvJitLinkAddFile(handle, step[1], os.fsencode(step[2])))
        else:
            results.append(library.nvJitLinkComplete(handle))
    outputs = {name: fetch(library, handle, name) for name in NAMES}
    results.append(library.nvJitLinkDestroy(ctypes.byref(handle)))
    assert handle.value is None
    return results, outputs


def fetch(library: ctypes.CDLL, handle: ctypes.c_void_p, name: str) -> bytes:
    """Return the cubin, or a log with its NUL; empty if the library has none."""
    size = ctypes.c_size_t()
    if getattr(library, f"nvJitLinkGet{name}Size")(handle, ctypes.byref(size)):
        return b""
    room = ctypes.create_string_buffer(bytes(size.value + 1) + GUARD, size.value + 1 + len(GUARD))
    if getattr(library, f"nvJitLinkGet{name}")(handle, room):
        return b""
    assert room.raw.endswith(GUARD), f"{name}: more was written than its size"
    return room.raw[: size.value]


def main(library_name: str) -> None:
    """Answer the requests on standard input with a library, or with the stand-in."""
    if library_name == "standin":
        import pylink.jitlink  # noqa: PLC0415 -- not with the real library

        pylink.jitlink.install()
        library_name = "libnvJitLink.so.13"
    library = ctypes.CDLL(library_name)
    requests = pickle.load(sys.stdin.buffer)
    pickle.dump([ask(library, request) for request in requests], sys.stdout.buffer)


if __name__ == "__main__":
    main(sys.argv[1])
