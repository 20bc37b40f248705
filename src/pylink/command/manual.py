"""`pylink man`: manual pages, from the option table and the commands' parsers."""

from __future__ import annotations

import argparse

from pylink import __version__
from pylink.command.optionhelp import OptionHelp, command_options, command_parser, link_options
from pylink.diagnostics.stream import show
from pylink.facts.releases import RELEASES
from pylink.options.commands import COMMANDS
from pylink.terminal.running import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Texts of sections of the page pylink(1), in roff.
DESCRIPTION = f"""\
.B pylink
links CUDA device code that was compiled apart: cubins, host objects, fat binaries, archives, PTX
and LTO-IR. It takes the options of nvlink {RELEASES[0].name} to {RELEASES[-1].name} and writes
what nvlink writes. Inputs and options may be in any order. The argument of an option is the next
word or follows an equals sign.
Options that nvlink does not have are accepted with one dash or two.
"""

ENVIRONMENT = """\
.TP
.B PYLINK_OPTIONS
Options of every link. Those of the command line override them.
Blanks separate them except between double quotes.
.TP
.B PYLINK_THREADS
Threads of a process, which its parallel links share (default: one for each core).
.TP
.BR LIBRARY_PATH ", " CUDA_HOME ", " CUDA_PATH ", " PATH
Directories in which libraries and compilers are searched for.
.TP
.B NO_COLOR
No colors on a terminal.
"""

STATUS = """\
0 is success, 1 follows a fatal error, 255 other errors.
"""


def manual() -> str:
    """Return the manual page pylink(1), in roff."""
    commands = [
        f".TP\n.B pylink {_escape(name)} {_escape(command.usage)}\n{_escape(command.about)}\n"
        for name, command in COMMANDS.items()
        if name != "link"
    ]
    return "".join(
        [
            _page_head("PYLINK", "pylink", "a CUDA device linker"),
            '.SH SYNOPSIS\n.B pylink\n.RI [ link "] [" options "] " objects\n.br\n',
            '.B pylink\n.IR command " ..."\n',
            f".SH DESCRIPTION\n{DESCRIPTION}",
            f".SH COMMANDS\n{''.join(commands)}",
            f".SH OPTIONS\n{_option_entries(link_options())}",
            f".SH ENVIRONMENT\n{ENVIRONMENT}",
            f".SH EXIT STATUS\n{STATUS}",
        ]
    )


def command_manual(name: str) -> str:
    """Return the manual page pylink-NAME(1) of a command other than `link`."""
    command = COMMANDS[name]
    parser = command_parser(name)
    text = (parser.description or "") if parser else command.about
    parts = [
        _page_head(f"PYLINK-{name.upper()}", f"pylink-{name}", command.about.rstrip(".")),
        f".SH SYNOPSIS\n.B pylink {_escape(name)}\n{_escape(command.usage)}\n",
        f".SH DESCRIPTION\n{_escape(text)}\n",
    ]
    option_helps = command_options(name)
    if option_helps:
        parts.append(f".SH OPTIONS\n{_option_entries(option_helps)}")
    if parser and parser.epilog:
        parts.append(f".SH NOTES\n{_escape_lines(parser.epilog)}\n")
    return "".join([*parts, ".SH SEE ALSO\n.BR pylink (1)\n"])


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink man",
        description="Print a manual page, which man(1) shows: pylink man | man -l -",
    )
    options.add_argument(
        "command",
        nargs="?",
        choices=tuple(COMMANDS),
        default="link",
        help="the command; without one, the page of pylink",
    )
    return options


def main(argv: Sequence[str]) -> int:
    """Print a page; the status is 1 if it cannot be printed, 2 for an unknown command, else 0."""
    return run(parser(), argv, _main)


def _main(options: argparse.Namespace) -> int:
    name = options.command
    show(manual() if name == "link" else command_manual(name))
    return 0


def _page_head(title: str, name: str, about: str) -> str:
    """Return the title of a page and its section NAME, with what the command is for."""
    return (
        f'.TH {title} 1 "" "pylink {__version__}"\n'
        f".SH NAME\n{_escape(name)} \\- {_escape(about[0].lower() + about[1:])}\n"
    )


def _option_entries(option_helps: Iterable[OptionHelp]) -> str:
    """Return the entries of options in a manual page, in roff."""
    return "".join(
        f".TP\n.B {', '.join(map(_escape, option.spellings))} {_escape(option.argument)}".rstrip()
        + f"\n{_escape(option.about)}\n"
        for option in option_helps
    )


def _escape_lines(text: str) -> str:
    """Return the text escaped for roff; several lines keep their breaks and blanks."""
    if "\n" not in text:
        return _escape(text)
    return "\n".join([".nf", *map(_escape_line, text.split("\n")), ".fi"])


def _escape(text: str) -> str:
    """Return the text in one line, escaped for roff."""
    return _escape_line(" ".join(text.split()))


def _escape_line(text: str) -> str:
    """Return a line escaped for roff: dashes stay dashes, and a dot in front is not a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{text}" if text[:1] == "." else text
