"""The commands of the program besides `link`: what each is for, and the module that does it.

Each module has a `main` that takes the rest of the words, and those of which the module has a
`parser` say their options in help, completions and manual pages.
"""

from __future__ import annotations


class Command:
    """One command: the words behind its name, what it does, and where `main` and `parser` are."""

    __slots__ = ("about", "main", "parser", "usage")

    def __init__(
        self, usage: str, about: str, main: str = "", *, parser: str | None = None
    ) -> None:
        self.usage = usage
        self.about = about
        self.main = main
        self.parser = main if parser is None else parser


COMMANDS = {
    "link": Command(
        "[options] <objects>",
        "Link device code; the word may be left out.",
    ),
    "inspect": Command(
        "[options] <file> [<file>]",
        "Show what is in a file with device code, or how two cubins differ.",
        "pylink.inspect.command",
    ),
    "dedup": Command(
        "[options] <objects>",
        "Say what deduplication of Mercury sections saves.",
        "pylink.dedup.command",
    ),
    "dedup-index": Command(
        "-o <directory> [options] <directory>",
        "Index the sections of build trees; also: pylink dedup index.",
        "pylink.fleet.command_index",
    ),
    "dedup-ask": Command(
        "[options] <directory> <question>",
        "Answer questions about an index; also: pylink dedup ask.",
        "pylink.fleet.command_ask",
    ),
    "dedup-compare": Command(
        "[options] <directory> <directory> [<what>]",
        "Say how two indexed builds differ; also: pylink dedup compare.",
        "pylink.fleet.command_compare",
    ),
    "remarks": Command(
        "[options] <file>",
        "Convert, filter and count remarks.",
        "pylink.remarks.command",
    ),
    "report": Command(
        "[options] <report> [<report>]",
        "Show, compare and plot profiles of links.",
        "pylink.report.view.command",
        parser="pylink.report.view.arguments",
    ),
    "bench": Command(
        "[options] -- <link>",
        "Measure a link beside other linkers, or compare two measurements.",
        "pylink.bench.command",
    ),
    "reproduce": Command(
        "[-o <file>] [options] <archive>",
        "Link again what --reproduce packed.",
        "pylink.command.reproduce",
    ),
    "toolkit-overlay": Command(
        "[--cuda <toolkit>] <directory>",
        "Make a CUDA toolkit whose device linker is pylink.",
        "pylink.command.overlay",
    ),
    "worker": Command(
        "[options]",
        "Link what a build system asks for, request by request, as Bazel's workers do.",
        "pylink.worker.command",
    ),
    "serve": Command(
        "[options] [<command>]",
        "Keep the linker loaded, for a build that links often.",
        "pylink.serve.command",
    ),
    "completion": Command(
        "<shell>",
        "Print the completions of a shell: bash, zsh or fish.",
        "pylink.command.completion",
    ),
    "man": Command(
        "[<command>]",
        "Print a manual page.",
        "pylink.command.manual",
    ),
    "help": Command(
        "[<command>, <option> or <diagnostic>]",
        "Say how to use pylink, a command or an option, and what a diagnostic means.",
        "pylink.command.helpcommand",
        parser="",
    ),
}
