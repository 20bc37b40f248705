"""The table of all options: spellings, argument, values, and position in the tool note.

An option of nvlink has a long name after two dashes and a short one, often of several letters,
after one dash. Rows are in the order in which nvlink writes options into `.note.nv.tkinfo`.
"""

from __future__ import annotations

from pylink.facts.releases import FOLLOWED_NAMES
from pylink.facts.target import NAMES

# Values of the column `takes`: the argument that an option takes.
FLAG = "flag"  # none
TEXT = "text"  # one argument, taken as it is
NUMBER = "number"  # a 32-bit integer in C notation
SIZE = "size"  # a number of bytes in C notation, without a limit
TRUTH = "truth"  # true or false
LIST = "list"  # items between commas; a repeated option adds more

# Values of the column `writes`, for options that name a file that the link writes.
FILE = "file"
FILE_OR_STDOUT = "file, or - for standard output"

# Values of the column `recorded`: when the tool note of the output names the option.
ALWAYS = "always"
DEBUG = "debug"  # only with -g
NEVER = "never"

# The value of an option in `Options`; None for one with an argument that is not given.
Value = bool | int | str | tuple[str, ...] | None

# Allowed values of options; HOST_SCRIPTS are those of -gen-host-linker-script.
ARCHES = tuple(f"{prefix}_{name}" for prefix in ("compute", "lto", "sm") for name in NAMES)
CPU_ARCHES = ("AARCH64", "ARMv7", "PPC64LE", "X86", "X86_64", "unknown")
FORMATS = ("nvlink", "text", "sarif")
SEVERITIES = ("remark", "warning", "error")
HOST_SCRIPTS = ("lcs-abs", "lcs-aug")


class Option:
    """One option: `--long`, `-short`, and its properties for the parser and the tool note.

    `takes` and `recorded` are constants of this module: the sort of argument, and when the tool
    note names the option. `choices` are the allowed values; `implied` is the value without an
    argument; `joined` allows `-lfoo`; `built` is False for an option of nvlink that this version
    refuses; `since` is the first release of nvlink that has it, empty if each release or only
    pylink has it; `in_call` is False for an option that calls from Python do not have; `writes`, if
    not empty, says that the argument is a file to write, which must not be an input (see
    `pylink.options.plan`). `attribute` is the name in `Options` and in the Python interface.
    """

    __slots__ = (
        "attribute", "built", "choices", "implied", "in_call", "joined", "long", "recorded",
        "short", "since", "takes", "writes",
    )  # fmt: skip

    def __init__(
        self,
        long: str,
        short: str,
        takes: str = FLAG,
        *,
        choices: tuple[str | int, ...] = (),
        implied: str | None = None,
        joined: bool = False,
        recorded: str = ALWAYS,
        built: bool = True,
        in_call: bool = True,
        writes: str = "",
        since: str = "",
    ) -> None:
        self.long = long
        self.short = short
        self.takes = takes
        self.choices = choices
        self.implied = implied
        self.joined = joined
        self.recorded = recorded
        self.built = built
        self.in_call = in_call
        self.writes = writes
        self.since = since
        self.attribute = long.replace("-", "_")

    @property
    def default(self) -> Value:
        """The value of an option that is not given."""
        if self.takes == FLAG:
            return False
        return () if self.takes == LIST else None


OPTIONS = (
    Option("Ofast-compile", "Ofc", TEXT),
    Option("suppress-stack-size-warning", "suppress-stack-size-warning"),
    Option("suppress-arch-warning", "suppress-arch-warning"),
    Option("output-file", "o", TEXT, recorded=DEBUG, writes=FILE, in_call=False),
    Option("debug", "g"),
    Option("arch", "arch", TEXT, choices=ARCHES, in_call=False),
    Option("machine", "m", NUMBER, choices=(64,), joined=True),
    Option("library", "l", LIST, joined=True),
    Option("library-path", "L", LIST, joined=True),
    # nvlink has no short name for this option; the tool note of its output shows a bare dash.
    Option("register-link-binaries", "", TEXT, recorded=DEBUG, writes=FILE),
    Option("verbose", "v"),
    Option("verbose2", "v2", since="13.2"),
    Option("preserve-relocs", "preserve-relocs"),
    Option("disable-warnings", "w"),
    Option("warning-as-error", "Werror"),
    Option("disable-infos", "disable-infos"),
    Option("keep-system-libraries", "keep-system-libraries"),
    Option("kernels-used", "kernels-used", LIST),
    Option("variables-used", "variables-used", LIST),
    Option("cpu-arch", "cpu-arch", TEXT, choices=CPU_ARCHES),
    Option("report-arch", "report-arch"),
    Option("time", "time", TEXT, recorded=DEBUG, writes=FILE_OR_STDOUT),
    Option("extra-warnings", "extrawarn"),
    Option(
        "gen-host-linker-script",
        "ghls",
        TEXT,
        choices=HOST_SCRIPTS,
        implied="lcs-abs",
        in_call=False,
    ),
    Option("link-time-opt", "lto"),
    Option("dlto", "dlto"),
    Option("nvvm-latest", "nvvm-latest", since="13.5"),
    Option("force-partial-lto", "force-partial-lto", recorded=NEVER),
    Option("force-whole-lto", "force-whole-lto", recorded=NEVER),
    Option("emit-ptx", "emit-ptx"),
    Option("uidx-file", "uidx", TEXT, built=False),
    Option("uumn", "uumn", recorded=NEVER),
    Option("disable-smem-reservation", "disable-smem-reservation", TRUTH, recorded=NEVER),
    Option("nvvmpath", "nvvmpath", TEXT),
    Option("split-compile", "split-compile", NUMBER),
    Option("split-compile-extended", "split-compile-extended", NUMBER),
    Option("suppress-debug-info", "suppress-debug-info"),
    Option("link-as-tools-patch", "astoolspatch", since="13.3"),
    Option("Xptxas", "Xptxas", LIST),
    Option("Xnvvm", "Xnvvm", LIST),
    Option("maxrregcount", "maxrregcount", NUMBER),
    Option("dump-callgraph", "dump-callgraph"),
    Option("dump-callgraph-no-demangle", "dump-callgraph-no-demangle"),
    Option("use-host-info", "use-host-info"),
    Option("ignore-host-info", "ignore-host-info"),
    Option("relocatable-link", "r"),
    Option("device-stack-protector", "device-stack-protector", TRUTH),
    # The tool note names this option without the files, whose options it lists themselves.
    Option("options-file", "optf", LIST, recorded=DEBUG, in_call=False),
    # nvlink has this option but does not let users set it.
    Option("edbg", "edbg", NUMBER, recorded=NEVER),
    Option("help", "h", recorded=NEVER, in_call=False),
    Option("version", "V", recorded=NEVER, in_call=False),
    # The options from here on are pylink's own, except for `host-ccbin` and `shared`.
    Option("explain", "", TEXT, recorded=NEVER, in_call=False),
    Option("diag-suppress", "", LIST, recorded=NEVER),
    Option("diag-remark", "", LIST, recorded=NEVER),
    Option("diag-warning", "", LIST, recorded=NEVER),
    Option("diag-error", "", LIST, recorded=NEVER),
    Option("diag-once", "", LIST, recorded=NEVER),
    Option("diag-min-severity", "", TEXT, choices=SEVERITIES, recorded=NEVER),
    Option("diag-summary", "", TRUTH, recorded=NEVER),
    Option("error-limit", "", NUMBER, recorded=NEVER),
    Option("display-error-number", "", recorded=NEVER),
    Option("diagnostics_format", "", TEXT, choices=FORMATS, recorded=NEVER),
    Option("output_mode", "", TEXT, choices=FORMATS, recorded=NEVER),
    Option("color", "", TEXT, choices=("auto", "always", "never"), recorded=NEVER),
    Option("wrap_diagnostics", "", recorded=NEVER),
    Option("no_wrap_diagnostics", "", recorded=NEVER),
    Option("brief-diagnostics", "", TRUTH, recorded=NEVER),
    Option("no-source-context", "", recorded=NEVER),
    Option("source-root", "", LIST, recorded=NEVER),
    Option("terminal-width", "", NUMBER, recorded=NEVER),
    Option("tab-width", "", NUMBER, recorded=NEVER),
    Option("sarif-output", "", TEXT, recorded=NEVER, writes=FILE),
    Option("diag-log", "", TEXT, recorded=NEVER, writes=FILE),
    Option("profile", "", TEXT, recorded=NEVER, writes=FILE),
    Option("profile-aprof", "", TEXT, recorded=NEVER, writes=FILE),
    Option("time-trace", "", TEXT, recorded=NEVER, writes=FILE),
    Option("section-folder", "", LIST, recorded=NEVER),
    Option("section-folder-recursive", "", LIST, recorded=NEVER),
    Option("section", "", LIST, recorded=NEVER),
    Option("set", "", LIST, recorded=NEVER),
    Option("rule", "", LIST, recorded=NEVER),
    Option("metrics", "", LIST, recorded=NEVER),
    Option("apply-rules", "", TEXT, choices=("yes", "no"), recorded=NEVER),
    Option("list-sections", "", recorded=NEVER, in_call=False),
    Option("list-sets", "", recorded=NEVER, in_call=False),
    Option("list-rules", "", recorded=NEVER, in_call=False),
    Option("nvlink-version", "", TEXT, choices=FOLLOWED_NAMES, recorded=NEVER),
    Option("ptxas-path", "", TEXT, recorded=NEVER),
    Option("tool-timeout", "", NUMBER, recorded=NEVER),
    Option("threads", "", NUMBER, recorded=NEVER),
    Option("max-uncompressed-size", "", SIZE, recorded=NEVER),
    # nvcc passes the next two, for the host link. They do not affect device code, except for
    # `shared` if a shared library of the host is an input.
    Option("host-ccbin", "host-ccbin", TEXT, recorded=NEVER),
    Option("shared", "shared", recorded=NEVER),
    Option("merc-dedup", "", TEXT, choices=("on", "off"), recorded=NEVER),
    Option("lazy-archives", "", recorded=NEVER),
    # The next two apply to inputs that follow, so the parser stores them by input.
    Option("whole-archive", "", recorded=NEVER),
    Option("no-whole-archive", "", recorded=NEVER, in_call=False),
    Option("allow-empty", "", recorded=NEVER),
    Option("allow-missing-libraries", "", recorded=NEVER),
    Option("Map", "", TEXT, recorded=NEVER, writes=FILE_OR_STDOUT),
    Option("depfile", "", TEXT, recorded=NEVER, writes=FILE),
    Option("depfile-target", "", TEXT, recorded=NEVER),
    Option("notes", "", TEXT, choices=("yes", "no"), recorded=NEVER, in_call=False),
    Option("reproduce", "", TEXT, recorded=NEVER, writes=FILE),
    Option("write-if-changed", "", recorded=NEVER),
    Option("pass-remarks", "", TEXT, recorded=NEVER),
    Option("pass-remarks-missed", "", TEXT, recorded=NEVER),
    Option("pass-remarks-analysis", "", TEXT, recorded=NEVER),
    Option("pass-remarks-output", "", TEXT, recorded=NEVER, writes=FILE_OR_STDOUT),
    # This option has no `choices`: an unknown format has an error of its own.
    Option("pass-remarks-format", "", TEXT, recorded=NEVER),
    Option("pass-remarks-bitstream-version", "", NUMBER, choices=(0, 1), recorded=NEVER),
    Option("pass-remarks-filter", "", TEXT, recorded=NEVER),
    Option("pass-remarks-with-hotness", "", recorded=NEVER),
    Option("pass-remarks-hotness-threshold", "", NUMBER, recorded=NEVER),
    Option("pass-remarks-why-live", "", TEXT, recorded=NEVER),
    # Options for the optimizer, as compiler drivers have them; pylink takes those for remarks and
    # traces.
    Option("Xopt", "Xopt", LIST, recorded=NEVER),
)

BY_ATTRIBUTE = {option.attribute: option for option in OPTIONS}

# The option by each of its spellings, with dashes.
SPELLINGS = {f"--{option.long}": option for option in OPTIONS}
SPELLINGS.update({f"-{option.short}": option for option in OPTIONS if option.short})
# Long names with one dash: nvlink accepts them only if the short name is the same. The following
# three are accepted as well (docs/nvlink-differences.md).
SPELLINGS.update({f"-{name}": BY_ATTRIBUTE[name] for name in ("help", "version")})
SPELLINGS["-register-link-binaries"] = BY_ATTRIBUTE["register_link_binaries"]
# Some of pylink's own names come from the EDG front end (two dashes, underscores), and some from
# nvcc and LLVM (one dash, dashes), so all spellings are accepted. An exact name wins over a short
# one with a joined argument.
for option in OPTIONS:
    if not option.short and option.recorded == NEVER:
        for name in (option.long.replace("-", "_"), option.long.replace("_", "-")):
            SPELLINGS[f"--{name}"] = option
            SPELLINGS[f"-{name}"] = option
# By short name: options whose argument may follow without a blank, such as -lfoo.
JOINABLE = {option.short: option for option in OPTIONS if option.joined}
