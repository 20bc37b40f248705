"""The real nvJitLink library, for code that must be compiled and for unknown options."""

from __future__ import annotations

import ctypes
import os
import threading

from pylink.subtools.compilers import find_nvjitlink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Result numbers: values of the enumeration nvJitLinkResult in nvJitLink.h.
SUCCESS = 0
MISSING_ARCH = 2
INVALID_INPUT = 3
INTERNAL = 6
UNRECOGNIZED_INPUT = 8
NULL_INPUT = 10
INCORRECT_INPUT_TYPE = 12

# Results of a handle, in the order of the enumeration in standin.h.
RESULTS = ("LinkedCubin", "LinkedPtx", "LinkedLTOIR", "ErrorLog", "InfoLog")


def find(major: int) -> str | None:
    """Return the first path of the library in wheels, toolkits or the system; None if not found."""
    return next(iter(find_nvjitlink(major=major)), None)


class Real:
    """NVIDIA's nvJitLink library, loaded when first needed; OSError if it is not installed."""

    def __init__(self, path: str | None, major: int) -> None:
        self._path = path
        self._major = major
        self._library: ctypes.CDLL | None = None
        self._lock = threading.Lock()

    @property
    def library(self) -> ctypes.CDLL:
        """The loaded library; OSError if it is not installed."""
        with self._lock:
            if self._library is None:
                path = self._path or find(self._major)
                if path is None:
                    raise OSError(
                        f"libnvJitLink.so.{self._major} is not installed: it compiles PTX and "
                        f"LTO-IR (pip install 'nvidia-nvjitlink>={self._major},<{self._major + 1}')"
                    )
                self._library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
            return self._library

    def is_available(self) -> bool:
        """Return whether the library can be loaded."""
        try:
            return self.library is not None
        except OSError:
            return False

    def version(self) -> tuple[int, int]:
        """Return the major and minor release of the real library."""
        major, minor = ctypes.c_uint(), ctypes.c_uint()
        self.library.nvJitLinkVersion(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def api(self) -> int:
        """Return the address of the undocumented function `__nvJitLinkAPI`."""
        # In a class, Python would change the name of an attribute with two underscores.
        function = getattr(self.library, "__nvJitLinkAPI")
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def create(self, arguments: Sequence[bytes]) -> tuple[int, RealHandle]:
        """Call nvJitLinkCreate with options; return its result number, and the handle."""
        handle = ctypes.c_void_p()
        options = (ctypes.c_char_p * max(1, len(arguments)))(*arguments)
        result = self.library.nvJitLinkCreate(ctypes.byref(handle), len(arguments), options)
        return result, RealHandle(self.library, handle, usable=result == SUCCESS)


class RealHandle:
    """A handle of the real library; the methods call the library's functions for it.

    A handle whose options were refused is not `usable`: only its logs can be read, since the
    library may end the process on other calls.
    """

    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p, *, usable: bool) -> None:
        self._library = library
        self._handle = handle
        self._usable = usable
        # Keeps buffers alive, since the library may not copy them.
        self._buffers: list[tuple[bytes, bytes | None]] = []

    def add_data(self, kind: int, data: bytes, name: bytes | None) -> int:
        if not self._usable:
            return INTERNAL
        self._buffers.append((data, name))
        add = self._library.nvJitLinkAddData
        return int(add(self._handle, kind, data, ctypes.c_size_t(len(data)), name))

    def add_file(self, kind: int, name: bytes) -> int:
        if not self._usable:
            return INTERNAL
        return int(self._library.nvJitLinkAddFile(self._handle, kind, name))

    def complete(self) -> int:
        return int(self._library.nvJitLinkComplete(self._handle)) if self._usable else INTERNAL

    def get_size(self, result_name: str) -> tuple[int, int]:
        """Return the result code, and the size of `result_name`, one of `RESULTS`."""
        size = ctypes.c_size_t()
        if not (self._usable or result_name.endswith("Log")):
            return INTERNAL, 0
        function = getattr(self._library, f"nvJitLinkGet{result_name}Size", None)
        if function is None:  # LTO-IR, before 13.1
            return INVALID_INPUT, 0
        return int(function(self._handle, ctypes.byref(size))), size.value

    def get(self, result_name: str, address: int) -> int:
        """Write `result_name` to an address with room for it, and for a NUL if it is empty."""
        if not (self._usable or result_name.endswith("Log")):
            return INTERNAL
        function = getattr(self._library, f"nvJitLinkGet{result_name}", None)
        return (
            INVALID_INPUT
            if function is None
            else int(function(self._handle, ctypes.c_void_p(address)))
        )

    def read_result(self, result_name: str) -> bytes:
        """Return the bytes of `result_name`; empty if not available."""
        result, size = self.get_size(result_name)
        buffer = ctypes.create_string_buffer(size + 1)  # of an empty log, a NUL is written
        if result != SUCCESS or self.get(result_name, ctypes.addressof(buffer)) != SUCCESS:
            return b""
        return buffer.raw[:size]

    def destroy(self) -> int:
        return int(self._library.nvJitLinkDestroy(ctypes.byref(self._handle)))
