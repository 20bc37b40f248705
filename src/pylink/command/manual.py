"""`pylink man`: manual pages, from the option table and the commands' parsers."""

from __future__ import annotations

import argparse

from pylink import __version__
from pylink.command.words import Word, command_parser, command_words, link_words
from pylink.diagnostics.stream import show
from pylink.options.commands import COMMANDS
from pylink.terminal.running import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DESCRIPTION = """\
.B pylink
links CUDA device code that was compiled apart: cubins, host objects, fat binaries, archives, PTX
and LTO-IR. It takes the options of nvlink 13.0 and writes what nvlink writes. Inputs and options
may stand in any order; an option has its argument as the next word or behind an equals sign.
Options that nvlink does not have are taken with one dash or two.
"""

ENVIRONMENT = """\
.TP
.B PYLINK_OPTIONS
Options of every link, in front of those of the command line, which count where both have one.
Blanks separate them except between double quotes.
.TP
.B PYLINK_THREADS
Threads of a process, which links that it does side by side share; one for each core without it.
.TP
.BR LIBRARY_PATH ", " CUDA_HOME ", " CUDA_PATH ", " PATH
Where libraries and compilers are looked for.
.TP
.B NO_COLOR
No colors on a terminal.
"""

STATUS = """\
0 is success, 1 follows a fatal error, 255 other errors.
"""


def manual() -> str:
    """pylink(1)."""
    commands = [
        f".TP\n.B pylink {_text(name)} {_text(command.usage)}\n{_text(command.about)}\n"
        for name, command in COMMANDS.items()
        if name != "link"
    ]
    return "".join(
        [
            _head("PYLINK", "pylink", "a CUDA device linker"),
            '.SH SYNOPSIS\n.B pylink\n.RI [ link "] [" options "] " objects\n.br\n',
            '.B pylink\n.IR command " ..."\n',
            f".SH DESCRIPTION\n{DESCRIPTION}",
            f".SH COMMANDS\n{''.join(commands)}",
            f".SH OPTIONS\n{_options(link_words())}",
            f".SH ENVIRONMENT\n{ENVIRONMENT}",
            f".SH EXIT STATUS\n{STATUS}",
        ]
    )


def command_manual(name: str) -> str:
    """The page of another command, pylink-NAME(1)."""
    command = COMMANDS[name]
    parser = command_parser(name)
    text = (parser.description or "") if parser else command.about
    parts = [
        _head(f"PYLINK-{name.upper()}", f"pylink-{name}", command.about.rstrip(".")),
        f".SH SYNOPSIS\n.B pylink {_text(name)}\n{_text(command.usage)}\n",
        f".SH DESCRIPTION\n{_text(text)}\n",
    ]
    word_rows = command_words(name)
    if word_rows:
        parts.append(f".SH OPTIONS\n{_options(word_rows)}")
    if parser and parser.epilog:
        parts.append(f".SH NOTES\n{_text(parser.epilog)}\n")
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
    """Print a page; 0, 1 when it cannot be printed, 2 for a command that there is not."""
    return run(parser(), argv, _main)


def _main(options: argparse.Namespace) -> int:
    name = options.command
    show(manual() if name == "link" else command_manual(name))
    return 0


def _head(title: str, name: str, about: str) -> str:
    return (
        f'.TH {title} 1 "" "pylink {__version__}"\n'
        f".SH NAME\n{_text(name)} \\- {_text(about[0].lower() + about[1:])}\n"
    )


def _options(word_rows: Iterable[Word]) -> str:
    return "".join(
        f".TP\n.B {', '.join(map(_text, word.spellings))} {_text(word.argument)}".rstrip()
        + f"\n{_text(word.about)}\n"
        for word in word_rows
    )


def _text(text: str) -> str:
    """A text as roff prints it: dashes as they are typed, and no line that is a request."""
    text = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{text}" if text[:1] == "." else text
