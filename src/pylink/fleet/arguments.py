"""What the commands over an index share: options, and how they end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pylink.diagnostics.stream import printable, write
from pylink.errors import reason_of
from pylink.fleet.engine import EngineError
from pylink.fleet.index import BrokenIndex
from pylink.fleet.packages import MissingPackage
from pylink.fleet.targets import BadDescription
from pylink.fleet.update import NothingToRead

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

EXPECTED = (
    BadDescription,
    BrokenIndex,
    EngineError,
    MissingPackage,
    NothingToRead,
    OverflowError,
    ValueError,
)


def add_scheduler(options: argparse.ArgumentParser) -> None:
    options.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="work on the Dask cluster of this scheduler, whose workers see the same files",
    )


def add_forms(options: argparse.ArgumentParser, top: int) -> None:
    form = options.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all rows as JSON")
    form.add_argument("--csv", action="store_true", help="all rows as CSV")
    options.add_argument(
        "--top", type=int, default=top, metavar="N", help=f"rows of the table, {top} unless told"
    )
    options.add_argument("--plot", metavar="FILE", help="draw the answer: .svg, .png or .pdf")


def form_of(arguments: argparse.Namespace) -> str:
    return "json" if arguments.json else "csv" if arguments.csv else "text"


def run(
    options: argparse.ArgumentParser,
    words: Sequence[str] | None,
    work: Callable[[argparse.Namespace], int],
) -> int:
    """The status of a command: 2 for words that it does not know, 1 after a reason is given."""
    try:
        arguments = options.parse_args(words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    try:
        return work(arguments)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{printable(str(error.filename))}: " if error.filename else ""
        write(None, f"{options.prog}: {where}{printable(reason_of(error))}\n")
    except EXPECTED as error:
        write(None, f"{options.prog}: {printable(str(error))}\n")
    return 1


def progress(what: str) -> Callable[[int, int], None] | None:
    """A line on a terminal that says how much is done."""
    if not sys.stderr.isatty():
        return None

    def tell(done: int, total: int) -> None:
        end = "\n" if done >= total else ""
        sys.stderr.write(f"\r{what}: {100 * done // max(1, total)} %{end}")
        sys.stderr.flush()

    return tell
