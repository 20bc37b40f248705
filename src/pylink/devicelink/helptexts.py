"""The options of `pylink dlink` for help, completions and manual pages.

A link does not load this module: `commandline.py` reads the arguments.
"""

from __future__ import annotations

import argparse

from pylink.devicelink.nvccoptions import IGNORED, LEFT, OPTIONS
from pylink.devicelink.toolkit import AS_NVCC, CUDA_OPTION
from pylink.options.table import FLAG

# The help text of each option of nvcc that has an effect on a device-link step.
HELP = {
    "fatbin": "Write the fat binary instead of an object of the host.",
    "cubin": "Write the linked cubin of the first architecture.",
    "relocatable-link": "Link to a relocatable object that a later step links.",
    "output-file": "Output file (default: a_dlink.o).",
    "output-directory": "Output directory, without -o.",
    "gpu-architecture": "Architecture to link for, such as sm_90a, all or all-major "
    "(default: sm_75).",
    "gpu-code": "Architectures to link for, if -arch names a virtual one.",
    "generate-code": "Architectures to link for, as arch=compute_80,code=[sm_80,sm_86].",
    "library": "Link a library from the directories of -L or from the toolkit.",
    "library-path": "Search a directory for libraries.",
    "cudadevrt": "Whether to link libcudadevrt (default: static).",
    "compiler-bindir": "Host compiler; without host objects it determines the machine.",
    "compiler-options": "Options of the host compiler; only -fvisibility=hidden has an effect.",
    "nvlink-options": "Options of nvlink for the links.",
    "ptxas-options": "Options of ptxas for link-time optimization.",
    "device-debug": "Keep debug information, and mark the code as compiled with -G.",
    "generate-line-info": "Name the entries of the fat binary after the inputs.",
    "dlink-time-opt": "Compile LTO-IR of the inputs at link time.",
    "split-compile": "Threads of link-time optimization.",
    "shared": "Accepted; the object always fits into a shared library.",
    "Werror": "Treat warnings as errors (value: all-warnings).",
    "disable-warnings": "Do not show warnings.",
    "resource-usage": "Print the resources of the kernels.",
    "compress-mode": "Compression: default, size, speed, balance or none.",
    "no-compress": "Do not compress.",
    "threads": "Number of links that run at once (default: one for each core).",
    "verbose": "Print the steps, and the command if nvcc is started.",
    "time": "Append the time of each part of the step to a CSV file.",
    "forward-unknown-to-host-compiler": "Treat unknown options as options of the host compiler.",
    "options-file": "Read options from files.",
    "device-link": "Accepted; this command always does the device-link step.",
}


def parser() -> argparse.ArgumentParser:
    """Return a parser, for help only, of all options that have an effect on a device-link step."""
    help_parser = argparse.ArgumentParser(
        prog="pylink dlink",
        add_help=False,
        description="Link device code for all architectures and write the host object that "
        "registers it, like nvcc -dlink. Other options of nvcc are accepted if they have no effect "
        "on this step. For all others, pylink starts the nvcc of the toolkit.",
    )
    help_parser.add_argument("objects", metavar="FILE", nargs="+", help="objects and libraries")
    help_parser.add_argument(
        CUDA_OPTION,
        metavar="PATH",
        help="CUDA toolkit, which contains bin/nvcc; must be the first option",
    )
    help_parser.add_argument(
        AS_NVCC,
        action="store_true",
        help="Accept any command line of nvcc. Without -dlink, link objects to a program: the "
        "step, then a link by nvcc. Leave all others to nvcc. Must be the first option, or after "
        "--cuda.",
    )
    help_parser.add_argument("-h", "--help", action="store_true", help="Print this help.")
    for row in OPTIONS:
        if row.use in (IGNORED, LEFT):
            continue
        spellings = (f"-{row.short}", f"--{row.long}")
        if row.takes == FLAG:
            help_parser.add_argument(*spellings, action="store_true", help=HELP[row.long])
        else:
            help_parser.add_argument(*spellings, metavar="<value>", help=HELP[row.long])
    return help_parser
