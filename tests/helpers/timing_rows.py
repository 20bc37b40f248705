"""Reads the table of `-time`."""

from __future__ import annotations

from collections.abc import Sequence

from pylink.timing import HEADER


class Row:
    """One row of the table; `metric` is in milliseconds."""

    __slots__ = ("arch", "inputs", "metric", "output", "phase", "source", "tool")

    def __init__(self, names: Sequence[str], arch: str, tool: str, metric: float) -> None:
        self.source, self.phase, self.inputs, self.output = names
        self.arch = arch
        self.tool = tool
        self.metric = metric


def read_rows(table: str) -> list[Row]:
    """Return the rows of a table, whose header may be missing.

    Names in it are not quoted, so a row with ` , ` in a name can be read in several ways. Such a
    row, a damaged one and an incomplete last line are ValueErrors that name the line.
    """
    rows = []
    lines = table.removeprefix(HEADER).split("\n")
    first = 2 if table.startswith(HEADER) else 1
    if lines.pop():
        raise ValueError(f"line {first + len(lines)}: cut off")
    for number, line in enumerate(lines, first):
        head, *tail = line.rsplit(" , ", 4)
        names = head.split(" , ")
        if len(tail) != 4 or len(names) < 4 or tail[3] != "ms" or not _is_metric(tail[2]):
            raise ValueError(f"line {number}: not a row of this table: {line!r}")
        if len(names) > 4:
            raise ValueError(f"line {number}: ambiguous, a name holds a separator: {line!r}")
        rows.append(Row(names, tail[0], tail[1], float(tail[2])))
    return rows


def _is_metric(text: str) -> bool:
    """Return whether a text is a number with four decimals."""
    integer, point, fraction = text.removeprefix("-").partition(".")
    return (integer + fraction).isdecimal() and bool(integer and point) and len(fraction) == 4
