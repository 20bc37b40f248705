"""The command `pylink dedup compare`, which compares two builds by their indexes."""

from __future__ import annotations

from pylink.fleet import answers, arguments
from pylink.fleet.command_ask import make_tables
from pylink.fleet.database import Database
from pylink.fleet.index import Index
from pylink.fleet.questions import COMPARISONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

SCHEMAS = ("before", "after")


def parser() -> argparse.ArgumentParser:
    options = arguments.make_parser(
        "pylink dedup compare",
        "Show how one build differs from another, by their indexes.",
        f"What can be compared:\n{arguments.list_questions(COMPARISONS)}",
    )
    options.add_argument("before", metavar="BEFORE", help="index of the first build")
    options.add_argument("after", metavar="AFTER", help="index of the second build")
    options.add_argument(
        "what",
        nargs="?",
        choices=tuple(COMPARISONS),
        default="targets",
        metavar="WHAT",
        help="what to compare (default: targets); see below",
    )
    arguments.add_forms(options, answers.DEFAULT_ROWS)
    arguments.add_scheduler(options)
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the status is 0 with an answer, 2 if argparse refuses arguments, else 1."""
    return arguments.run(parser(), argv, _main)


def _main(parsed: argparse.Namespace) -> int:
    question = COMPARISONS[parsed.what]
    if parsed.plot is not None:
        answers.check_plot(parsed.plot, question)
    database = Database()
    runner = arguments.make_engine(parsed.scheduler)
    try:
        for schema, name in zip(SCHEMAS, (parsed.before, parsed.after), strict=True):
            index = Index(name)
            database.add(index, schema)
            make_tables(database, index, question, runner, schema)
    finally:
        runner.close()
    answers.answer_question(database, question, arguments.form_of(parsed), parsed.top, parsed.plot)
    return 0
