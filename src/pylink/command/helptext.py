"""What --help and --version print."""

from __future__ import annotations

from pylink import __version__
from pylink.command.optiontable import ARCHES, OPTIONS
from pylink.facts.releases import BY_NAME, FIRST, FOLLOWED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.command.optiontable import Option

WIDTH = 80
INDENT = " " * 8

HEADING = """
Options
=======
"""

# By long name: what the argument is, and what the option does.
# fmt: off
HELP = {
    "apply-rules": ("", "Whether rules look at the report of --profile; they do by default."),
    "arch": ("<gpu architecture name>", "Architecture to link for, such as sm_90a. Always needed."),
    "allow-empty": ("", "Make an executable without any code of a link without inputs."),
    "allow-missing-libraries": ("", "Go on without libraries that are not found, as nvlink does."),
    "brief-diagnostics": ("<true or false>",
        "Print diagnostics without source lines and blank lines; text format only."),
    "cpu-arch": ("<cpu architecture name>",
        "Architecture of the host, which libraries of -l have to be for; that of this machine "
        "unless given."),
    "color": ("<when>", "Colour the diagnostics of the text format."),
    "debug": ("", "Link for debugging: keep all code, and record file names in the output."),
    "depfile": ("<file>",
        "Write a rule for make and Ninja: the output, and every file that the link read."),
    "device-stack-protector": ("<true or false>",
        "Whether ptxas adds stack canaries to functions at risk, in what this link compiles."),
    "diag-error": ("<number or name>,...", "Make errors of these diagnostics."),
    "diag-min-severity": ("<remark, warning or error>",
        "Drop diagnostics below this severity; the lines of -v and remarks of passes stay."),
    "diag-log": ("<file>", "Write a log of all diagnostics, one line each."),
    "diag-once": ("<number or name>,...", "Print each of these diagnostics once at most."),
    "diag-remark": ("<number or name>,...", "Make remarks of these diagnostics."),
    "diag-summary": ("<true or false>",
        "Print the number of errors at the end, as is done unless given; text format only."),
    "diag-suppress": ("<number or name>,...", "Print none of these diagnostics."),
    "diag-warning": ("<number or name>,...", "Make warnings of these diagnostics."),
    "diagnostics_format": ("<format>",
        "How diagnostics are printed: in one line as nvlink does, as text with places and source "
        "lines, or as SARIF."),
    "disable-infos": ("", "Print no info messages, other than what --verbose asks for."),
    "disable-warnings": ("", "Print no warnings."),
    "display-error-number": ("", "Print the number of each diagnostic; text format only."),
    "dlto": ("", "The same as --link-time-opt."),
    "dump-callgraph": ("", "Print who calls whom, with registers and entry points."),
    "dump-callgraph-no-demangle": ("", "The same with names as they are in the files."),
    "edbg": ("<bits>",
        "Trace the linker: bit 1 prints what --merc-dedup decides, each input and each Mercury "
        "section that is left out of it, bit 0x20 the time of each phase."),
    "emit-ptx": ("", "Write the PTX of all LTO inputs, and link nothing; needs --dlto."),
    "error-limit": ("<errors>", "Stop after so many errors; 0, the default, never does."),
    "explain": ("<number or name>", "Say what a diagnostic means and what to do about it."),
    "extra-warnings": ("", "Warn about more that may be wrong."),
    "gen-host-linker-script": ("<kind>",
        "Write a script for the host linker to --output-file, or to standard output, and link "
        "nothing. lcs-aug adds to the script the host linker has; lcs-abs, which is also what "
        "the option means without its argument, replaces it."),
    "help": ("", "Print this text."),
    "ignore-host-info": ("", "Keep device code that host code might refer to."),
    "keep-system-libraries": ("", "Keep unused code of system libraries such as cudadevrt."),
    "kernels-used": ("<kernel>,...", "Keep only kernels with one of these texts in their names."),
    "lazy-archives": ("", "Link only those members of archives that define what other code needs."),
    "library": ("<library>,...",
        "Libraries to link, libNAME.a or with a colon the file of that name, searched in the "
        "directories of -L and then in those of LIBRARY_PATH."),
    "library-path": ("<directory>,...", "Directories to search for libraries."),
    "link-time-opt": ("",
        "Compile the LTO inputs as one program; on the command line needs --nvvmpath. Cubins and "
        "PTX may be linked in."),
    "list-rules": ("", "List the rules for reports, and files that do not load."),
    "list-sections": ("", "List the sections for reports, and files that do not load."),
    "list-sets": ("", "List the sets of sections."),
    "machine": ("<bits>", "Size of an address."),
    "Map": ("<file>",
        "Write where everything in the output comes from, and why symbols were kept or removed."),
    "host-ccbin": ("<compiler>", "Name of the host compiler, as nvcc gives it; not needed here."),
    "max-uncompressed-size": ("<bytes>",
        "Most bytes that the compressed device code of all inputs may become; 2147483647 unless "
        "given."),
    "maxrregcount": ("<registers>", "Most registers for a function, in what this link compiles."),
    "metrics": ("<metric>,...",
        "Put these metrics alone into the report of --profile; regex:<expression> for several."),
    "merc-dedup": ("<on or off>",
        "Keep one copy of Mercury sections that several objects have alike. On by default; only "
        "executables for sm_100 and later have anything to leave out."),
    "no-source-context": ("", "Print no source lines; text format only."),
    "no_wrap_diagnostics": ("", "Never break the lines of diagnostics."),
    "no-whole-archive": ("", "End what --whole-archive began."),
    "nvlink-version": ("<release>",
        "The CUDA release whose nvlink the output is that of. Without it the newest that an "
        "input was made by, at least 13.0."),
    "nvvmpath": ("<directory>",
        "The nvvm directory of the toolkit whose libraries compile LTO inputs. Where these are "
        "not found, the wheels nvidia-nvjitlink and nvidia-nvvm have them."),
    "Ofast-compile": ("<0, min, mid or max>",
        "Compile LTO inputs faster, for slower programs; needs --dlto."),
    "options-file": ("<file>,...", "Read more options and inputs from these files; so does @FILE."),
    "output-file": ("<file>", "File to write. Always needed."),
    "output_mode": ("<format>", "The same as --diagnostics_format."),
    "pass-remarks": ("<regex>", "Show what the passes whose names match did to the program."),
    "pass-remarks-analysis": ("<regex>", "Show what these passes found out."),
    "pass-remarks-bitstream-version": ("<version>",
        "Version of the container that --pass-remarks-format=bitstream writes: 0 is what LLVM 19 "
        "reads, 1, the default, what LLVM 22 reads."),
    "pass-remarks-filter": ("<regex>",
        "Write the remarks of these passes alone to the file of --pass-remarks-output."),
    "pass-remarks-format": ("<format>",
        "Format of --pass-remarks-output: yaml, the default, or bitstream."),
    "pass-remarks-hotness-threshold": ("<bytes>",
        "Leave out remarks that concern fewer bytes. Implies --pass-remarks-with-hotness."),
    "pass-remarks-missed": ("<regex>", "Show what these passes could not do, and why."),
    "pass-remarks-output": ("<file>",
        "Write all remarks to a file, which LLVM's tools read. - is standard output."),
    "pass-remarks-why-live": ("<regex>",
        "With remarks of pass dce, tell along which calls a kernel reaches these functions."),
    "pass-remarks-with-hotness": ("", "Say with each remark how many bytes it concerns."),
    "preserve-relocs": ("", "Keep a record of the relocations that were resolved."),
    "profile": ("<file>",
        "Write what the link cost, by phase, input, section and relocation type, as a report "
        "that Nsight Compute and `pylink report` open."),
    "profile-aprof": ("<file>",
        "Write how the cost of each routine grows with its input, as a report for aprof. Links "
        "all inputs, the first half, a quarter and so on again, which takes four to five times "
        "as long as the link."),
    "ptxas-path": ("<file or directory>",
        "The ptxas to compile PTX with. By default that of the wheel nvidia-cuda-nvcc, of "
        "CUDA_HOME, of CUDA_PATH, or the first in PATH."),
    "register-link-binaries": ("<file>",
        "Write a header with a registration macro for each linked object."),
    "relocatable-link": ("", "Make an object that can be linked again."),
    "report-arch": ("", "Name the target architecture in each message."),
    "reproduce": ("<file>",
        "Write all that the link reads, and its options, as a .tar.zst, also when it fails; "
        "`pylink reproduce` links it again."),
    "rule": ("<rule>,...", "Apply these rules alone to the report of --profile."),
    "sarif-output": ("<file>", "Write a SARIF document of all diagnostics."),
    "section": ("<section>,...",
        "Put these sections into the report of --profile, in place of the default set."),
    "section-folder": ("<directory>,...",
        "Where section and rule files are, in place of the stock files and the user's."),
    "section-folder-recursive": ("<directory>,...", "The same, with all directories below."),
    "set": ("<set>,...", "Put these sets of sections into the report of --profile, such as full."),
    "split-compile": ("<threads>",
        "Threads that may compile one LTO program; 0 for as many as there are cores."),
    "split-compile-extended": ("<threads>",
        "The same, for more of the compilation; counts as --split-compile here."),
    "source-root": ("<directory>,...",
        "Where source files are whose lines may be shown, besides the working directory and the "
        "folders of the inputs; text format only."),
    "shared": ("", "The host link makes a shared library, as nvcc says; not needed here."),
    "suppress-arch-warning": ("", "Do not warn about objects without code for the target."),
    "suppress-debug-info": ("", "Leave debug data out of the output; needs --debug."),
    "suppress-stack-size-warning": ("", "Do not warn about kernels of unknown stack size."),
    "tab-width": ("<columns>", "Width of tabs in source lines; 8 unless given."),
    "terminal-width": ("<columns>",
        "Where lines of diagnostics break; that of the terminal, else 80, unless given."),
    "time": ("<file>",
        "Append the times of sub-tool runs to a table of comma separated values, which a file "
        "that does not exist yet gets with column headings. - is standard output."),
    "time-trace": ("<file>",
        "Write a timeline of the link that Perfetto and chrome://tracing open."),
    "tool-timeout": ("<seconds>",
        "Stop a compiler that runs longer; 3600 by default, 0 for no limit."),
    "use-host-info": ("", "Remove device code that host code does not refer to."),
    "variables-used": ("<variable>,...",
        "Keep only variables with one of these texts in their names, and those that code uses."),
    "verbose": ("", "Print the memory and registers that the output uses."),
    "version": ("", "Print the version."),
    "Xnvvm": ("<option>,...", "Options for the compiler of LTO inputs."),
    "Xopt": ("<option>,...",
        "Options as LLVM spells them: -pass-remarks and its relatives, with one dash, and "
        "-profusededup=true or -profusetwins=true, which trace how equal sections are found."),
    "wrap_diagnostics": ("",
        "Break long lines of diagnostics, as is done on a terminal; text format only."),
    "Xptxas": ("<option>,...", "Options for ptxas, in what this link compiles."),
    "warning-as-error": ("", "Turn warnings into errors."),
    "whole-archive": ("",
        "Link every member of the archives and libraries that come after this option: also with "
        "--lazy-archives, and also members that hold cubins, PTX or LTO-IR."),
    "write-if-changed": ("", "Leave an output file alone that would get the contents it has."),
}
# fmt: on


def usage_text(tool: str) -> str:
    """How the program is called; `tool` is pylink, which has commands, or nvlink."""
    if tool != "pylink":
        return f"Usage  : {tool} [options] <objects>\n"
    from pylink.command.commands import COMMANDS  # noqa: PLC0415 -- not for links

    lines = [f"pylink {name} {command.usage}" for name, command in COMMANDS.items()]
    lines[0] = lines[0].replace("link", "[link]", 2).replace("py[link]", "pylink", 1)
    return "Usage  : " + "\n         ".join(lines) + "\n"


def help_text(tool: str) -> str:
    """One entry for each option that works, in alphabetical order; `tool` is pylink or nvlink."""
    working = sorted(filter(lambda one: one.built, OPTIONS), key=lambda one: one.long.lower())
    return usage_text(tool) + HEADING + "".join(f"{option_text(one)}\n" for one in working)


def option_text(option: Option) -> str:
    """The entry of one option."""
    from textwrap import fill  # noqa: PLC0415

    spelling = f"--{option.long} {HELP[option.long][0]}".rstrip()
    short = f"(-{option.short})" if option.short else ""
    text = fill(
        about(option),
        WIDTH,
        initial_indent=INDENT,
        subsequent_indent=INDENT,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return f"{spelling:<50}{short}".rstrip() + f"\n{text}\n"


def about(option: Option) -> str:
    """What an option does, and the values it takes."""
    text = HELP[option.long][1]
    return f"{text} Allowed: {', '.join(shown_choices(option))}." if option.choices else text


def shown_choices(option: Option) -> list[str]:
    """The values of an option, without architectures that cannot be linked for."""
    choices = option.choices
    if option.attribute == "arch":
        choices = tuple(arch for arch in ARCHES if arch.startswith("sm_"))
    return [str(choice) for choice in choices]


def version_text(tool: str, release: str | None = None) -> str:
    """The version of pylink, and of the linker whose output and options it follows.

    Without a `release` that is asked for it is the first one; objects of later ones name their own.
    """
    row = BY_NAME[release] if release in FOLLOWED else FIRST
    return (
        f"{tool}: an open CUDA device linker\npylink Version {__version__}\nFollows {row.title}\n"
    )
