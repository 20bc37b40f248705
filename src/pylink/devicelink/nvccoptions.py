"""The options of nvcc that a device-link step understands, one row each.

A command line with a value that is not listed is left to nvcc. So is one with any other option, but
--forward-unknown-to-host-compiler makes other options those of the host compiler.
"""

from __future__ import annotations

import os

from pylink.options.table import FLAG, LIST, NUMBER, TEXT

# Uses of an option.
IGNORED = "ignored"  # it has no effect on the step
KEPT = "kept"  # the step obeys it
LEFT = "left to nvcc"
# Options with which nvcc writes something other than a linked program, by their long names.
OTHER_OUTPUTS = ("fatbin", "cubin", "relocatable-link", "lib")


class NvccOption:
    """An option: `--long` and `-short`, the type of its argument (`takes`), and its use.

    `joined` allows an argument without a space, as in `-Lpath`. `values` are the arguments that a
    device-link step supports (empty: all); others are left to nvcc. `attribute` is the key of the
    option's arguments in `ParsedArguments`.
    """

    __slots__ = ("attribute", "joined", "long", "short", "takes", "use", "values")

    def __init__(
        self,
        long: str,
        short: str,
        takes: str = FLAG,
        use: str = KEPT,
        *,
        joined: bool = False,
        values: tuple[str, ...] = (),
    ) -> None:
        self.long = long
        self.short = short
        self.takes = takes
        self.use = use
        self.joined = joined
        self.values = values
        self.attribute = long.replace("-", "_")


# Arguments of -std, of options that are true or false, and of -default-stream.
STANDARDS = ("c++03", "c++11", "c++14", "c++17", "c++20")
TRUTHS = ("true", "false")
STREAMS = ("legacy", "null", "per-thread")

# Extensions of inputs that are linked; files with others are left to nvcc (but see `is_library`).
LINKED_EXTENSIONS = (".o", ".obj", ".a", ".so")


def is_library(name: str) -> bool:
    """Return whether a name ends in `.so` or in `.so` and a version (`.so.1.2`).

    nvcc refuses names with a version.
    """
    _, dot, version = os.path.basename(name).rpartition(".so")
    return bool(dot) and (
        not version or (version.startswith(".") and version[1:].replace(".", "").isdigit())
    )


OPTIONS = (
    NvccOption("device-link", "dlink"),
    NvccOption("fatbin", "fatbin"),
    NvccOption("cubin", "cubin"),
    NvccOption("relocatable-link", "r"),
    NvccOption("output-file", "o", TEXT),
    NvccOption("output-directory", "odir", TEXT),
    NvccOption("gpu-architecture", "arch", TEXT),
    NvccOption("gpu-code", "code", LIST),
    NvccOption("generate-code", "gencode", LIST),
    NvccOption("library", "l", LIST, joined=True),
    NvccOption("library-path", "L", LIST, joined=True),
    NvccOption("cudadevrt", "cudadevrt", TEXT, values=("none", "static")),
    NvccOption("compiler-bindir", "ccbin", TEXT),
    NvccOption("compiler-options", "Xcompiler", LIST),
    NvccOption("nvlink-options", "Xnvlink", LIST),
    NvccOption("ptxas-options", "Xptxas", LIST),
    NvccOption("device-debug", "G"),
    NvccOption("generate-line-info", "lineinfo"),
    NvccOption("dlink-time-opt", "dlto"),
    NvccOption("split-compile", "split-compile", NUMBER),
    NvccOption("shared", "shared"),
    NvccOption("Werror", "Werror", LIST),
    NvccOption("disable-warnings", "w"),
    NvccOption("resource-usage", "res-usage"),
    NvccOption("compress-mode", "compress-mode", TEXT),
    NvccOption("no-compress", "no-compress"),
    NvccOption("threads", "t", NUMBER),
    NvccOption("verbose", "v"),
    NvccOption("time", "time", TEXT),
    NvccOption("forward-unknown-to-host-compiler", "forward-unknown-to-host-compiler"),
    NvccOption("options-file", "optf", LIST),
    # Options of the compilers for device and host code, the host linker and the archiver. They have
    # no effect on linked code. -O only decides the order of the module ids.
    NvccOption("define-macro", "D", LIST, IGNORED, joined=True),
    NvccOption("undefine-macro", "U", LIST, IGNORED, joined=True),
    NvccOption("include-path", "I", LIST, IGNORED, joined=True),
    NvccOption("system-include", "isystem", LIST, IGNORED),
    NvccOption("optimize", "O", NUMBER, IGNORED, joined=True),
    NvccOption("std", "std", TEXT, IGNORED, values=STANDARDS),
    NvccOption("debug", "g", FLAG, IGNORED),
    NvccOption("machine", "m", TEXT, IGNORED, values=("64",)),
    NvccOption("m64", "m64", FLAG, IGNORED),
    NvccOption("linker-options", "Xlinker", LIST, IGNORED),
    NvccOption("archive-options", "Xarchive", LIST, IGNORED),
    NvccOption("cudart", "cudart", TEXT, IGNORED, values=("shared", "static")),
    NvccOption("relocatable-device-code", "rdc", TEXT, IGNORED, values=TRUTHS),
    NvccOption("maxrregcount", "maxrregcount", NUMBER, IGNORED),
    NvccOption("use_fast_math", "use_fast_math", FLAG, IGNORED),
    NvccOption("ftz", "ftz", TEXT, IGNORED, values=TRUTHS),
    NvccOption("prec-div", "prec-div", TEXT, IGNORED, values=TRUTHS),
    NvccOption("prec-sqrt", "prec-sqrt", TEXT, IGNORED, values=TRUTHS),
    NvccOption("fmad", "fmad", TEXT, IGNORED, values=TRUTHS),
    NvccOption("default-stream", "default-stream", TEXT, IGNORED, values=STREAMS),
    NvccOption("expt-relaxed-constexpr", "expt-relaxed-constexpr", FLAG, IGNORED),
    NvccOption("extended-lambda", "extended-lambda", FLAG, IGNORED),
    NvccOption("expt-extended-lambda", "expt-extended-lambda", FLAG, IGNORED),
    NvccOption("restrict", "restrict", FLAG, IGNORED),
    NvccOption("cudafe-options", "Xcudafe", LIST, IGNORED),
    NvccOption("no-exceptions", "noeh", FLAG, IGNORED),
    NvccOption("extra-device-vectorization", "extra-device-vectorization", FLAG, IGNORED),
    NvccOption(
        "static-global-template-stub",
        "static-global-template-stub",
        TEXT,
        IGNORED,
        values=TRUTHS,
    ),
    NvccOption(
        "device-entity-has-hidden-visibility",
        "device-entity-has-hidden-visibility",
        TEXT,
        IGNORED,
        values=TRUTHS,
    ),
    NvccOption("optimization-info", "opt-info", TEXT, IGNORED, values=("inline",)),
    NvccOption("dopt", "dopt", TEXT, IGNORED, values=("on",)),
    NvccOption("brief-diagnostics", "brief-diag", TEXT, IGNORED, values=TRUTHS),
    NvccOption("source-in-ptx", "src-in-ptx", FLAG, IGNORED),
    NvccOption("allow-unsupported-compiler", "allow-unsupported-compiler", FLAG, IGNORED),
    NvccOption("display-error-number", "err-no", FLAG, IGNORED),
    NvccOption("no-display-error-number", "no-err-no", FLAG, IGNORED),
    NvccOption("diag-error", "diag-error", LIST, IGNORED),
    NvccOption("diag-suppress", "diag-suppress", LIST, IGNORED),
    NvccOption("diag-warn", "diag-warn", LIST, IGNORED),
    NvccOption("Wreorder", "Wreorder", FLAG, IGNORED),
    NvccOption("Wdefault-stream-launch", "Wdefault-stream-launch", FLAG, IGNORED),
    NvccOption("Wmissing-launch-bounds", "Wmissing-launch-bounds", FLAG, IGNORED),
    NvccOption("Wext-lambda-captures-this", "Wext-lambda-captures-this", FLAG, IGNORED),
    NvccOption("Wno-deprecated-declarations", "Wno-deprecated-declarations", FLAG, IGNORED),
    NvccOption("Wno-deprecated-gpu-targets", "Wno-deprecated-gpu-targets", FLAG, IGNORED),
    NvccOption("host-linker-script", "hls", TEXT, IGNORED, values=("use-lcs",)),
    NvccOption("lib", "lib", FLAG, IGNORED),
    # Names that would otherwise be read as -l or -O with an argument.
    NvccOption("link", "link", FLAG, LEFT),
    NvccOption("ltoir", "ltoir", FLAG, LEFT),
    NvccOption("lto", "lto", FLAG, LEFT),
    NvccOption("libdevice-directory", "ldir", FLAG, LEFT),
    NvccOption("Ofast-compile", "Ofc", FLAG, LEFT),
)

SPELLINGS = {f"--{row.long}": row for row in OPTIONS} | {f"-{row.short}": row for row in OPTIONS}
JOINED = {f"-{row.short}": row for row in OPTIONS if row.joined}

# Options of a host compiler, by prefix and as whole words, that change nothing in nvcc's object of
# the step except machine code, which pylink makes itself.
HOST_PREFIXES = ("-f", "-m", "-W", "-O", "-g", "-D", "-I", "-std=", "-pedantic")
HOST_WORDS = ("-w", "-pipe", "-pthread", "-ansi")
# Prefixes of options that HOST_PREFIXES would accept, but that change the object in unknown ways.
HOST_EXCEPT = (
    "-flto",
    "-fno-pi",
    "-fvisibility=",
    "-fprofile",
    "-ftest-coverage",
    "-fsyntax-only",
    "-fsanitize",
    "-finstrument",
    "-fembed",
    "-fplugin",
    "-ffat-lto",
    "-fcs-profile",
    "-mcmodel",
    "-m32",
    "-mx32",
    "-gsplit",
    "-Wa,",
    "-Wp,",
    "-Wl,",
)
HOST_HIDDEN = "-fvisibility=hidden"
HOST_DEFAULT = "-fvisibility=default"
