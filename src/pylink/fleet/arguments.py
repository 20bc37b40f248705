"""Options and exit statuses that the commands over an index share."""

from __future__ import annotations

from pylink.fleet.engine import EngineError, Local
from pylink.fleet.index import BrokenIndex
from pylink.fleet.locks import BusyIndex
from pylink.fleet.updates import NothingToRead
from pylink.terminal import running
from pylink.terminal.arguments import natural_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from pylink.fleet.engine import Engine
    from pylink.fleet.questions import Question

WIDTH = 78  # columns, as argparse on a terminal of 80

# Errors that end a command with a message.
EXPECTED = (BrokenIndex, BusyIndex, EngineError, NothingToRead, OverflowError, ValueError)


def make_parser(program: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """Return a parser whose help prints the lines of `epilog` as they are."""
    from argparse import ArgumentParser, RawDescriptionHelpFormatter

    return ArgumentParser(
        prog=program,
        description=description,
        epilog=epilog,
        formatter_class=RawDescriptionHelpFormatter,
    )


def list_questions(questions: Mapping[str, Question]) -> str:
    """Return the names and titles of questions, each on lines of its own, as help shows them."""
    from textwrap import fill

    column = max(map(len, questions)) + 4
    return "\n".join(
        fill(
            f"{question.about[0].upper()}{question.about[1:]}.",
            WIDTH,
            initial_indent=f"  {name}".ljust(column),
            subsequent_indent=" " * column,
        )
        for name, question in questions.items()
    )


def add_scheduler(options: argparse.ArgumentParser) -> None:
    """Add the option that selects a cluster."""
    options.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="work on the Dask cluster of this scheduler, whose workers see the same files",
    )


def add_forms(options: argparse.ArgumentParser, top: int) -> None:
    """Add the options for the form of an answer; `top` is the default number of rows."""
    form = options.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all rows as JSON")
    form.add_argument("--csv", action="store_true", help="all rows as CSV")
    options.add_argument(
        "--top",
        type=natural_number,
        default=top,
        metavar="N",
        help=f"rows to show (default: {top})",
    )
    options.add_argument("--plot", metavar="FILE", help="draw the answer: .svg, .png or .pdf")


def make_engine(scheduler: str | None, threads: int = 1) -> Engine:
    """Make the engine that a command line selects; `threads` is for tasks of this process."""
    if scheduler is None:
        return Local(threads)
    from pylink.fleet.cluster import Dask  # its threads and queues cost time

    return Dask(scheduler)


def form_of(arguments: argparse.Namespace) -> str:
    """Return the form of an answer that a command line selects: json, csv or text."""
    return "json" if arguments.json else "csv" if arguments.csv else "text"


def run(
    options: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    work: Callable[[argparse.Namespace], int],
) -> int:
    """Run a command over an index; returns its exit status."""
    return running.run(options, argv, work, EXPECTED)
