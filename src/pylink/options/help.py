"""The texts of --help and --version."""

from __future__ import annotations

from pylink import __version__
from pylink.facts.releases import BY_NAME, FOLLOWED_NAMES, OLDEST_DEFAULT
from pylink.options.table import ARCHES, BY_ATTRIBUTE, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.options.table import Option

# Columns of a line of help, and the indent of descriptions.
WIDTH = 80
INDENT = " " * 8

HEADING = """
Options
=======
"""

# By long name: the options that `pylink --help` prints, with descriptions that fit on a line.
# `pylink help link` prints all options.
COMMON = {
    "arch": "Architecture to link for, such as sm_90a (required).",
    "output-file": "Output file (required).",
    "library": "Link libNAME.so or libNAME.a from directories of -L.",
    "library-path": "Directories to search for libraries.",
    "whole-archive": "Link all members of the archives that follow.",
    "kernels-used": "Keep only these kernels.",
    "link-time-opt": "Compile LTO inputs as one program.",
    "relocatable-link": "Make an object that can be linked again.",
    "debug": "Link for debugging.",
    "verbose": "Print the memory and registers that the output uses.",
    "notes": "Explain errors and warnings, or do not.",
    "diagnostics_format": "Format of messages: nvlink, text or sarif.",
    "diag-suppress": "Do not print these diagnostics.",
    "warning-as-error": "Turn warnings into errors.",
    "explain": "Explain a diagnostic and how to fix its cause.",
    "pass-remarks": "Print what was kept, removed and folded: .* for all.",
    "Map": "Write where everything in the output comes from.",
    "depfile": "Write a rule for make and Ninja with all files read.",
    "profile": "Write where the time went, for pylink report.",
    "reproduce": "Write all that the link reads, to repeat the link.",
}

# By long name: the argument, and the description of the option.
# fmt: off
HELP = {
    "allow-empty": ("", "Produce an empty executable when there are no inputs."),
    "allow-missing-libraries": ("", "Ignore libraries that are not found, as nvlink does."),
    "apply-rules": ("", "Whether rules examine the report of --profile (default: yes)."),
    "arch": ("<gpu architecture name>", "Architecture to link for, such as sm_90a (required)."),
    "brief-diagnostics": ("<true or false>",
        "Print diagnostics without source lines and blank lines; text format only."),
    "color": ("<when>", "Color the diagnostics; text format only."),
    "cpu-arch": ("<cpu architecture name>",
        "Host CPU architecture that libraries of -l must match (default: this machine's)."),
    "debug": ("", "Link for debugging: keep all code, and record file names in the output."),
    "depfile": ("<file>",
        "Write a rule for make and Ninja: the output, and every file that the link read."),
    "depfile-target": ("<name>",
        "Target of the rule of --depfile (default: the output file). nvcc links into a temporary "
        "file: name the program."),
    "device-stack-protector": ("<true or false>",
        "Whether ptxas adds stack canaries to functions at risk, in what this link compiles."),
    "diag-error": ("<number or name>,...", "Report these diagnostics as errors."),
    "diag-log": ("<file>", "Write a log of all diagnostics, one line each."),
    "diag-min-severity": ("<remark, warning or error>",
        "Hide diagnostics below this severity. Output of -v and remarks of passes is kept."),
    "diag-once": ("<number or name>,...", "Print each of these diagnostics at most once."),
    "diag-remark": ("<number or name>,...", "Report these diagnostics as remarks."),
    "diag-summary": ("<true or false>",
        "Print the number of errors at the end; text format only (default: true)."),
    "diag-suppress": ("<number or name>,...", "Do not print these diagnostics."),
    "diag-warning": ("<number or name>,...", "Report these diagnostics as warnings."),
    "diagnostics_format": ("<format>",
        "Format of diagnostics: one line as nvlink prints, text with places and source lines, or "
        "SARIF."),
    "disable-infos": ("", "Print no info messages, other than what --verbose asks for."),
    "disable-smem-reservation": ("<true or false>",
        "From sm_90 on: place shared variables as if the system reserved no shared memory."),
    "disable-warnings": ("", "Print no warnings."),
    "display-error-number": ("", "Print the number of each diagnostic; text format only."),
    "dlto": ("", "Like --link-time-opt."),
    "dump-callgraph": ("", "Print the call graph, with registers and entry points."),
    "dump-callgraph-no-demangle": ("", "Like --dump-callgraph, with mangled names."),
    "edbg": ("<bits>",
        "Trace the linker: bit 1 prints what --merc-dedup decides for each input and each "
        "Mercury section that it omits, bit 0x20 the time of each phase."),
    "emit-ptx": ("", "Write the PTX of all LTO inputs, and link nothing; needs --dlto."),
    "error-limit": ("<errors>", "Stop after this many errors (default: 0, no limit)."),
    "explain": ("<number or name>", "Explain what a diagnostic means and how to fix it."),
    "extra-warnings": ("", "Warn about functions whose address is taken but that nothing calls."),
    "force-partial-lto": ("",
        "Compile LTO-IR for a link with cubins, even if every input has some; needs --dlto."),
    "force-whole-lto": ("",
        "Compile LTO-IR as a whole program if every input has some (the default); refused with "
        "-r."),
    "gen-host-linker-script": ("<kind>",
        "Write a host linker script to --output-file or standard output, and link nothing. "
        "lcs-aug extends the host linker's script; lcs-abs (default) replaces it."),
    "help": ("", "Print this text."),
    "host-ccbin": ("<compiler>", "Accepted and ignored; nvcc passes it."),
    "ignore-host-info": ("", "Keep device code that host code might refer to."),
    "keep-system-libraries": ("", "Keep unused code of system libraries such as cudadevrt."),
    "kernels-used": ("<kernel>,...", "Keep only kernels with one of these texts in their names."),
    "lazy-archives": ("", "Link only those members of archives that define what other code needs."),
    "library": ("<library>,...",
        "Libraries to link, from the directories of -L and then of LIBRARY_PATH: the first "
        "libNAME.so, or else the first libNAME.a. :FILE is the file of that name."),
    "library-path": ("<directory>,...", "Directories to search for libraries."),
    "link-as-tools-patch": ("",
        "Link code that tools insert into kernels: keep all of it, and refuse functions that were "
        "not compiled with --compile-as-tools-patch."),
    "link-time-opt": ("",
        "Compile the LTO inputs as one program; on the command line needs --nvvmpath. Cubins and "
        "PTX may be linked in."),
    "list-rules": ("", "List the rules for reports, and files that do not load."),
    "list-sections": ("", "List the sections for reports, and files that do not load."),
    "list-sets": ("", "List the sets of sections."),
    "machine": ("<bits>", "Size of an address."),
    "Map": ("<file>",
        "Write where everything in the output comes from, and why symbols were kept or removed."),
    "max-uncompressed-size": ("<bytes>",
        "Limit of the total size of decompressed device code (default: 100 times the size of all "
        "inputs, at least 268435456)."),
    "maxrregcount": ("<registers>",
        "Register limit per function, for code that this link compiles."),
    "merc-dedup": ("<on or off>",
        "Keep one copy of identical Mercury sections of several objects (default: on). Only "
        "executables for sm_100 and later contain any."),
    "metrics": ("<metric>,...",
        "Put only these metrics into the report of --profile; regex:EXPRESSION selects several."),
    "no-source-context": ("", "Print no source lines; text format only."),
    "no-whole-archive": ("", "End what --whole-archive began."),
    "no_wrap_diagnostics": ("", "Never break the lines of diagnostics."),
    "notes": ("<yes or no>",
        "Print all that is known of an error or warning after nvlink's line, in lines that begin "
        "with 'pylink note'; nvlink format only (default: yes in an overlay, otherwise hints)."),
    "nvlink-version": ("<release>",
        "CUDA release whose nvlink to reproduce (default: that of the newest input, at least "
        "13.0)."),
    "nvvm-latest": ("", "Compile LTO-IR for the newest NVVM; needs --dlto and nvJitLink 13.5."),
    "nvvmpath": ("<directory>",
        "The nvvm directory of the toolkit whose libraries compile LTO inputs (default: the "
        "wheels nvidia-nvjitlink and nvidia-nvvm)."),
    "Ofast-compile": ("<0, min, mid or max>",
        "Compile LTO inputs faster, for slower programs; needs --dlto."),
    "options-file": ("<file>,...", "Read more options and inputs from these files; so does @FILE."),
    "output-file": ("<file>", "Output file (required)."),
    "output_mode": ("<format>", "Like --diagnostics_format."),
    "pass-remarks": ("<regex>", "Show what the passes whose names match did to the program."),
    "pass-remarks-analysis": ("<regex>", "Show what these passes found."),
    "pass-remarks-bitstream-version": ("<version>",
        "Version of the container of --pass-remarks-format=bitstream: 0 for LLVM 19, 1 for LLVM "
        "22 (default: 1)."),
    "pass-remarks-filter": ("<regex>",
        "Write only the remarks of these passes to the file of --pass-remarks-output."),
    "pass-remarks-format": ("<format>", "Format of --pass-remarks-output (default: yaml)."),
    "pass-remarks-hotness-threshold": ("<bytes>",
        "Omit remarks that concern fewer bytes. Implies --pass-remarks-with-hotness."),
    "pass-remarks-missed": ("<regex>", "Show what these passes could not do, and why."),
    "pass-remarks-output": ("<file>",
        "Write all remarks to a file, which LLVM's tools read. - is standard output."),
    "pass-remarks-why-live": ("<regex>",
        "With remarks of pass dce, tell along which calls a kernel reaches these functions."),
    "pass-remarks-with-hotness": ("", "Print with each remark how many bytes it concerns."),
    "preserve-relocs": ("", "Keep a record of the relocations that were resolved."),
    "profile": ("<file>",
        "Write what the link cost, by phase, input, section and relocation type, as a report "
        "that Nsight Compute and `pylink report` open."),
    "profile-aprof": ("<file>",
        "Write how the cost of each routine grows with its input, as a report for aprof. Relinks "
        "parts of the inputs many times: 1 to 7 s of processor time, or some "
        "12 times as long as the link if that is more."),
    "ptxas-path": ("<file or directory>",
        "The ptxas that compiles PTX (default: from the wheel nvidia-cuda-nvcc, CUDA_HOME, "
        "CUDA_PATH or PATH, in this order)."),
    "register-link-binaries": ("<file>",
        "Write a header with a registration macro for each linked object."),
    "relocatable-link": ("", "Make an object that can be linked again."),
    "report-arch": ("", "Print the target architecture in each message."),
    "reproduce": ("<file>",
        "Write all that the link reads, and its options, as a .tar.zst, also when it fails; "
        "`pylink reproduce` links it again."),
    "rule": ("<rule>,...", "Apply only these rules to the report of --profile."),
    "sarif-output": ("<file>", "Write a SARIF document of all diagnostics."),
    "section": ("<section>,...",
        "Put these sections into the report of --profile, in place of the default set."),
    "section-folder": ("<directory>,...",
        "Directories of section and rule files, which replace the stock files and the user's."),
    "section-folder-recursive": ("<directory>,...",
        "Like --section-folder, with all directories below."),
    "set": ("<set>,...", "Put these sets of sections into the report of --profile, such as full."),
    "shared": ("",
        "Accepted, since nvcc passes it. Warnings about shared libraries take it to mean that "
        "the host link produces one."),
    "source-root": ("<directory>,...",
        "Directories of source files whose lines may be shown, besides the working directory and "
        "the directories of the inputs; text format only."),
    "split-compile": ("<threads>",
        "Threads that compile one LTO program; 0 uses one for each core."),
    "split-compile-extended": ("<threads>", "Accepted; the same as --split-compile."),
    "suppress-arch-warning": ("", "Do not warn about objects without code for the target."),
    "suppress-debug-info": ("", "Omit debug data from the output; needs --debug."),
    "suppress-stack-size-warning": ("", "Do not warn about kernels of unknown stack size."),
    "tab-width": ("<columns>", "Columns of a tab in source lines (default: 8)."),
    "terminal-width": ("<columns>",
        "Columns at which diagnostics wrap (default: the terminal's width, or 80)."),
    "threads": ("<threads>",
        "Threads of the link itself; 0 uses PYLINK_THREADS or, without that, one for each core "
        "(default). The result does not depend on it."),
    "time": ("<file>",
        "Append the time of each compiler run to a CSV file, which is created with a header row. "
        "- is standard output."),
    "time-trace": ("<file>",
        "Write a timeline of the link that Perfetto and chrome://tracing open."),
    "tool-timeout": ("<seconds>",
        "Stop a compiler that runs longer than this; 0 sets no limit (default: 3600)."),
    "use-host-info": ("", "Remove device code that host code does not refer to."),
    "uumn": ("", "Accepted and ignored, as by nvlink."),
    "variables-used": ("<variable>,...",
        "Keep only variables with one of these texts in their names, and those that code uses."),
    "verbose": ("", "Print the memory and registers that the output uses."),
    "verbose2": ("", "Accepted and ignored."),
    "version": ("", "Print the version."),
    "warning-as-error": ("", "Turn warnings into errors."),
    "whole-archive": ("",
        "Link every member of the archives and libraries that come after this option, also with "
        "--lazy-archives. Includes members that contain cubins, PTX or LTO-IR."),
    "wrap_diagnostics": ("",
        "Break long lines of diagnostics (default on a terminal); text format only."),
    "write-if-changed": ("", "Do not rewrite an output file whose contents stay the same."),
    "Xnvvm": ("<option>,...", "Options for the compiler of LTO inputs."),
    "Xopt": ("<option>,...",
        "Options in LLVM's spelling: -pass-remarks and its relatives, with one dash. "
        "-profusededup=true or -profusetwins=true trace how identical sections are found."),
    "Xptxas": ("<option>,...", "Options for ptxas, in what this link compiles."),
}
# fmt: on


def _usage_text(tool: str) -> str:
    """Return the usage line of a link; `tool` is pylink, which has commands, or nvlink."""
    command = "pylink [link]" if tool == "pylink" else tool
    return f"Usage  : {command} [options] <objects>\n"


def short_help_text() -> str:
    """Return the text of `pylink --help`: the commands and common options, a line for each."""
    return f"""\
{_usage_text("pylink")}\
         pylink <command> [options]

Link CUDA device code that was compiled with -rdc=true, as nvlink does:
    pylink -arch=sm_90 main.o square.o -o program.cubin

{_commands_text()}
Common options of a link
========================
{"".join(map(_short_entry, COMMON))}
pylink help link      all options of a link
pylink help TOPIC     a command, an option, or the number of a diagnostic
pylink help all       all of this (also: pylink --help all)
"""


def full_help_text() -> str:
    """Return the text of `pylink help all`."""
    return _usage_text("pylink") + "\n" + _commands_text() + options_text()


def _commands_text() -> str:
    """Return the section of commands, an entry for each."""
    from pylink.options.commands import COMMANDS

    entries = [_entry(name, command.about) for name, command in COMMANDS.items()]
    return "Commands\n========\n" + "".join(entries)


def _short_entry(name: str) -> str:
    """Return the line of a common option in `pylink --help`; `name` is the long name."""
    option = BY_ATTRIBUTE[name.replace("-", "_")]
    argument = HELP[name][0].strip("<>").split(" ")[0].split(">")[0]
    argument = {"arch": "ARCH", "explain": "NUMBER", "notes": "yes|no"}.get(name, argument.upper())
    spelling = f"-{option.short}" if option.short else f"--{name}"
    return _entry(f"{spelling} {argument}", COMMON[name], 28)


def _entry(name: str, text: str, column: int = 18) -> str:
    """Return a line with a name, and a text that starts at a column (counted from 0)."""
    return f"{name:<{column - 1}} {text}\n"


def help_text(tool: str) -> str:
    """Return the usage line of a link, and all of its options; `tool` is pylink or nvlink."""
    return _usage_text(tool) + options_text()


def options_text() -> str:
    """Return the section of options in alphabetical order, without those that pylink refuses."""
    built_options = sorted(
        filter(lambda option: option.built, OPTIONS), key=lambda option: option.long.lower()
    )
    return HEADING + "".join(f"{option_text(option)}\n" for option in built_options)


def option_text(option: Option) -> str:
    """Return the help entry of one option."""
    from textwrap import fill

    spelling = f"--{option.long} {HELP[option.long][0]}".rstrip()
    short = f"(-{option.short})" if option.short else ""
    text = fill(
        describe_option(option),
        WIDTH,
        initial_indent=INDENT,
        subsequent_indent=INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return f"{spelling:<50}{short}".rstrip() + f"\n{text}\n"


def describe_option(option: Option) -> str:
    """Return the description of an option, with its allowed values."""
    text = HELP[option.long][1]
    return f"{text} Allowed: {', '.join(linkable_choices(option))}." if option.choices else text


def linkable_choices(option: Option) -> list[str]:
    """Return the values of an option, without architectures that are not supported as targets."""
    choices = option.choices
    if option.attribute == "arch":
        choices = tuple(arch for arch in ARCHES if arch.startswith("sm_"))
    return [str(choice) for choice in choices]


def version_text(tool: str, release: str | None = None) -> str:
    """Return the text of --version: the version of pylink, and of the nvlink that it follows.

    `tool` is the name under which the program was started, pylink or nvlink. `release` is the
    CUDA release of the followed nvlink. Without it, the text names the oldest nvlink that a link
    follows by default, although a link of newer objects follows a newer one.
    """
    row = BY_NAME[release] if release in FOLLOWED_NAMES else OLDEST_DEFAULT
    return (
        f"{tool}: an open CUDA device linker\npylink Version {__version__}\nFollows {row.title}\n"
    )
