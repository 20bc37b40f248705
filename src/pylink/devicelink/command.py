"""`pylink dlink`: the device-link step with the words of nvcc.

Words that only nvcc can obey make it a step for nvcc: it is started with the same words.
"""

from __future__ import annotations

import argparse
import os

from pylink.devicelink.commandline import APPEND, PREPEND, read_request
from pylink.devicelink.nvccoptions import IGNORED, LEFT, ROWS
from pylink.devicelink.request import NotOurs
from pylink.devicelink.toolkit import AS_NVCC, find_toolkit, hand_on, wants_notes
from pylink.diagnostics import NvlinkRenderer, Sink
from pylink.diagnostics.errors import LinkError
from pylink.diagnostics.nvlink import NVLINK
from pylink.diagnostics.stream import write
from pylink.options.file import split_words
from pylink.options.table import FLAG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.devicelink.request import Request

CUDA = "--cuda"
STEP = ("-dlink", "--device-link")

# What each option does in a step; the rest of `nvccoptions.ROWS` changes nothing.
HELP = {
    "fatbin": "Write the fat binary instead of an object of the host.",
    "cubin": "Write the linked cubin of the first architecture.",
    "relocatable-link": "Link to a unit, which a later step takes as an input.",
    "output-file": "Output file (default: a_dlink.o).",
    "output-directory": "Directory of an output that -o does not name.",
    "gpu-architecture": "Architecture to link for, such as sm_90a, all or all-major "
    "(default: sm_75).",
    "gpu-code": "Architectures to link for, where -arch names a virtual one.",
    "generate-code": "Architectures to link for, as arch=compute_80,code=[sm_80,sm_86].",
    "library": "Link a library of -L, or of the toolkit.",
    "library-path": "Search a directory for libraries.",
    "cudadevrt": "Whether to link libcudadevrt (default: static).",
    "compiler-bindir": "Compiler of the host, which is asked for its machine if no object says.",
    "compiler-options": "Options of the compiler of the host; -fvisibility=hidden counts.",
    "nvlink-options": "Options of the links.",
    "ptxas-options": "Options of ptxas for link-time optimization.",
    "device-debug": "Keep debug information, and mark the code as compiled with -G.",
    "generate-line-info": "Name the entries of the fat binary after the inputs.",
    "dlink-time-opt": "Compile LTO-IR of the inputs at link time.",
    "split-compile": "Threads of link-time optimization.",
    "shared": "Accepted; the object always fits into a shared library.",
    "Werror": "Make errors of warnings; the kind is all-warnings.",
    "disable-warnings": "Show no warnings.",
    "resource-usage": "Print the resources of the kernels.",
    "compress-mode": "Compression: default, size, speed, balance or none.",
    "no-compress": "Compress nothing.",
    "threads": "Links that run at once (default: one for each core).",
    "verbose": "Print what is done, and the command when nvcc is started.",
    "time": "Append the time of each part of the step to a CSV file.",
    "forward-unknown-to-host-compiler": "Take unknown options for those of the compiler of the "
    "host.",
    "options-file": "Read options from files.",
    "device-link": "Accepted; this is the step.",
}


def main(words: Sequence[str]) -> int:
    """Run the command; the status is that of nvcc: 1 after a fatal error, 255 after others."""
    root, as_nvcc, rest = take_own_options(words)
    if as_nvcc:  # messages are those of the linker that nvcc would start, as the overlay has them
        renderer = NvlinkRenderer(tool="nvlink", notes=lambda: wants_notes(root))
    else:
        renderer = NvlinkRenderer()
    sink = Sink(renderer)
    sink.policy.in_nvlinks_place = as_nvcc
    try:
        if root == "":
            sink.fatal("argument-expected", option=CUDA)
        return _main(rest, sink, root, as_nvcc=as_nvcc)
    except LinkError:
        return sink.exit_code()
    finally:
        sink.close()


def take_own_options(words: Sequence[str]) -> tuple[str | None, bool, list[str]]:
    """The toolkit of --cuda, empty without its argument, whether --as-nvcc stands, and the rest."""
    rest = list(words)
    root = None
    if rest and rest[0].startswith(CUDA) and rest[0][len(CUDA) : len(CUDA) + 1] in ("", "="):
        root = rest.pop(0)[len(CUDA) + 1 :]
        if not root and rest:
            root = rest.pop(0)
    as_nvcc = rest[:1] == [AS_NVCC]
    return root, as_nvcc, rest[as_nvcc:]


def _main(words: list[str], sink: Sink, root: str | None, *, as_nvcc: bool) -> int:
    if words[:1] in (["--help"], ["-h"]) and not as_nvcc:
        parser().print_help()
        return 0
    toolkit = find_toolkit(root)
    try:
        request = read_request(words, os.environ, as_nvcc=as_nvcc)
    except NotOurs as reason:
        if not as_nvcc and not any(word in STEP for word in _with_environment(words)):
            words.insert(0, STEP[0])
        shown = bool({"-v", "--verbose"} & {*words})
        notes = bool(wants_notes(root)) or not as_nvcc
        return hand_on(words, reason, toolkit, sink, shown=shown, notes=notes)
    if "notes" in request.values:
        tool = NVLINK if as_nvcc else "pylink"
        sink.renderers = [NvlinkRenderer(tool=tool, notes=request.values["notes"] == "yes")]
    if request.verbose:
        write(None, _described(request))
    if request.links_program:
        from pylink.devicelink.program import link_program

        return link_program(request, words, toolkit, sink)
    from pylink.devicelink.step import run_step

    run_step(request, toolkit, sink)
    return sink.exit_code()


def _with_environment(words: Sequence[str]) -> list[str]:
    """The words, and those of the variables that nvcc reads by itself."""
    try:
        before, after = (
            split_words(os.environ.get(variable, ""), Sink()) for variable in (PREPEND, APPEND)
        )
    except LinkError:
        return list(words)
    return [*before, *words, *after]


def _described(request: Request) -> str:
    """A line for each link, and one for the output, in the form of nvcc -v."""
    inputs = " ".join(request.inputs)
    lines = [f"#$ pylink -arch={arch} {inputs}\n" for arch in request.archs]
    return "".join(lines) + f"#$ pylink dlink ({request.form}) -o {request.output}\n"


def parser() -> argparse.ArgumentParser:
    """The options for help, completions and manual pages; the words are read by `commandline`."""
    options = argparse.ArgumentParser(
        prog="pylink dlink",
        add_help=False,
        description="Link device code for all architectures and make the object of the host that "
        "registers it, as nvcc -dlink does. Other options of nvcc are accepted where they change "
        "nothing in this step; all others are left to the nvcc of a toolkit.",
    )
    options.add_argument("objects", metavar="FILE", nargs="+", help="objects and libraries")
    options.add_argument(
        CUDA, metavar="PATH", help="the CUDA toolkit, where bin/nvcc is; the first option"
    )
    options.add_argument(
        AS_NVCC,
        action="store_true",
        help="Take all command lines of nvcc: without -dlink, objects become a program by the step "
        "and a link of nvcc; all else is left to nvcc. The first option, or the one after --cuda.",
    )
    options.add_argument("-h", "--help", action="store_true", help="Print this help.")
    for row in ROWS:
        if row.use in (IGNORED, LEFT):
            continue
        spellings = (f"-{row.short}", f"--{row.long}")
        if row.takes == FLAG:
            options.add_argument(*spellings, action="store_true", help=HELP[row.long])
        else:
            options.add_argument(*spellings, metavar="<value>", help=HELP[row.long])
    return options
