"""pylink in nvJitLink's place, as far as that needs no CUDA: who gets it, and how it ends."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import textwrap
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import demo

from pylink import jitlink
from pylink.jitlink import real
from pylink.jitlink.options import parse_options

CUBINS = [str(path) for path in demo.cubins("sm_90a")]

HEAD = """
import ctypes, os, sys, threading
import pylink, pylink.jitlink

def create(library, *words):
    handle = ctypes.c_void_p()
    options = (ctypes.c_char_p * len(words))(*words)
    return library.nvJitLinkCreate(ctypes.byref(handle), len(words), options), handle

def link(library):
    result, handle = create(library, b"-arch=sm_90a")
    assert result == 0
    for path in sys.argv[1:]:
        assert library.nvJitLinkAddFile(handle, 1, os.fsencode(path)) == 0
    assert library.nvJitLinkComplete(handle) == 0
    size = ctypes.c_size_t()
    assert library.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size)) == 0
    image = ctypes.create_string_buffer(size.value)
    assert library.nvJitLinkGetLinkedCubin(handle, image) == 0
    assert library.nvJitLinkDestroy(ctypes.byref(handle)) == 0
    return image.raw

def log(library, handle):
    size = ctypes.c_size_t()
    assert library.nvJitLinkGetErrorLogSize(handle, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value + 1)
    assert library.nvJitLinkGetErrorLog(handle, text) == 0
    return text.value.decode()
"""


def run(body: str, *arguments: str) -> str:
    """The output of a program that starts with `HEAD`; it must end well."""
    program = HEAD + textwrap.dedent(body)
    command = [sys.executable, "-c", program, *(arguments or CUBINS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("major", jitlink.MAJORS)
def test_whoever_asks_by_name_gets_it(major: int) -> None:
    """By the plain name of each function and by those with a release, with its symbol version."""
    body = f"""
        pylink.jitlink.install(majors=({major},))
        pylink.jitlink.install(majors=({major},))
        assert pylink.jitlink.is_installed({major})
        library = ctypes.CDLL("libnvJitLink.so.{major}")
        linked = link(library)
        inputs = sys.argv[1:]
        options = {{"allow_empty": True, "ignore_host_info": True, "merc_dedup": "off"}}
        assert linked == pylink.link(inputs, arch="sm_90a", **options).image
        libc = ctypes.CDLL(None)
        libc.dlvsym.restype = ctypes.c_void_p
        for name in ("Create", "Destroy", "AddData", "AddFile", "Complete", "GetLinkedCubin",
                     "GetLinkedCubinSize", "GetLinkedPtx", "GetLinkedPtxSize", "GetErrorLog",
                     "GetErrorLogSize", "GetInfoLog", "GetInfoLogSize"):
            plain = ctypes.cast(getattr(library, "nvJitLink" + name), ctypes.c_void_p).value
            for minor in range(10):
                text = f"__nvJitLink{{name}}_{major}_{{minor}}".encode()
                handle = ctypes.c_void_p(library._handle)
                assert libc.dlvsym(handle, text, b"libnvJitLink.so.{major}") == plain, text
        assert library.__nvJitLinkAPI
        """
    run(body)


def test_the_function_that_is_not_documented_comes_from_the_real_library() -> None:
    function = ctypes.CDLL(None).getpid
    library = real.Real(None, 13)
    loaded: Any = SimpleNamespace(**{"__nvJitLinkAPI": function})
    library._library = loaded
    assert library.api() == ctypes.cast(function, ctypes.c_void_p).value


def test_a_handle_with_refused_options_gets_no_result() -> None:
    loaded: Any = SimpleNamespace()  # without functions: none may be called
    handle = real.RealHandle(loaded, ctypes.c_void_p(), usable=False)
    assert handle.get("LinkedCubin", 0) == handle.get_size("LinkedCubin")[0] == real.INTERNAL


def test_a_library_that_is_loaded_stays() -> None:
    body = """
        from pylink.jitlink import library
        ctypes.CDLL(library.find_standin(13))
        try:
            pylink.jitlink.install()
        except RuntimeError as error:
            print(error)
        """
    assert "libnvJitLink.so.13 is loaded already" in run(body)


def test_threads_link_side_by_side() -> None:
    body = """
        pylink.jitlink.install()
        library = ctypes.CDLL("libnvJitLink.so.13")
        images = []
        def work():
            for _ in range(10):
                images.append(link(library))
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(len(images), len(set(images)))
        """
    assert run(body) == "80 1\n"


def test_handles_outlive_the_interpreter() -> None:
    """A C library's own end of the process comes after Python's, with what it still holds."""
    body = """
        pylink.jitlink.install()
        library = ctypes.CDLL("libnvJitLink.so.13")
        libc = ctypes.CDLL(None)
        libc.malloc.restype = ctypes.c_void_p
        libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
        held = ctypes.c_void_p(libc.malloc(8))  # Python's own memory is gone by then
        _, handle = create(library, b"-arch=sm_90a")
        ctypes.cast(held, ctypes.POINTER(ctypes.c_void_p))[0] = handle
        libc.__cxa_atexit(ctypes.cast(library.nvJitLinkDestroy, ctypes.c_void_p), held, None)
        """
    run(body)


def test_without_the_real_library_what_needs_a_compiler_says_so() -> None:
    body = """
        pylink.jitlink.install(real="/nowhere/libnvJitLink.so.13")
        library = ctypes.CDLL("libnvJitLink.so.13")
        _, handle = create(library, b"-arch=sm_90")
        text = b".version 8.0\\n.target sm_90\\n"
        print(library.nvJitLinkAddData(handle, 2, text, ctypes.c_size_t(len(text)), b"a.ptx"))
        print(log(library, handle))
        library.nvJitLinkDestroy(ctypes.byref(handle))
        major, minor = ctypes.c_uint(), ctypes.c_uint()
        print(library.nvJitLinkVersion(ctypes.byref(major), ctypes.byref(minor)), major.value)
        """
    first, second, *rest = run(body).splitlines()
    assert first == "6"
    assert "/nowhere/libnvJitLink.so.13" in second
    assert rest[-1] == "0 13"


def test_an_empty_log_of_the_real_library_has_room_for_its_nul(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The library says that an empty log has no bytes, and writes a NUL."""
    sizes: list[int] = []
    create = ctypes.create_string_buffer

    def create_buffer(size: int) -> ctypes.Array[ctypes.c_char]:
        sizes.append(size)
        return create(size)

    class Library:
        def nvJitLinkGetErrorLogSize(self, handle: object, size: object) -> int:
            return real.SUCCESS

        def nvJitLinkGetErrorLog(self, handle: object, room: ctypes.c_void_p) -> int:
            return real.SUCCESS

    monkeypatch.setattr(ctypes, "create_string_buffer", create_buffer)
    handle = real.RealHandle(Library(), ctypes.c_void_p(), usable=True)  # type: ignore[arg-type]
    assert handle.read_result("ErrorLog") == b""
    assert sizes == [1]


def test_damaged_cubins_end_no_process() -> None:
    """The real library reads behind the end of such a file."""
    body = """
        pylink.jitlink.install()
        library = ctypes.CDLL("libnvJitLink.so.13")
        contents = open(sys.argv[1], "rb").read()
        for size in range(1, len(contents), 997):
            _, handle = create(library, b"-arch=sm_90a")
            added = library.nvJitLinkAddData(handle, 1, contents, ctypes.c_size_t(size), b"cut")
            if added == 0:
                assert library.nvJitLinkComplete(handle) == 6
                assert "cut" in log(library, handle)
            library.nvJitLinkDestroy(ctypes.byref(handle))
        """
    run(body)


def test_a_release_that_is_not_known() -> None:
    with pytest.raises(ValueError, match=r"libnvJitLink.so.11"):
        jitlink.install(majors=(11,))


def test_options_of_links() -> None:
    settings = parse_options(
        ["-arch=sm_90a", "-kernels-used=a", "-kernels-used=b", "-r", "-g", "-time"]
    )
    assert settings is not None
    assert settings.reports_time
    assert settings.values == {
        "arch": "sm_90a",
        "kernels_used": ("a", "b"),
        "relocatable_link": True,
        "debug": True,
    }


@pytest.mark.parametrize("word", ["-lto", "-ptx", "-arch=compute_90", "-arch=sm_1", "-new-option"])
def test_options_for_the_real_library(word: str) -> None:
    assert parse_options([word] if word.startswith("-arch") else ["-arch=sm_90", word]) is None


def test_importing_the_package_changes_nothing() -> None:
    body = """
        assert not pylink.jitlink.is_installed()
        try:
            ctypes.CDLL("libnvJitLink.so.12", mode=os.RTLD_NOLOAD)
        except OSError:
            print("none")
        """
    assert run(body) == "none\n"


def test_no_interrupt_is_lost_and_every_result_is_one() -> None:
    """Signals come at moments from before the call of the library to after its return."""
    said = run(
        """
        import signal, time
        pylink.jitlink.install()
        library = ctypes.CDLL("libnvJitLink.so.13")
        start = time.perf_counter()
        link(library)
        takes = time.perf_counter() - start
        results = set()
        for number in range(60):
            result, handle = create(library, b"-arch=sm_90a")
            for path in sys.argv[1:]:
                assert library.nvJitLinkAddFile(handle, 1, os.fsencode(path)) == 0
            code, interrupts = None, 0
            try:
                signal.signal(signal.SIGALRM, signal.default_int_handler)
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + takes * number / 50)
                code = library.nvJitLinkComplete(handle)
                time.sleep(takes * 2)
                time.sleep(1)  # interrupted, unless the signal is lost
            except KeyboardInterrupt:
                interrupts += 1
            assert interrupts == 1, number
            size = ctypes.c_size_t()
            found = library.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size))
            assert code in (None, 0, 6), code
            assert code != 0 or found == 0
            assert library.nvJitLinkDestroy(ctypes.byref(handle)) == 0
        print(len(link(library)) > 0)
        """
    )
    assert said == "True\n"


def test_what_ends_a_program_ends_it_from_inside_a_link() -> None:
    said = run(
        """
        import atexit, signal, time
        pylink.jitlink.install()
        library = ctypes.CDLL("libnvJitLink.so.13")
        from pylink.jitlink import handle as module
        def leave(*arguments, **more):
            raise SystemExit(0)
        result, handle = create(library, b"-arch=sm_90a")
        assert library.nvJitLinkAddFile(handle, 1, os.fsencode(sys.argv[1])) == 0
        module.run_link = leave
        atexit.register(print, "ended")
        code = library.nvJitLinkComplete(handle)
        assert code == 6
        print("never")
        """
    )
    assert said == "ended\n"


def test_a_size_that_no_object_has_is_refused() -> None:
    said = run(
        """
        pylink.jitlink.install()
        library = ctypes.CDLL("libnvJitLink.so.13")
        data = open(sys.argv[1], "rb").read()
        for size in (-1, -2, 1 << 63, 1 << 62):
            result, handle = create(library, b"-arch=sm_90a")
            print(library.nvJitLinkAddData(handle, 1, data, ctypes.c_size_t(size), b"x"))
        """
    )
    assert said == "3\n3\n3\n6\n"  # the last for want of memory


def test_options_without_their_value_are_the_real_library_s() -> None:
    for option in ("-kernels-used=", "-variables-used=", "-maxrregcount="):
        assert parse_options(["-arch=sm_90a", option]) is None
