"""Tables that commands print: text in columns, through rich on a terminal that has it."""

from __future__ import annotations

import importlib
import sys

from pylink.diagnostics.stream import is_terminal, printable, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


class Table:
    """Rows of text under a title; columns after the first `left` are numbers."""

    __slots__ = ("columns", "left", "rows", "title")

    def __init__(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1
    ) -> None:
        self.title, self.columns, self.rows, self.left = title, columns, rows, left

    def printable(self) -> list[tuple[str, ...]]:
        """The rows, whose names come from inputs, for people."""
        return [tuple(map(printable, row)) for row in self.rows]


def aligned(rows: Sequence[Sequence[str]], right: str = "", gap: str = "  ") -> list[str]:
    """A line for each row, columns below each other; `right` has an r for each flushed right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        gap.join(
            cell.rjust(width) if right[place : place + 1] == "r" else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def as_text(tables: Sequence[Table]) -> str:
    """Tables in plain text."""
    lines = []
    for table in tables:
        right = " " * table.left + "r" * (len(table.columns) - table.left)
        rows = aligned([table.columns, *table.printable()], right)
        lines += [table.title, *(f"  {row}".rstrip() for row in rows), ""]
    return "\n".join(lines) + "\n"


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as comma separated values, the first of them the names of columns."""
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def print_tables(tables: Sequence[Table]) -> None:
    """Through rich on a terminal that has it, else as plain text; OSError as of `show`."""
    try:
        rich = importlib.import_module("rich.console") if is_terminal(sys.stdout) else None
    except ImportError:
        rich = None
    if rich is None:
        show(as_text(tables))
    else:
        print_rich(rich.Console(), tables)


def print_rich(console: Any, tables: Sequence[Table]) -> None:
    """Tables through a console of rich."""
    make = importlib.import_module("rich.table").Table
    for table in tables:
        shown = make(title=table.title, title_justify="left")
        for place, name in enumerate(table.columns):
            justify = "left" if place < table.left else "right"
            shown.add_column(name, justify=justify, overflow="fold")
        for row in table.printable():
            shown.add_row(*row)
        console.print(shown, markup=False)
