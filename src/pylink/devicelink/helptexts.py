"""The options of `pylink dlink` for help, completions and manual pages.

Links do without: `commandline.py` reads the words.
"""

from __future__ import annotations

import argparse

from pylink.devicelink.nvccoptions import IGNORED, LEFT, ROWS
from pylink.devicelink.toolkit import AS_NVCC, CUDA
from pylink.options.table import FLAG

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


def parser() -> argparse.ArgumentParser:
    """All options that a step obeys."""
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
