"""The commands of the program, with their purpose and module; `link` has no module.

Each module has a `main` that takes the remaining arguments. A module with a `parser` has its
options described in help, completions and manual pages.
"""

from __future__ import annotations


class Command:
    """One command: its arguments (`usage`), its purpose (`about`), and the names of two modules.

    `main` is the module with the function `main`, empty for `link`. `parser` is the module with the
    function `parser`, empty if there is no such function; the argument None means the same module.
    """

    __slots__ = ("about", "main", "parser", "usage")

    def __init__(self, usage: str, main: str, about: str, *, parser: str | None = None) -> None:
        self.usage = usage
        self.main = main
        self.about = about
        self.parser = main if parser is None else parser


# fmt: off
COMMANDS = {
    "link": Command("[options] <objects>", "",
        "Link device code; this is the default command."),
    "inspect": Command("[options] <file> [<file>]", "pylink.command.inspection",
        "Show what a file with device code contains, or compare two."),
    "size": Command("[options] <file or directory>", "pylink.command.sizes",
        "Show where the bytes of device code are in wheels and objects."),
    "prune": Command("-o <file> [options] <file>", "pylink.prune.command",
        "Write a file without device code that need not be shipped."),
    "audit": Command("[--plugin <file>] [-L <directory>] [options] <file>", "pylink.audit.command",
        "Find kernels of a program that will be missing."),
    "dlink": Command("[options of nvcc -dlink] <objects>", "pylink.devicelink.command",
        "Do the device-link step of a build, as nvcc -dlink does.",
        parser="pylink.devicelink.helptexts"),
    "cmake-dir": Command("", "pylink.devicelink.command_cmakedir",
        "Print the directory of the CMake module for device links."),
    "dedup": Command("[options] <objects>", "pylink.dedup.command",
        "Show what deduplication of Mercury sections saves."),
    "dedup-index": Command("-o <directory> [options] <directory>", "pylink.fleet.command_index",
        "Index the sections of build trees (pylink dedup index)."),
    "dedup-ask": Command("[options] <directory> <question>", "pylink.fleet.command_ask",
        "Answer questions about an index (pylink dedup ask)."),
    "dedup-compare": Command("[options] <directory> <directory> [<what>]",
        "pylink.fleet.command_compare",
        "Show how two indexed builds differ (pylink dedup compare)."),
    "remarks": Command("[options] <file>", "pylink.remarks.command",
        "Convert, filter and count remarks."),
    "report": Command("[options] <report> [<report>]", "pylink.report.view.command",
        "Show, compare and plot profiles of links.", parser="pylink.report.view.arguments"),
    "bench": Command("[options] -- <link>", "pylink.bench.command",
        "Measure a link beside other linkers, or compare measurements."),
    "doctor": Command("[--json]", "pylink.doctor.command",
        "Check the installation, and print the command that fixes it."),
    "demo": Command("[<directory>]", "pylink.demo.command",
        "Link an example program and compare with nvlink's result."),
    "reproduce": Command("[-o <file>] [options] <archive>", "pylink.reproduce.command",
        "Repeat a link that --reproduce packed."),
    "toolkit-overlay": Command("[--cuda <toolkit>] <directory>", "pylink.command.overlay",
        "Create a CUDA toolkit whose device linker is pylink."),
    "worker": Command("[options]", "pylink.worker.command",
        "Serve link requests of a build system, as a Bazel worker."),
    "serve": Command("[options] [<command>]", "pylink.serve.command",
        "Keep the linker loaded for builds that link often."),
    "completion": Command("<shell>", "pylink.command.completion",
        "Print the completion script for bash, zsh or fish."),
    "man": Command("[<command>]", "pylink.command.manual",
        "Print a manual page."),
    "help": Command("[all, <command>, <option> or <diagnostic>]", "pylink.command.helpcommand",
        "Explain a command, an option or a diagnostic.", parser=""),
}
# fmt: on
