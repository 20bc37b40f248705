"""The stand-in library: a small shared object with nvJitLink's name, whose calls come here.

The dynamic linker answers a request for `libnvJitLink.so.13` with the library that is loaded under
that DT_SONAME, whoever asks: Python packages, and libraries that were linked with it.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import os
from importlib.machinery import EXTENSION_SUFFIXES

from pylink.jitlink.handle import Handle
from pylink.jitlink.real import INTERNAL, NULL_INPUT, RESULTS, SUCCESS, Real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The release that links follow, for programs that ask where the real library is not installed.
VERSIONS = {12: (12, 9), 13: (13, 0)}

HANDLES = ctypes.POINTER(ctypes.c_void_p)
UINTS = ctypes.POINTER(ctypes.c_uint)

# As struct Calls in standin.h. Addresses are numbers here: ctypes would copy what they point to.
SIGNATURES = (
    ("create", (HANDLES, ctypes.c_uint32, ctypes.POINTER(ctypes.c_char_p)), ctypes.c_int),
    ("destroy", (HANDLES,), ctypes.c_int),
    (
        "add_data",
        (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p),
        ctypes.c_int,
    ),
    ("add_file", (ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p), ctypes.c_int),
    ("complete", (ctypes.c_void_p,), ctypes.c_int),
    (
        "get_size",
        (ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_size_t)),
        ctypes.c_int,
    ),
    ("get", (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p), ctypes.c_int),
    ("version", (UINTS, UINTS), ctypes.c_int),
    ("find_api", (HANDLES,), ctypes.c_int),
)
PROTOTYPES = {name: ctypes.CFUNCTYPE(result, *arguments) for name, arguments, result in SIGNATURES}


class Calls(ctypes.Structure):
    """What the stand-in calls; the callables live as long as the structure."""

    _fields_ = list(PROTOTYPES.items())


def soname(major: int) -> str:
    return f"libnvJitLink.so.{major}"


def find_loaded(major: int) -> ctypes.CDLL | None:
    """The library that is loaded under nvJitLink's name, if there is one."""
    try:
        return ctypes.CDLL(soname(major), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None


def find_standin(major: int) -> str:
    """The path of the stand-in; OSError when this installation has none."""
    for suffix in EXTENSION_SUFFIXES:
        path = os.path.join(os.path.dirname(__file__), f"nvjitlink{major}{suffix}")
        if os.path.isfile(path):
            return path
    raise OSError(f"this installation of pylink has no stand-in for {soname(major)}")


class Standin:
    """The loaded stand-in of a major release, and the handles that programs have."""

    def __init__(self, major: int, real: Real) -> None:
        self._major = major
        self._real = real
        self._handles: dict[int, Handle] = {}
        self._numbers = itertools.count(1)
        # Global, as a program's own libraries are: others that need it may be loaded later.
        self._library = ctypes.CDLL(find_standin(major), mode=os.RTLD_NOW | os.RTLD_GLOBAL)
        self._install = self._library.pylink_standin_install
        self._install.argtypes = [ctypes.POINTER(Calls)]
        self._install.restype = None
        self._calls = Calls(
            *(
                prototype(self._guard(getattr(self, f"_{name}")))
                for name, prototype in PROTOTYPES.items()
            )
        )
        self._install(self._calls)
        atexit.register(self._install, None)

    @staticmethod
    def _guard(function: Callable[..., int]) -> Callable[..., int]:
        """`function`, with the result of an internal error where it raises: C cannot."""

        def call(*arguments: object) -> int:
            try:
                return function(*arguments)
            except Exception:
                return INTERNAL

        return call

    def _create(self, handle: ctypes._Pointer[ctypes.c_void_p], count: int, words: object) -> int:
        assert isinstance(words, ctypes._Pointer)
        made = Handle([words[number] or b"" for number in range(count)], self._real)
        number = next(self._numbers)
        self._handles[number] = made
        handle[0] = ctypes.c_void_p(number)
        return made.created

    def _destroy(self, handle: ctypes._Pointer[ctypes.c_void_p]) -> int:
        found = self._handles.pop(handle[0] or 0, None)
        return NULL_INPUT if found is None else found.destroy()

    def _add_data(self, handle: int, kind: int, data: int, size: int, name: bytes | None) -> int:
        return self._handles[handle].add_data(kind, ctypes.string_at(data, size), name)

    def _add_file(self, handle: int, kind: int, name: bytes) -> int:
        return self._handles[handle].add_file(kind, name)

    def _complete(self, handle: int) -> int:
        return self._handles[handle].complete()

    def _get_size(self, handle: int, what: int, size: ctypes._Pointer[ctypes.c_size_t]) -> int:
        result, found = self._handles[handle].get_size(RESULTS[what])
        if result == SUCCESS:
            size[0] = ctypes.c_size_t(found)
        return result

    def _get(self, handle: int, what: int, address: int) -> int:
        return self._handles[handle].get(RESULTS[what], address)

    def _version(
        self, major: ctypes._Pointer[ctypes.c_uint], minor: ctypes._Pointer[ctypes.c_uint]
    ) -> int:
        try:
            numbers = self._real.version()
        except OSError:
            numbers = VERSIONS[self._major]
        major[0], minor[0] = (ctypes.c_uint(number) for number in numbers)
        return SUCCESS

    def _find_api(self, address: ctypes._Pointer[ctypes.c_void_p]) -> int:
        address[0] = ctypes.c_void_p(self._real.api())
        return SUCCESS
