"""Writes answers to questions about an index as tables, JSON, CSV or plots."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

from pylink.diagnostics.stream import printable, show
from pylink.files.atomic import write_whole
from pylink.fleet.questions import FIRST, LAST
from pylink.packages.extras import need
from pylink.terminal.tables import TextTable, csv_text, json_text, print_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.fleet.database import Answer, Database
    from pylink.fleet.questions import Question

# Default number of rows of a table, and limit of bars in a plot.
DEFAULT_ROWS = 20
MOST_BARS = 20
LABEL_SIZE = 48  # characters of the longest label of a bar
# By unit of a question: the name of this unit in `plots`, which scales its values.
UNITS = {"bytes": "byte"}


def as_json(answer: Answer) -> str:
    """Return the answer as JSON, an object per row; ValueError if two columns have one name."""
    twice = [name for name, count in Counter(answer.columns).items() if count > 1]
    if twice:
        raise ValueError(f"two columns are called {twice[0]}: give each a name with AS")
    rows = [dict(zip(answer.columns, map(_plain_value, row), strict=True)) for row in answer.rows]
    return json_text(rows)


def as_csv(answer: Answer) -> str:
    """Return the answer as CSV: a line of column names, and a line per row."""
    return csv_text([answer.columns, *(map(_plain_value, row) for row in answer.rows)])


def answer_question(
    database: Database, question: Question, form: str, top: int, plot: str | None
) -> None:
    """Ask a question, whose tables must exist, and show the answer as `_show_answer` does.

    `plot` is a file to draw bars in, None for no plot.
    """
    database.protect()
    answer = database.ask(question.query)
    bars = [] if plot is None else _bars(question, answer)
    _show_answer(question.about, answer, form, top)
    if plot is not None:
        _write_plot(plot, question, answer, bars)


def _show_answer(title: str, answer: Answer, form: str, top: int) -> None:
    """Print the answer in the form "json" or "csv", else as a table of `top` rows."""
    if form in ("json", "csv"):
        show(as_json(answer) if form == "json" else as_csv(answer))
        return
    rows = [
        ["" if cell is None else str(_plain_value(cell)) for cell in row]
        for row in answer.rows[:top]
    ]
    if len(answer.rows) > top:
        title += f"; {len(answer.rows) - top} more rows with --top"
    numbers = [
        index
        for index in range(len(answer.columns))
        if any(isinstance(_plain_value(row[index]), int | float) for row in answer.rows)
    ]
    label_count = numbers[0] if numbers else len(answer.columns)
    table = TextTable(title, [name.replace("_", " ") for name in answer.columns], rows, label_count)
    print_tables([table])


def _plain_value(cell: Any) -> Any:
    """Return a cell as JSON and CSV can have it: None, a number or a text.

    Bytes become hexadecimal; NaN, infinite numbers and values of other types become text.
    """
    if isinstance(cell, Decimal):
        return int(cell) if cell == int(cell) else float(cell)
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    if isinstance(cell, bytes | bytearray):
        return cell.hex()
    return cell if cell is None or isinstance(cell, int | float | str) else str(cell)


def check_plot(path: str, question: Question) -> None:
    """Check a plot: ValueError if it cannot be drawn, MissingPackage without matplotlib."""
    need("matplotlib")
    if not question.value:
        raise ValueError("this answer has nothing to draw")
    if _plot_format(path) not in ("svg", "png", "pdf"):
        raise ValueError(f"{printable(path)}: a plot is .svg, .png or .pdf")


def _plot_format(path: str) -> str:
    """Return the suffix of a plot's file, in lower case."""
    return path.rpartition(".")[2].lower()


def _write_plot(
    path: str, question: Question, answer: Answer, bars: Sequence[tuple[str, float]]
) -> None:
    """Write the bars of the largest values to a file, in the format of its suffix."""
    from pylink.report.view import plots

    title = answer.columns[_column(answer, question.value)].replace("_", " ")
    unit = UNITS.get(question.unit, "count")
    axis = title if question.unit in title or unit != "count" else f"{title}, {question.unit}"
    figure = plots.ranking(bars, question.about, axis, unit)
    write_whole(path, plots.image(figure, _plot_format(path)))


def _column(answer: Answer, name: str) -> int:
    """Return the index of the column `name`, which may be FIRST or LAST."""
    places = {FIRST: 0, LAST: len(answer.columns) - 1}
    return places[name] if name in places else answer.columns.index(name)


def _bars(question: Question, answer: Answer) -> Sequence[tuple[str, float]]:
    """Return the bars of a plot: labels and sums of their values, the MOST_BARS largest first.

    Sums are ordered without their sign. ValueError if there are rows, but none has a number.
    """
    label, value = (_column(answer, name) for name in (question.label, question.value))
    sums: dict[str, float] = {}
    for row in answer.rows:
        number = _plain_value(row[value])
        if isinstance(number, int | float):
            name = printable(str(row[label]))
            name = name if len(name) <= LABEL_SIZE else f"…{name[1 - LABEL_SIZE :]}"
            sums[name] = sums.get(name, 0) + number
    if answer.rows and not sums:
        raise ValueError(f"column {answer.columns[value]} has no numbers to draw")
    return sorted(sums.items(), key=lambda bar: (-abs(bar[1]), bar[0]))[:MOST_BARS]
