"""The commands of the program besides `link`, with their purpose and module.

Each module has a `main` that takes the remaining arguments. A module with a `parser` has its
options described in help, completions and manual pages.
"""

from __future__ import annotations


class Command:
    """One command: its arguments, its purpose, and the modules of `main` and `parser`.

    `parser` None is the module of `main`, an empty one stands for no parser.
    """

    __slots__ = ("about", "main", "parser", "usage")

    def __init__(
        self, usage: str, about: str, main: str = "", *, parser: str | None = None
    ) -> None:
        self.usage = usage
        self.about = about
        self.main = main
        self.parser = main if parser is None else parser


COMMANDS = {
    "link": Command("[options] <objects>", "Link device code; this is the default command."),
    "inspect": Command(
        "[options] <file> [<file>]",
        "Show what a file with device code contains, or compare two.",
        "pylink.command.inspection",
    ),
    "size": Command(
        "[options] <file or directory>",
        "Show where the bytes of device code are in wheels and objects.",
        "pylink.command.sizes",
    ),
    "prune": Command(
        "-o <file> [options] <file>",
        "Write a file without device code that need not be shipped.",
        "pylink.prune.command",
    ),
    "audit": Command(
        "[--plugin <file>] [-L <directory>] [options] <file>",
        "Find kernels of a program that will be missing.",
        "pylink.audit.command",
    ),
    "dlink": Command(
        "[options of nvcc -dlink] <objects>",
        "Do the device-link step of a build, as nvcc -dlink does.",
        "pylink.devicelink.command",
        parser="pylink.devicelink.helptexts",
    ),
    "cmake-dir": Command(
        "",
        "Print the directory of the CMake module for device links.",
        "pylink.devicelink.command_cmakedir",
    ),
    "dedup": Command(
        "[options] <objects>",
        "Show what deduplication of Mercury sections saves.",
        "pylink.dedup.command",
    ),
    "dedup-index": Command(
        "-o <directory> [options] <directory>",
        "Index the sections of build trees (pylink dedup index).",
        "pylink.fleet.command_index",
    ),
    "dedup-ask": Command(
        "[options] <directory> <question>",
        "Answer questions about an index (pylink dedup ask).",
        "pylink.fleet.command_ask",
    ),
    "dedup-compare": Command(
        "[options] <directory> <directory> [<what>]",
        "Show how two indexed builds differ (pylink dedup compare).",
        "pylink.fleet.command_compare",
    ),
    "remarks": Command(
        "[options] <file>", "Convert, filter and count remarks.", "pylink.remarks.command"
    ),
    "report": Command(
        "[options] <report> [<report>]",
        "Show, compare and plot profiles of links.",
        "pylink.report.view.command",
        parser="pylink.report.view.arguments",
    ),
    "bench": Command(
        "[options] -- <link>",
        "Measure a link beside other linkers, or compare measurements.",
        "pylink.bench.command",
    ),
    "doctor": Command(
        "[--json]",
        "Check the installation, and print the command that fixes it.",
        "pylink.doctor.command",
    ),
    "demo": Command(
        "[<directory>]",
        "Link an example program and compare with nvlink's result.",
        "pylink.demo.command",
    ),
    "reproduce": Command(
        "[-o <file>] [options] <archive>",
        "Repeat a link that --reproduce packed.",
        "pylink.reproduce.command",
    ),
    "toolkit-overlay": Command(
        "[--cuda <toolkit>] <directory>",
        "Create a CUDA toolkit whose device linker is pylink.",
        "pylink.command.overlay",
    ),
    "worker": Command(
        "[options]",
        "Serve link requests of a build system, as a Bazel worker.",
        "pylink.worker.command",
    ),
    "serve": Command(
        "[options] [<command>]",
        "Keep the linker loaded for builds that link often.",
        "pylink.serve.command",
    ),
    "completion": Command(
        "<shell>", "Print the completion script for bash, zsh or fish.", "pylink.command.completion"
    ),
    "man": Command("[<command>]", "Print a manual page.", "pylink.command.manual"),
    "help": Command(
        "[all, <command>, <option> or <diagnostic>]",
        "Explain a command, an option or a diagnostic.",
        "pylink.command.helpcommand",
        parser="",
    ),
}
