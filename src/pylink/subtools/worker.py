"""The program that runs nvJitLink in a process of its own: reads LTO-IR, writes PTX.

The compiler may abort on damaged LTO-IR, or take too long and be stopped. Neither must end pylink.
This file is started as a script, and imports nothing of pylink.

`worker.py INPUT -o OUTPUT`: INPUT is a line of JSON and the bytes of the modules. The JSON object
has `path` (for sys.path), `options` (of nvJitLink), `preload` (library files to load), `keep` (NVVM
IR of one more module, or an empty text) and `modules` (name, kind and size of each). After a
failure the reason is on standard error, and the exit status is `FAILED`, or `MISSING` if a library
is missing. After a success, standard error has the release of nvJitLink and the milliseconds of
compiling: starting this process takes ten times as long as compiling a small program.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Exit statuses if a library is missing, and if the compiler fails. Python itself exits with 1 after
# an unexpected exception.
MISSING = 3
FAILED = 4

# Starts of the lines on standard error with the release and with the time.
RELEASE_PREFIX = "nvJitLink"
TIME_PREFIX = "compiled for"

# The architecture of the module that only names functions to keep: the lowest, which fits all
# LTO-IR, since the module has no code.
KEEP_ARCH = "compute_75"


# Arguments of personality(2): <sys/personality.h>. ASK_ONLY changes nothing.
ADDR_NO_RANDOMIZE = 0x0040000
ASK_ONLY = 0xFFFFFFFF


def main(argv: list[str]) -> int:
    """Compile the modules of an input file; return the exit status."""
    _fix_addresses()
    source, _, result = argv
    with open(source, "rb") as stream:
        task = json.loads(stream.readline())
        modules = [(name, kind, stream.read(size)) for name, kind, size in task["modules"]]
    sys.path[:] = task["path"]
    try:
        preload(task["preload"])
        from cuda.bindings import nvjitlink  # found by the path of the task

        if task["keep"]:
            modules.append(("keep", "LTOIR", _compile_keep_module(task["keep"])))
        start = time.perf_counter()
        text = compile_modules(nvjitlink, task["options"], modules)
        elapsed = 1000 * (time.perf_counter() - start)
    except (ImportError, RuntimeError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return MISSING
    except CompileError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    with open(result, "wb") as stream:
        stream.write(text)
    release = "{}.{}".format(*nvjitlink.version())
    sys.stderr.write(f"{RELEASE_PREFIX} {release}\n{TIME_PREFIX} {elapsed:.4f} ms\n")
    return 0


def _fix_addresses() -> None:
    """Restart this process without address randomization.

    The compiler iterates over some tables in address order: without optimization, and with
    -Ofc=max, the variables of its PTX would come in another order each time.
    """
    libc = ctypes.CDLL(None)
    flags = libc.personality(ASK_ONLY)
    if flags == -1 or flags & ADDR_NO_RANDOMIZE:
        return
    if libc.personality(flags | ADDR_NO_RANDOMIZE) != -1:
        os.execv(sys.executable, [sys.executable, *sys.argv])


class CompileError(Exception):
    """The compiler refused its input; the text is its log."""


def preload(paths: list[str]) -> None:
    """Load the libraries; cuda.bindings uses libraries that are already loaded."""
    for path in paths:
        ctypes.CDLL(path, ctypes.RTLD_GLOBAL)


def compile_modules(
    nvjitlink: Any, options: list[str], modules: list[tuple[str, str, bytes]]
) -> bytes:
    """Return the PTX of the modules, without the zero byte at its end."""
    handle = None
    try:
        handle = nvjitlink.create(len(options), options)
        for name, kind, data in modules:
            nvjitlink.add_data(handle, getattr(nvjitlink.InputType, kind), data, len(data), name)
        nvjitlink.complete(handle)
        text = bytearray(nvjitlink.get_linked_ptx_size(handle))
        nvjitlink.get_linked_ptx(handle, text)
    except nvjitlink.nvJitLinkError as error:
        log = bytearray(nvjitlink.get_error_log_size(handle) if handle is not None else 0)
        if log:
            nvjitlink.get_error_log(handle, log)
        raise CompileError(_log_text(log) or str(error)) from error
    return bytes(text).rstrip(b"\0")


def _compile_keep_module(source: str) -> bytes:
    """Compile the NVVM IR of the module that keeps functions (keptfunctions.py) to LTO-IR."""
    from cuda.bindings import nvvm

    program = nvvm.create_program()
    data = source.encode()
    options = [f"-arch={KEEP_ARCH}", "-gen-lto"]
    try:
        nvvm.add_module_to_program(program, data, len(data), "keep")
        nvvm.compile_program(program, len(options), options)
        module = bytearray(nvvm.get_compiled_result_size(program))
        nvvm.get_compiled_result(program, module)
    except nvvm.nvvmError as error:
        log = bytearray(nvvm.get_program_log_size(program))
        nvvm.get_program_log(program, log)
        raise CompileError(_log_text(log) or str(error)) from error
    return bytes(module)


def _log_text(log: bytearray) -> str:
    """Return the text of a log that the library wrote, without its NUL bytes and blank ends."""
    return bytes(log).rstrip(b"\0").decode("utf-8", "replace").strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
