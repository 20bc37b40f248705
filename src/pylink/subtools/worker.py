"""The process that runs nvJitLink: reads LTO-IR, writes PTX. Started as a file, without pylink.

It is a separate process because the compiler may abort on damaged LTO-IR, and so that it can be
stopped if it takes too long.

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

# Python itself exits with 1 after an unexpected exception.
MISSING = 3
FAILED = 4

# Prefixes of the release and of the time on standard error.
NAME = "nvJitLink"
COMPILED = "compiled for"

# The lowest architecture, so that it fits all LTO-IR: this module has no code.
KEEP_ARCH = "compute_75"


# Linux: <sys/personality.h>.
ADDR_NO_RANDOMIZE = 0x0040000
CURRENT = 0xFFFFFFFF


def main(argv: list[str]) -> int:
    fix_addresses()
    source, _, result = argv
    with open(source, "rb") as stream:
        task = json.loads(stream.readline())
        modules = [(name, kind, stream.read(size)) for name, kind, size in task["modules"]]
    sys.path[:] = task["path"]
    try:
        preload(task["preload"])
        from cuda.bindings import nvjitlink  # found by the path of the task

        if task["keep"]:
            modules.append(("keep", "LTOIR", keep_module(task["keep"])))
        begun = time.perf_counter()
        text = compile_modules(nvjitlink, task["options"], modules)
        elapsed = 1000 * (time.perf_counter() - begun)
    except (ImportError, RuntimeError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return MISSING
    except CompileError as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    with open(result, "wb") as stream:
        stream.write(text)
    release = "{}.{}".format(*nvjitlink.version())
    sys.stderr.write(f"{NAME} {release}\n{COMPILED} {elapsed:.4f} ms\n")
    return 0


def fix_addresses() -> None:
    """Restart this process without address randomization.

    The compiler iterates over some tables in address order: without optimization, and with
    -Ofc=max, the variables of its PTX would come in another order each time.
    """
    libc = ctypes.CDLL(None)
    flags = libc.personality(CURRENT)
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
    """PTX of the modules, without the zero byte at its end."""
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
        raise CompileError(_text(log) or str(error)) from error
    return bytes(text).rstrip(b"\0")


def keep_module(source: str) -> bytes:
    """Compile NVVM IR to LTO-IR."""
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
        raise CompileError(_text(log) or str(error)) from error
    return bytes(module)


def _text(log: bytearray) -> str:
    return bytes(log).rstrip(b"\0").decode("utf-8", "replace").strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
