"""`pylink bench`: a link of the user's, done by every linker that is installed, in turn."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import tempfile
import threading

from pylink.bench import compare, show
from pylink.bench.commandline import BadLink, Link
from pylink.bench.contenders import Contender, contenders
from pylink.bench.contest import Contest, Plan
from pylink.bench.machine import facts, load
from pylink.bench.page import busy, compared_page, page, summary, unequal
from pylink.bench.processes import Launcher
from pylink.bench.results import MalformedResults, Results, from_csv, to_csv
from pylink.diagnostics.stream import printable
from pylink.diagnostics.stream import show as show_text
from pylink.files.atomic import write_whole
from pylink.files.reading import is_text, read_incoming
from pylink.options.parse import VARIABLE
from pylink.packages.sites import add_sites
from pylink.report.view.numbers import text
from pylink.serve.server import VARIABLE as SERVER
from pylink.terminal.progress import Progress
from pylink.terminal.running import refuse, run
from pylink.terminal.tables import Table, print_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PLAN = Plan()

# What would make pylink on the command line do another link than the others, or elsewhere.
VARIABLES = (VARIABLE, SERVER)


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="pylink bench",
        usage="pylink bench [options] -- <link>\n       "
        "pylink bench --compare BEFORE.csv AFTER.csv [--html OUT]",
        description="Measure a link beside other linkers: nvlink, nvJitLink, pylink on the command "
        "line and called from Python, and a plain copy of the inputs, in turn, round by round. The "
        "link is a command line of nvlink or pylink, with or without the program in front.",
        epilog="Outputs are compared, and written to a folder that is removed at the end. Exit "
        "status: 0, 1 when something cannot be measured or outputs differ, 2 for bad arguments.",
        allow_abbrev=False,
    )
    options.add_argument(
        "--rounds",
        type=_positive,
        default=PLAN.rounds,
        metavar="N",
        help="rounds to run (default: %(default)s)",
    )
    options.add_argument(
        "--rest",
        type=_seconds,
        default=PLAN.rest,
        metavar="SECONDS",
        help="also measure runs after a pause of so many seconds",
    )
    options.add_argument(
        "--patience",
        type=_seconds,
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
        help="where outputs are written (default: beside the output that the link names)",
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


def _positive(word: str) -> int:
    number = int(word)
    if number < 1:
        raise ValueError(word)
    return number


def _seconds(word: str) -> float:
    number = float(word)
    if not 0 <= number < float("inf"):
        raise ValueError(word)
    return number


def main(words: Sequence[str]) -> int:
    """Run the command; see the end of its help for the status."""
    return run(parser(), words, _main, (MalformedResults,))


def _main(options: argparse.Namespace) -> int:
    add_sites()
    try:
        with _Stops():
            return _compare(options) if options.compare else _measure(options)
    except BadLink as error:
        for line in str(error).splitlines():  # one for each contender
            refuse("pylink bench", line)
        return 1


class _Stops:
    """While this is open, signals that end the process are exceptions: the folder goes with them.

    Further ones are ignored then, so that nothing is left half removed. Those that somebody else
    handles or ignores stay as they are.
    """

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self._before: dict[int, object] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in self.NUMBERS:
            handler = signal.getsignal(number)
            if handler in (signal.SIG_DFL, signal.default_int_handler):
                self._before[number] = handler
                signal.signal(number, self._stop)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type] # what was there

    def _stop(self, number: int, _: object) -> None:
        for each in self._before:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)


def _measure(options: argparse.Namespace) -> int:
    words = options.link[1:] if options.link[:1] == ["--"] else options.link
    if not words:
        raise BadLink("no link given: pylink bench -- nvlink -arch=sm_90 a.cubin b.cubin -o out")
    if options.html:
        import jinja2  # noqa: F401 -- not after minutes of measuring
    results = Results()
    with tempfile.TemporaryDirectory(prefix=".pylink-bench-", dir=_place(options, words)) as folder:
        link = Link(words, folder)
        plan = Plan(options.rounds, options.rest, options.patience, not options.no_growth)
        given = _facts_of(options, link, words)
        environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        launcher = Launcher(environment)
        taking: list[Contender] = []
        try:
            found = contenders(link, launcher, options.nvlink, options.pylink)
            taking = _taking(found, options)
            steps = len(taking) * (plan.rounds * (4 if plan.with_parts else 1) + 1)
            with Progress("measuring", steps) as progress:
                contest = Contest(link, taking, plan, lambda words: progress.advance(words=words))
                results = contest.run()
        finally:
            for one in taking:
                one.close()
            launcher.close()
    results.facts = given | results.facts
    if not results.runs:
        reasons = "\n".join(f"{name}: {words}" for name, words in results.failures.items())
        raise BadLink(f"nothing could link this\n{reasons}")
    _write(results, options)
    return 1 if unequal(results) else 0


def _place(options: argparse.Namespace, words: Sequence[str]) -> str:
    """The folder in which the measurement gets one of its own."""
    if options.folder:
        return str(options.folder)
    named = Link(words, "").output
    return os.path.dirname(named) or "."


def _taking(found: Sequence[Contender], options: argparse.Namespace) -> list[Contender]:
    """Those that are not to be left out; BadLink for a name that there is not."""
    names = [one.name for one in found]
    unknown = [name for name in options.without if name not in names]
    if unknown:
        raise BadLink(f"there is no {unknown[0]!r} to leave out, but {', '.join(names)}")
    return [one for one in found if one.name not in options.without]


def _facts_of(options: argparse.Namespace, link: Link, words: Sequence[str]) -> dict[str, str]:
    """What the results are of."""
    count = len(link.inputs) + len(link.libraries)
    size = text(link.bytes_of(link.size), "byte")
    found = {"label": options.label} if options.label else {}
    found |= {
        "link": f"{count} input{'s' * (count != 1)} for {link.arch}, {size}",
        compare.DIGEST: link.digest(),
        "command": shlex.join(words) if len(words) < 40 else f"{shlex.join(words[:40])} ...",
        "rounds": str(options.rounds),
    }
    if options.rest:
        found["rest"] = f"{options.rest:g} s"
    return found | {"load": f"{load():.2f}"} | facts(link.folder)


def _write(results: Results, options: argparse.Namespace) -> None:
    if options.csv:
        write_whole(options.csv, to_csv(results).encode(errors="surrogateescape"))
    if options.html:
        write_whole(options.html, page(results).encode(errors="surrogateescape"))
    _print(show.tables(results), [*busy(results), *unequal(results), *summary(results)])
    show_text("".join(f"{printable(line)}\n" for line in show.footnotes(results)))


def _compare(options: argparse.Namespace) -> int:
    if options.link:
        raise BadLink("--compare takes two files of --csv, and links nothing")
    names = options.compare
    before, after = (
        from_csv(read_incoming(name, wanted=is_text).decode(errors="replace"), name)
        for name in names
    )
    control, changes = compare.compare(before, after)
    if not changes:
        raise MalformedResults("the two results have no contender in common")
    warnings = compare.warnings(before, after, (names[0], names[1]))
    others = compare.other_facts(before, after)
    title = f"{names[0]} (before) and {names[1]} (after)"
    if control:
        title += f"; the control is {control}"
    if options.html:
        made = compared_page(
            before, after, names, title, changes=changes, warnings=warnings, others=others
        )
        write_whole(options.html, made.encode(errors="surrogateescape"))
    rows = show.compared_rows(changes)
    tables = [Table(title, show.COMPARED_COLUMNS, rows)]
    if others:
        tables.append(Table("what else differs", ["", "before", "after"], others, 3))
    _print(tables, warnings)
    return 0


def _print(tables: Sequence[Table], lines: Sequence[str]) -> None:
    print_tables(tables)
    show_text("".join(f"{printable(line)}\n" for line in lines))
