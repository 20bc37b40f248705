"""Runs commands other than a link: parses arguments, reports errors, returns the exit status."""

from __future__ import annotations

import os

from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.stream import printable, write
from pylink.packages.extras import reason_of_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import TextIO


class WrongArguments(Exception):
    """Arguments that do not go together; the text says why."""


def run(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    work: Callable[[argparse.Namespace], int],
    expected: tuple[type[Exception], ...] = (),
    *,
    error_status: int = 1,
    intermixed: bool = False,
) -> int:
    """Run `work` with the parsed arguments; return its exit status, or 2 for wrong arguments.

    Those are arguments that the parser refuses, and those for which `work` raises `WrongArguments`.
    After a file error, a missing package or one of the `expected` errors, the reason is written to
    standard error, and the status is `error_status`. With `intermixed`, options may stand between
    the arguments of one list. With `argv` None, the arguments are those of the process.
    """
    try:
        arguments = (parser.parse_intermixed_args if intermixed else parser.parse_args)(argv)
        try:
            return work(arguments)
        except WrongArguments as error:
            parser.error(str(error))  # prints the usage, too
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except BrokenPipeError:
        raise
    except expected as error:
        reason = str(error)
    except ImportError as error:
        reason = reason_of_import(error)
    except OSError as error:
        name = error.filename
        file = os.fsdecode(name) if isinstance(name, bytes) else name
        reason = reason_of(error) if name is None else f"{file}: {reason_of(error)}"
    print_error(parser.prog, reason)
    return error_status


def print_error(program: str, reason: str, stream: TextIO | None = None) -> None:
    """Write, in one line, why the exit status of a command is not 0.

    `stream` is by default the present standard error.
    """
    write(stream, f"{program}: {printable(reason)}\n")


def print_note(program: str, text: str) -> None:
    """Write to standard error, in one line, what users should know though the command succeeds."""
    write(None, f"{program}: note: {printable(text)}\n")
