"""`pylink bench`: measures a link of the user with every installed linker in turn."""

from __future__ import annotations

import argparse
import signal
import threading

from pylink.bench import compare, formats
from pylink.bench.commandline import BadLink
from pylink.bench.contest import Plan
from pylink.bench.measuring import PLAN, measure_by_plan, read
from pylink.bench.page import busy_warnings, compared_page, difference_lines, page, summary
from pylink.bench.results import MalformedResults, Results, to_csv
from pylink.diagnostics.stream import printable
from pylink.diagnostics.stream import show as show_text
from pylink.files.atomic import write_whole
from pylink.packages.extras import need
from pylink.packages.sites import add_sites
from pylink.terminal.arguments import positive_number, seconds
from pylink.terminal.progress import Progress
from pylink.terminal.running import print_error, run
from pylink.terminal.tables import TextTable, print_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The exit status of a process that a signal ends is this plus the number of the signal.
SIGNAL_STATUS = 128


def parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    options = argparse.ArgumentParser(
        prog="pylink bench",
        usage="pylink bench [options] -- <link>\n       "
        "pylink bench --compare BEFORE.csv AFTER.csv [--html OUT]",
        description="Measure a link beside other linkers: nvlink, nvJitLink, pylink on the command "
        "line and called from Python, and a plain copy of the inputs, in turn, round by round. The "
        "link is a command line of nvlink or pylink, with or without the program in front.",
        epilog="Outputs are compared, and written to a directory that is removed at the end. Exit "
        "status: 0, 1 if something cannot be measured or outputs differ, 2 for bad arguments.",
        allow_abbrev=False,
    )
    options.add_argument(
        "--rounds",
        type=positive_number,
        default=PLAN.rounds,
        metavar="N",
        help="rounds to run (default: %(default)s)",
    )
    options.add_argument(
        "--rest",
        type=seconds,
        default=PLAN.rest,
        metavar="SECONDS",
        help="also measure runs after a pause of this many seconds",
    )
    options.add_argument(
        "--patience",
        type=seconds,
        default=PLAN.patience,
        metavar="SECONDS",
        help="stop measuring a linker after this long, once it ran four rounds "
        "(default: %(default)g)",
    )
    options.add_argument(
        "--no-growth", action="store_true", help="do not also link parts of the inputs"
    )
    options.add_argument(
        "--nvlink",
        action="append",
        default=[],
        metavar="PATH",
        help="measure this nvlink (default: that of the newest toolkit); may be repeated",
    )
    options.add_argument(
        "--pylink",
        action="append",
        default=[],
        metavar="PATH",
        help="measure this pylink on the command line; may be repeated",
    )
    options.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NAME",
        help="do not measure this linker, such as nvJitLink",
    )
    options.add_argument(
        "--folder",
        metavar="DIR",
        help="directory for outputs (default: that of the output that the link names)",
    )
    options.add_argument("--label", metavar="TEXT", help="a name for this machine or build")
    options.add_argument("--csv", metavar="OUT", help="write every run and the facts")
    options.add_argument("--html", metavar="OUT", help="write one self-contained page")
    options.add_argument(
        "--compare",
        nargs=2,
        metavar=("BEFORE", "AFTER"),
        help="show how two results of --csv differ",
    )
    options.add_argument("link", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return options


def main(argv: Sequence[str]) -> int:
    """Run the command; its help explains the exit status."""
    return run(parser(), argv, _main, (MalformedResults,))


def _main(options: argparse.Namespace) -> int:
    add_sites()
    try:
        with _SignalsAsExceptions():
            return _compare(options) if options.compare else _measure(options)
    except BadLink as error:
        for line in str(error).splitlines():  # one for each contender
            print_error("pylink bench", line)
        return 1


class _SignalsAsExceptions:
    """A context in which signals raise exceptions, so that the temporary directory is removed.

    The signals are those of NUMBERS. After the first one, further ones are ignored, so that the
    removal is not interrupted. Signals that are handled or ignored already are not changed. Outside
    of the main thread, no signal is.
    """

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self._old_handlers: dict[int, object] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in self.NUMBERS:
            handler = signal.getsignal(number)
            if handler in (signal.SIG_DFL, signal.default_int_handler):
                self._old_handlers[number] = handler
                signal.signal(number, self._stop)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # from getsignal

    def _stop(self, number: int, _: object) -> None:
        """Raise KeyboardInterrupt for SIGINT, or else SystemExit; ignore further signals."""
        for handled in self._old_handlers:
            signal.signal(handled, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(SIGNAL_STATUS + number)


def _measure(options: argparse.Namespace) -> int:
    """Measure the link of the arguments; return the exit status."""
    argv = options.link[1:] if options.link[:1] == ["--"] else options.link
    if not argv:
        raise BadLink("no link given: pylink bench -- nvlink -arch=sm_90 a.cubin b.cubin -o out")
    if options.html:
        need("jinja2", "a page")  # a missing package shows now, not after minutes
    with Progress("measuring") as progress:
        results = measure_by_plan(
            argv,
            plan=Plan(options.rounds, options.rest, options.patience, not options.no_growth),
            nvlinks=options.nvlink,
            pylinks=options.pylink,
            without=options.without,
            folder=options.folder,
            label=options.label,
            progress=progress,
        )
    _show_results(results, options)
    return 1 if difference_lines(results) else 0


def _show_results(results: Results, options: argparse.Namespace) -> None:
    """Write the files that the options name, and print the results."""
    if options.csv:
        write_whole(options.csv, to_csv(results).encode(errors="surrogateescape"))
    if options.html:
        write_whole(options.html, page(results).encode(errors="surrogateescape"))
    _print(
        formats.tables(results),
        [*busy_warnings(results), *difference_lines(results), *summary(results)],
    )
    show_text("".join(f"{printable(line)}\n" for line in formats.footnotes(results)))


def _compare(options: argparse.Namespace) -> int:
    """Compare two files of --csv; return the exit status."""
    if options.link:
        raise BadLink("--compare takes two files of --csv, and links nothing")
    names = options.compare
    before, after = map(read, names)
    control, changes = compare.compare(before, after)
    if not changes:
        raise MalformedResults("the two results have no contender in common")
    warnings = compare.warnings(before, after, (names[0], names[1]))
    others = compare.other_facts(before, after)
    title = f"{names[0]} (before) and {names[1]} (after)"
    if control:
        title += f"; the control is {control}"
    if options.html:
        page_bytes = compared_page(
            before, after, names, title, changes=changes, warnings=warnings, others=others
        )
        write_whole(options.html, page_bytes.encode(errors="surrogateescape"))
    rows = formats.compared_rows(changes)
    tables = [TextTable(title, formats.COMPARED_COLUMNS, rows)]
    if others:
        tables.append(TextTable("what else differs", ["", "before", "after"], others, 3))
    _print(tables, warnings)
    return 0


def _print(tables: Sequence[TextTable], lines: Sequence[str]) -> None:
    print_tables(tables)
    show_text("".join(f"{printable(line)}\n" for line in lines))
