"""`pylink dedup ask`: questions about an index."""

from __future__ import annotations

import re

from pylink.diagnostics.stream import printable
from pylink.fleet import answers, arguments
from pylink.fleet.confirmation import confirm
from pylink.fleet.database import Database
from pylink.fleet.folding import FOLDING_TABLES, find_tasks, fold, list_rows
from pylink.fleet.index import Index
from pylink.fleet.questions import FIRST, LAST, QUESTIONS, Question
from pylink.terminal.progress import Progress
from pylink.terminal.running import print_error, print_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from pylink.fleet.engine import Engine

_PROGRAM = "pylink dedup ask"


def parser() -> argparse.ArgumentParser:
    options = arguments.make_parser(
        _PROGRAM,
        "Answer a question about an index of build trees.",
        f"Questions:\n{arguments.list_questions(QUESTIONS)}\n\n"
        "saving and blockers read files and link. Their results are kept in the index.",
    )
    options.add_argument("index", metavar="INDEX", help="output of `pylink dedup index`")
    options.add_argument(
        "question", nargs="?", choices=tuple(QUESTIONS), metavar="QUESTION", help="see below"
    )
    options.add_argument("--sql", metavar="QUERY", help="a question in DuckDB's SQL")
    options.add_argument(
        "--confirm",
        action="store_true",
        help="read all sections with equal digests again and compare their bytes",
    )
    arguments.add_forms(options, answers.DEFAULT_ROWS)
    arguments.add_scheduler(options)
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the status is 0 with an answer, 2 if argparse refuses arguments, else 1.

    It is also 1 if `--confirm` finds that sections with equal digests differ or are gone.
    """
    return arguments.run(parser(), argv, _main)


def _main(parsed: argparse.Namespace) -> int:
    if (parsed.question is None) == (parsed.sql is None):
        raise ValueError(f"ask one of {', '.join(QUESTIONS)}, or --sql QUERY")
    question = QUESTIONS[parsed.question] if parsed.sql is None else _sql_question(parsed.sql)
    if parsed.plot is not None:
        answers.check_plot(parsed.plot, question)
    index = Index(parsed.index)
    database = Database()
    database.add(index)
    if parsed.sql is not None:
        database.check_query(parsed.sql)
    runner = arguments.make_engine(parsed.scheduler)
    try:
        make_tables(database, index, question, runner)
        if parsed.confirm and not _report_confirmation(database, runner):
            return 1
    finally:
        runner.close()
    answers.answer_question(database, question, arguments.form_of(parsed), parsed.top, parsed.plot)
    return 0


def _sql_question(text: str) -> Question:
    """Return the question of an SQL query; a plot shows the last column by the first.

    Its `needs` are those of the tables functions, saving and blockers that the query names.
    """
    needed_tables = [
        name for name in ("functions", *FOLDING_TABLES) if re.search(rf"\b{name}\b", text, re.I)
    ]
    return Question("answer", FIRST, LAST, text, "", needs=tuple(needed_tables))


def make_tables(
    database: Database, index: Index, question: Question, runner: Engine, schema: str = "main"
) -> None:
    """Make the tables that a question needs in `schema`, beyond those that each schema has."""
    if "functions" in question.needs:
        database.add_functions(schema)
    tables = [name for name in FOLDING_TABLES if name in question.needs]
    if not tables:
        return
    tasks = find_tasks(database, schema)
    with Progress("linking") as progress:
        folded = fold(
            index, tasks, runner, every="blockers" in tables, progress=progress.set_amount
        )
    for name in tables:
        rows = [[*map(row.get, FOLDING_TABLES[name])] for row in list_rows(folded, tasks, name)]
        database.add_table(name, FOLDING_TABLES[name], rows, schema)


def _report_confirmation(database: Database, runner: Engine) -> bool:
    """Compare sections with equal digests and report to stderr; False if any differs or is gone."""
    result = confirm(database, runner)
    print_note(
        _PROGRAM,
        f"{result.compared} sections ({result.bytes} bytes) have the digest of an earlier one; "
        f"{result.compared - len(result.different)} are equal byte by byte",
    )
    for outcome, sections in (("differs", result.different), ("is gone", result.missing)):
        for place in sections[: answers.DEFAULT_ROWS]:
            title = f"{printable(place.path)}: object {place.entry}: section {place.number}"
            print_error(_PROGRAM, f"{title} {outcome}")
    return not (result.different or result.missing)
