"""`pylink dlink`: the device-link step with the command line of nvcc.

If an argument needs nvcc, nvcc is started with the same arguments and, except after --as-nvcc, with
-dlink.
"""

from __future__ import annotations

import os
import sys

from pylink.devicelink.commandline import APPEND, PREPEND, read_request
from pylink.devicelink.request import LeftToNvcc
from pylink.devicelink.toolkit import AS_NVCC, CUDA_OPTION, find_toolkit
from pylink.diagnostics import NvlinkRenderer, Sink
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.nvlink import NVLINK
from pylink.diagnostics.stream import write
from pylink.files.overlayfiles import wants_notes
from pylink.options.file import split_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.devicelink.request import Request

DEVICE_LINK = ("-dlink", "--device-link")
# A link that returns from native code waits for this many seconds before it asks another link for
# the interpreter. Python's default is longer than most calls of native code take.
SWITCH_INTERVAL_S = 0.0002


def main(argv: Sequence[str], *, owns_process: bool = False) -> int:
    """Run the command; return nvcc's exit status: 1 after a fatal error, 255 after others, else 0.

    With `owns_process` the process ends after the step, so memory need not be returned.
    """
    root, as_nvcc, remaining = _split_own_options(argv)
    if as_nvcc:  # messages look like those of the nvlink that nvcc would start
        renderer = NvlinkRenderer(tool="nvlink", notes=lambda: _overlay_notes(root))
    else:
        renderer = NvlinkRenderer()
    sink = Sink(renderer)
    sink.policy.in_nvlinks_place = as_nvcc
    try:
        if root == "":
            sink.fatal("argument-expected", option=CUDA_OPTION)
        return _main(remaining, sink, root, as_nvcc=as_nvcc, owns_process=owns_process)
    except LinkError:
        return sink.exit_code()
    finally:
        sink.close()


def _split_own_options(argv: Sequence[str]) -> tuple[str | None, bool, list[str]]:
    """Return the path of --cuda, whether --as-nvcc follows, and the other arguments.

    The path is None without --cuda, and empty if its argument is missing.
    """
    remaining = list(argv)
    root = None
    if (
        remaining
        and remaining[0].startswith(CUDA_OPTION)
        and remaining[0][len(CUDA_OPTION) : len(CUDA_OPTION) + 1] in ("", "=")
    ):
        _, equals_sign, root = remaining.pop(0).partition("=")
        if not equals_sign and remaining:
            root = remaining.pop(0)
    as_nvcc = remaining[:1] == [AS_NVCC]
    return root, as_nvcc, remaining[as_nvcc:]


def _overlay_notes(root: str | None) -> bool | None:
    """Return True if the toolkit in `root` is an overlay with notes; None otherwise."""
    return wants_notes(os.path.join(root, "bin") if root else None)


def _main(
    argv: list[str], sink: Sink, root: str | None, *, as_nvcc: bool, owns_process: bool
) -> int:
    if argv[:1] in (["--help"], ["-h"]) and not as_nvcc:
        from pylink.devicelink.helptexts import parser

        parser().print_help()
        return 0
    toolkit = find_toolkit(root)
    try:
        request = read_request(argv, os.environ, as_nvcc=as_nvcc)
    except LeftToNvcc as reason:
        if not as_nvcc and not any(word in DEVICE_LINK for word in _with_environment(argv)):
            argv.insert(0, DEVICE_LINK[0])
        shows_command = bool({"-v", "--verbose"} & {*_with_environment(argv)})
        notes = bool(_overlay_notes(root)) or not as_nvcc
        from pylink.devicelink.handover import start_nvcc

        return start_nvcc(argv, reason, toolkit, sink, shows_command=shows_command, notes=notes)
    if "notes" in request.values:  # an option of the links decides, not the overlay
        tool = NVLINK if as_nvcc else "pylink"
        sink.renderers = [NvlinkRenderer(tool=tool, notes=request.values["notes"] == "yes")]
    if request.verbose:
        write(None, _command_lines(request))
    from pylink._native.inputfiles import keep_blocks  # not loaded if nvcc does the step

    keep_blocks(owns_process=owns_process)
    if owns_process:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
    if request.links_program:
        from pylink.devicelink.program import link_program

        return link_program(request, argv, toolkit, sink)
    from pylink.devicelink.step import run_step

    run_step(request, toolkit, sink)
    return sink.exit_code()


def _with_environment(argv: Sequence[str]) -> list[str]:
    """Return the arguments, with those of nvcc's environment variables if these can be split."""
    try:
        before, after = (
            split_arguments(os.environ.get(variable, ""), Sink()) for variable in (PREPEND, APPEND)
        )
    except LinkError:
        return list(argv)
    return [*before, *argv, *after]


def _command_lines(request: Request) -> str:
    """Return the lines of -v, in nvcc's form: one for each link, then one for the output."""
    inputs = " ".join(request.inputs)
    lines = [f"#$ pylink -arch={arch} {inputs}\n" for arch in request.archs]
    return "".join(lines) + f"#$ pylink dlink ({request.form}) -o {request.output}\n"
