"""The stand-in library: a small shared object with nvJitLink's name, which calls Python code here.

The dynamic linker resolves `libnvJitLink.so.13` to the library that is loaded under this DT_SONAME,
for Python packages and for libraries that were linked with it.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
from importlib.machinery import EXTENSION_SUFFIXES

from pylink.jitlink.handle import Handle
from pylink.jitlink.real import INVALID_INPUT, NULL_INPUT, RESULTS, SUCCESS, Real

# By major release: the version that is reported if the real library is not installed. Links follow
# the newest tool of their inputs, at least 13.0.
VERSIONS = {12: (12, 9), 13: (13, 0)}


def soname(major: int) -> str:
    """Return the DT_SONAME of nvJitLink's library of a major release."""
    return f"libnvJitLink.so.{major}"


def find_loaded(major: int) -> ctypes.CDLL | None:
    """Return the library that is loaded under nvJitLink's name; None if not loaded."""
    try:
        return ctypes.CDLL(soname(major), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def find_standin(major: int) -> str:
    """Return the path of the stand-in; OSError if this installation does not have it."""
    for suffix in EXTENSION_SUFFIXES:
        path = os.path.join(os.path.dirname(__file__), f"nvjitlink{major}{suffix}")
        if os.path.isfile(path):
            return path
    raise OSError(f"this installation of pylink has no stand-in for {soname(major)}")


class Standin:
    """The loaded stand-in of a major release, which calls methods of a `Calls` until exit."""

    def __init__(self, major: int, real: Real) -> None:
        # RTLD_GLOBAL lets libraries that are loaded later find its symbols, like those of a
        # program's own libraries. Functions of a PyDLL are called with the GIL.
        self._library = ctypes.PyDLL(find_standin(major), mode=os.RTLD_NOW | os.RTLD_GLOBAL)
        install = self._library.pylink_standin_install
        install.argtypes = [ctypes.py_object]
        install.restype = None
        install(Calls(major, real))
        # A null pointer makes the stand-in forget the `Calls`.
        remove = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
        atexit.register(remove(("pylink_standin_install", self._library)), None)


class Calls:
    """The functions that `standin.h` calls for those of nvJitLink.h, with the same result numbers.

    Names are bytes. Other pointers that the library's caller passes are addresses here. A handle is
    the number that `create` gave it; `create` itself takes the address for that number.
    `result_number` is an index of RESULTS, and `kind` a number of nvJitLinkInputType.
    """

    def __init__(self, major: int, real: Real) -> None:
        self._major = major
        self._real = real
        self._handles: dict[int, Handle] = {}
        self._numbers = itertools.count(1)  # numbers of handles: 0 is a null pointer

    def create(self, handle: int, count: int, address: int) -> int:
        """Make a handle with `count` options; write its number to the address `handle`.

        `address` is that of the array of pointers to the options.
        """
        options_given = (ctypes.c_char_p * count).from_address(address) if count else ()
        new_handle = Handle([word or b"" for word in options_given], self._real)
        number = next(self._numbers)
        self._handles[number] = new_handle
        ctypes.c_void_p.from_address(handle).value = number
        return new_handle.created

    def destroy(self, handle: int) -> int:
        closed = self._handles.pop(handle, None)
        return NULL_INPUT if closed is None else closed.destroy()

    def add_data(self, handle: int, kind: int, data: int, size: int, name: bytes) -> int:
        if size < 0:  # a size_t of 2**63 or more
            return INVALID_INPUT
        # `string_at` takes a C int as the size, which is too small for large inputs.
        contents = bytes((ctypes.c_char * size).from_address(data))
        return self._handles[handle].add_data(kind, contents, name)

    def add_file(self, handle: int, kind: int, name: bytes) -> int:
        return self._handles[handle].add_file(kind, name)

    def complete(self, handle: int) -> int:
        return self._handles[handle].complete()

    def get_size(self, handle: int, result_number: int, size: int) -> int:
        """Write the size of a result to the address `size`."""
        result, result_size = self._handles[handle].get_size(RESULTS[result_number])
        if result == SUCCESS:
            ctypes.c_size_t.from_address(size).value = result_size
        return result

    def get(self, handle: int, result_number: int, address: int) -> int:
        """Write a result to an address with room for it."""
        return self._handles[handle].get(RESULTS[result_number], address)

    def version(self, major: int, minor: int) -> int:
        """Write the release of the real library, or else that in VERSIONS, to two addresses."""
        try:
            numbers = self._real.version()
        except OSError:
            numbers = VERSIONS[self._major]
        for address, number in zip((major, minor), numbers, strict=True):
            ctypes.c_uint.from_address(address).value = number
        return SUCCESS

    def find_api(self, address: int) -> int:
        """Write the address of the real library's function `__nvJitLinkAPI` to `address`."""
        ctypes.c_void_p.from_address(address).value = self._real.api()
        return SUCCESS
