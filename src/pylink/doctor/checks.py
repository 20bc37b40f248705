"""The checks of `pylink doctor`; each returns or yields findings, with a command to fix each."""

from __future__ import annotations

import importlib.util
import os
import resource
import socket
import sys
from dataclasses import dataclass

from pylink import __version__
from pylink._native import OBJECT_PATH
from pylink._native.cores import count_cores
from pylink.command.overlay import find_native_program
from pylink.files.overlayfiles import RELEASE_FILE, followed_release, wants_notes
from pylink.startup import bundle
from pylink.startup.usercache import cache_directory, cached_name
from pylink.subtools.compilers import find_nvjitlink, library_release, release_text
from pylink.subtools.programs import cuda_tools, tool_version
from pylink.subtools.programs import find_program as find_in_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# States of a finding: SLOW makes links slower, MISSING is something that links need, and NOTE is a
# lack or limit that concerns only some links.
OK, NOTE, SLOW, MISSING = "ok", "note", "slow", "missing"

# Python packages that decompress device code of nvcc, and the codec of each.
CODECS = {"lz4": "LZ4", "zstandard": "Zstandard, as nvcc 13 uses it"}
# Modules by which an extra counts as installed (it may install more), and what the extra is for.
EXTRAS = {
    "lines": (("elftools",), "source lines in messages"),
    "report": (
        ("google.protobuf", "jinja2", "numpy", "rich"),
        "profiles: --profile, pylink report",
    ),
    "plot": (("matplotlib",), "plots of profiles"),
    "remarks": (("yaml",), "reading remarks from YAML"),
    "fleet": (("duckdb", "pyarrow"), "indexes of build trees: pylink dedup index"),
}
# The value of PYLINK_SERVER with which the first link starts a server.
AUTO = "auto"


@dataclass(frozen=True)
class Check:
    """One finding: the name of the check, the state, a text, and the command to fix it, if any."""

    name: str
    state: str
    text: str
    fix: str = ""


def run_all() -> Iterator[Check]:
    """Run all checks, the most basic first, and yield their findings."""
    yield Check("pylink", OK, f"{__version__}, in {bundle.PACKAGE}")
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("interpreter", OK, f"Python {version}, {sys.executable}")
    yield Check("native code", OK, OBJECT_PATH)
    yield _check_program()
    yield _check_bundle()
    yield from _check_codecs()
    yield from _check_compilers()
    yield from check_toolkit()
    yield from _check_extras()
    yield check_server()
    yield from _check_limits()


def _check_program() -> Check:
    """Check that a native program starts this pylink."""
    program = find_native_program()
    if program is not None:
        return Check("program", OK, program)
    return Check(
        "program",
        SLOW,
        f"no native program beside {sys.executable} starts this pylink: links start as scripts",
        f"{sys.executable} -m pip install --force-reinstall --no-deps pylink-cuda",
    )


def _check_bundle() -> Check:
    """Check the start-up bundle, the file with the compiled modules of a link.

    It is the first bundle that exists, in the order in which the launcher looks for one.
    """
    cache = cache_directory()
    places = [(bundle.PATH, "in the package"), (bundle.SHIPPED, "of the wheel")]
    if cache is not None:
        cached = os.path.join(cache, cached_name(bundle.PACKAGE, bundle.NAME))
        places.insert(1, (cached, "in the user's cache"))
    fix = f"{sys.executable} -m pylink.startup.bundle"
    if not os.access(bundle.PACKAGE, os.W_OK):
        fix += "  (as a user who may write the package)"
    for path, origin in places:
        state = bundle.state_of(path)
        if state == "good":
            return Check("bundle", OK, f"{path} ({origin})")
        if state == "stale":
            text = f"{path} is older than its sources: each link starts twice"
            return Check("bundle", SLOW, text, fix)
    if cache is None and not bundle.may_write():
        text = "none; neither the package nor a cache of this user (HOME) is writable"
    else:
        text = "none yet; the next link writes one"
    return Check("bundle", SLOW, text, fix)


def _check_codecs() -> Iterator[Check]:
    """Check that the packages that decompress device code are installed."""
    for module, codec in CODECS.items():
        if is_installed(module):
            yield Check(
                module, OK, f"device code compressed with {codec.split(',')[0]} can be read"
            )
        else:
            text = f"device code compressed with {codec}, cannot be read"
            yield Check(module, MISSING, text, f"{sys.executable} -m pip install {module}")


def _check_compilers() -> Iterator[Check]:
    """Check for the compilers of PTX and LTO-IR, ptxas and nvJitLink."""
    tools = list(cuda_tools("ptxas"))
    fix = f"{sys.executable} -m pip install 'pylink-cuda[cuda]'"
    if tools:
        text = ", ".join(f"{tool_version(path) or 'unknown release'} ({path})" for path in tools)
        yield Check("ptxas", OK, text)
    else:
        yield Check("ptxas", NOTE, "none: inputs with PTX cannot be linked", fix)
    libraries = find_nvjitlink()
    if libraries:
        text = ", ".join(f"{release_text(library_release(path))} ({path})" for path in libraries)
        yield Check("nvJitLink", OK, text)
    else:
        yield Check("nvJitLink", NOTE, "none: inputs with LTO-IR cannot be linked", fix)


def check_toolkit() -> Iterator[Check]:
    """Check for a CUDA toolkit, and which linker its nvcc in PATH uses."""
    nvcc = next(cuda_tools("nvcc"), None)
    if nvcc is None:
        yield Check("toolkit", NOTE, "no nvcc in wheels, CUDA_HOME, CUDA_PATH or PATH")
    else:
        yield Check("toolkit", OK, f"CUDA {tool_version(nvcc) or 'of unknown release'}, {nvcc}")
    path_nvcc = find_in_path("nvcc")
    directory = os.path.dirname(path_nvcc) if path_nvcc else ""
    if directory and os.path.exists(os.path.join(directory, RELEASE_FILE)):
        release = followed_release(directory)
        rule = f"as CUDA {release}" if release else "by the release of the newest input"
        notes = "with notes" if wants_notes(directory) else "plain"
        yield Check("overlay", OK, f"nvcc of PATH links with pylink {rule}, {notes}")
    elif nvcc is not None:
        toolkit = os.path.dirname(os.path.dirname(nvcc))
        text = "nvcc of PATH links with NVIDIA's nvlink" if path_nvcc else "no nvcc in PATH"
        yield Check("overlay", NOTE, text, f"pylink toolkit-overlay toolkit --cuda {toolkit}")


def _check_extras() -> Iterator[Check]:
    """Check which optional dependencies are installed."""
    for extra, (modules, use) in EXTRAS.items():
        lacking = [module for module in modules if not is_installed(module)]
        if lacking:
            fix = f"{sys.executable} -m pip install 'pylink-cuda[{extra}]'"
            yield Check(f"[{extra}]", NOTE, f"not installed: {use}", fix)
        else:
            yield Check(f"[{extra}]", OK, use)


def check_server() -> Check:
    """Check that a server answers links, if PYLINK_SERVER names the socket of one.

    The value `auto` is not checked, since the first link starts the server.
    """
    path = os.environ.get("PYLINK_SERVER", "")
    if not path:
        text = "none: each link starts an interpreter"
        return Check("server", NOTE, text, f"export PYLINK_SERVER={AUTO}")
    if path == AUTO:
        return Check("server", OK, "started by the first link (PYLINK_SERVER=auto)")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(path)
        except (OSError, ValueError):
            text = f"no server answers at {path} (PYLINK_SERVER): links run without one"
            return Check("server", SLOW, text, "unset PYLINK_SERVER, or start pylink serve")
    return Check("server", OK, path)


def _check_limits() -> Iterator[Check]:
    """Check the limits of this process: processors and memory."""
    cores = count_cores()
    yield Check("processors", OK, f"{cores} for this process")
    memory, _ = resource.getrlimit(resource.RLIMIT_AS)
    if memory != resource.RLIM_INFINITY:
        text = f"address space is limited to {memory >> 20} MiB"
        yield Check("memory", NOTE, text, "ulimit -v unlimited")


def is_installed(module: str) -> bool:
    """Return whether a module can be found, without importing it; its parent is imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # the parent package is missing, or a placeholder
        return False
