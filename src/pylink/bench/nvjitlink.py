"""A link through NVIDIA's nvJitLink, from file names to the linked file in its place.

Loads nothing of pylink: it runs in a process of its own.
"""

from __future__ import annotations

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Refused(Exception):
    """A call that failed; the text is the library's log, or which call it was."""


def link(
    nvjitlink: ctypes.CDLL, words: Sequence[str], inputs: Sequence[tuple[int, str]]
) -> ctypes.Array[ctypes.c_char]:
    """The linked cubin; `inputs` are pairs of nvJitLinkInputType and file name. Refused, too."""
    handle = ctypes.c_void_p()

    def call(name: str, *arguments: object) -> None:
        code = getattr(nvjitlink, name)(*arguments)
        if code:
            raise Refused(_log(nvjitlink, handle) or f"{name}: nvJitLinkResult {code}")

    options = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    call("nvJitLinkCreate", ctypes.byref(handle), len(words), options)
    try:
        for kind, name in inputs:
            call("nvJitLinkAddFile", handle, kind, name.encode())
        call("nvJitLinkComplete", handle)
        size = ctypes.c_size_t()
        call("nvJitLinkGetLinkedCubinSize", handle, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        call("nvJitLinkGetLinkedCubin", handle, image)
    finally:
        nvjitlink.nvJitLinkDestroy(ctypes.byref(handle))
    return image


def _log(nvjitlink: ctypes.CDLL, handle: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    if not handle or nvjitlink.nvJitLinkGetErrorLogSize(handle, ctypes.byref(size)):
        return ""
    text = ctypes.create_string_buffer(size.value + 1)
    nvjitlink.nvJitLinkGetErrorLog(handle, text)
    return text.value.decode(errors="replace").strip()
