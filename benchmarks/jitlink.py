"""Link cubins with nvJitLink and print the seconds that took.

    python benchmarks/jitlink.py LIBRARY ARCH OUTPUT CUBIN...

Timed is what `pylink.link` does: from file names to the linked file in its place.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
import time
from pathlib import Path

INPUT_CUBIN = 1  # nvJitLinkInputType


def library() -> Path | None:
    """libnvJitLink of the installed wheel, if there is one."""
    for path in {sysconfig.get_path("purelib"), *sys.path}:
        found = sorted(Path(path).glob("nvidia/cu13/lib/libnvJitLink.so.*"))
        if found:
            return found[0]
    return None


def link(nvjitlink: ctypes.CDLL, arch: str, inputs: list[str]) -> bytes:
    """The linked cubin; RuntimeError when a call fails."""

    def call(name: str, *arguments: object) -> None:
        code = getattr(nvjitlink, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: nvJitLinkResult {code}")

    handle = ctypes.c_void_p()
    options = (ctypes.c_char_p * 1)(f"-arch={arch}".encode())
    call("nvJitLinkCreate", ctypes.byref(handle), 1, options)
    for name in inputs:
        call("nvJitLinkAddFile", handle, INPUT_CUBIN, name.encode())
    call("nvJitLinkComplete", handle)
    size = ctypes.c_size_t()
    call("nvJitLinkGetLinkedCubinSize", handle, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    call("nvJitLinkGetLinkedCubin", handle, image)
    call("nvJitLinkDestroy", ctypes.byref(handle))
    return image.raw


def main(library_path: str, arch: str, output: str, *inputs: str) -> None:
    nvjitlink = ctypes.CDLL(library_path)
    start = time.perf_counter()
    Path(output).write_bytes(link(nvjitlink, arch, list(inputs)))
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
