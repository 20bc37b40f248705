"""Prints tables, by rich on a terminal if installed; returns rows as text, CSV and JSON."""

from __future__ import annotations

import importlib
import sys

from pylink.diagnostics.stream import is_terminal, printable, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


class TextTable:
    """Rows of text under a title; the columns after the first `text_columns` are numbers.

    Numbers are aligned to the right.
    """

    __slots__ = ("columns", "rows", "text_columns", "title")

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        text_columns: int = 1,
    ) -> None:
        self.title = title
        self.columns = columns
        self.rows = rows
        self.text_columns = text_columns

    def printable(self) -> list[tuple[str, ...]]:
        """Return the rows with control characters escaped: names come from inputs."""
        return [tuple(map(printable, row)) for row in self.rows]


def align_columns(rows: Sequence[Sequence[str]], right: str = "", gap: str = "  ") -> list[str]:
    """Return one line per row with aligned columns, `gap` between them.

    `right` has a character for each column, `r` if it is aligned to the right. It may be shorter.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(
            cell.rjust(width) if right[number : number + 1] == "r" else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def as_text(tables: Sequence[TextTable]) -> str:
    """Return the tables in plain text."""
    lines = []
    for table in tables:
        right = " " * table.text_columns + "r" * (len(table.columns) - table.text_columns)
        rows = align_columns([table.columns, *table.printable()], right)
        lines += [table.title, *(f"  {row}".rstrip() for row in rows), ""]
    return "\n".join(lines) + "\n"


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return the rows as comma separated values; the first row has the names of the columns."""
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def json_text(document: object) -> str:
    """Return a document as JSON."""
    import json

    return json.dumps(document, indent=1) + "\n"


def print_tables(tables: Sequence[TextTable]) -> None:
    """Print tables with rich, on a terminal if it is installed, else as plain text.

    OSError if not all was written.
    """
    try:
        rich = importlib.import_module("rich.console") if is_terminal(sys.stdout) else None
    except ImportError:
        rich = None
    if rich is None:
        show(as_text(tables))
    else:
        print_rich(rich.Console(), tables)


def print_rich(console: Any, tables: Sequence[TextTable]) -> None:
    """Print tables to a console of rich."""
    rich_table_class = importlib.import_module("rich.table").Table
    for table in tables:
        rich_table = rich_table_class(title=table.title, title_justify="left")
        for number, name in enumerate(table.columns):
            justify = "left" if number < table.text_columns else "right"
            rich_table.add_column(name, justify=justify, overflow="fold")
        for row in table.printable():
            rich_table.add_row(*row)
        console.print(rich_table, markup=False)
