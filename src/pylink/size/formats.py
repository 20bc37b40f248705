"""Formats sizes as JSON, CSV and Markdown, with names of inputs escaped."""

from __future__ import annotations

from pylink.diagnostics.stream import printable
from pylink.size.levels import EVERYTHING, Row, Selection, counts_functions, rows
from pylink.size.model import LEVELS
from pylink.size.reductions import reductions
from pylink.terminal.numbers import bytes_text
from pylink.terminal.tables import csv_text, json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.size.model import Sizes
    from pylink.size.whatif import WhatIf

VERSION = 1  # of the JSON documents
# First characters of a cell that a spreadsheet would evaluate as a formula.
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
# Signs that Markdown may interpret, each with a backslash before it.
_MARKDOWN_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>()#+-!|~&"})


def as_json(
    sizes: Sizes,
    by: Sequence[str],
    selection: Selection = EVERYTHING,
    without: WhatIf | None = None,
) -> str:
    """Return a JSON object: sums, files, reductions, unreadable files, a table for the levels `by`.

    An empty `by` means a table for each level. `selection` limits the tables alone. `without` adds
    the result of --what-if.
    """
    tables = [tuple(by)] if by else [(level,) for level in LEVELS]
    document = {
        "version": VERSION,
        "total": {
            "unpacked": sum(leaf.unpacked for leaf in sizes.leaves),
            "installed": sum(leaf.installed for leaf in sizes.leaves),
            "download": _download_or_none(sizes, sum(leaf.download or 0 for leaf in sizes.leaves)),
        },
        "files": [
            {
                "name": file.name,
                "archive": file.archive,
                "installed": file.installed,
                "download": file.download,
            }
            for file in sizes.files
        ],
        "could_go": [line.as_row() for line in reductions(sizes)],
        **({} if without is None else {"what_if": vars(without)}),
        "unreadable": [{"name": name, "reason": reason} for name, reason in sizes.unreadable],
        "tables": [
            {
                "by": list(levels),
                "rows": [
                    {
                        **dict(zip(levels, row.keys, strict=True)),
                        "count": row.count,
                        "unpacked": row.unpacked,
                        "installed": row.installed,
                        "download": _download_or_none(sizes, row.download),
                        "estimated": row.estimated,
                    }
                    for row in rows(sizes, levels, selection)
                ],
            }
            for levels in tables
        ],
    }
    return json_text(document)


def _download_or_none(sizes: Sizes, size: int) -> int | None:
    """Return bytes of downloads, or None if no file is in an archive."""
    return size if sizes.downloads else None


def csv_table(sizes: Sizes, by: Sequence[str], selection: Selection = EVERYTHING) -> str:
    """Return a line with the names of columns, then a line for each row of the levels."""
    head = [*by, "count", "unpacked", "installed", "download", "estimated"]
    body = [
        [
            *map(csv_cell, row.keys),
            row.count,
            row.unpacked,
            row.installed,
            row.download if sizes.downloads else "",
            int(row.estimated),
        ]
        for row in rows(sizes, by, selection)
    ]
    return csv_text([head, *body])


def csv_cell(name: str) -> str:
    """Return a name on one line, after a ' if a spreadsheet would take it for a formula."""
    name = printable(name)
    return f"'{name}" if name.startswith(_FORMULA_SIGNS) else name


def markdown_cell(name: str) -> str:
    """Return a name on one line, with the signs of Markdown escaped."""
    return printable(name).translate(_MARKDOWN_ESCAPES)


def markdown_table(
    sizes: Sizes, by: Sequence[str], top: int, selection: Selection = EVERYTHING
) -> str:
    """Return the rows of the levels `by` as a table in Markdown, `top` of them (0: all)."""
    level_rows = rows(sizes, by, selection)
    of_functions = counts_functions(by, selection)
    columns = [*by, "functions" if of_functions else "entries"]
    columns += [*(["download"] if sizes.downloads else []), "installed", "unpacked"]
    lines = [
        f"| {' | '.join(columns)} |",
        "|" + "---|" * len(by) + "---:|" * (len(columns) - len(by)),
    ]
    for row in level_rows[:top] if top else level_rows:
        lines.append(f"| {' | '.join(_markdown_row(sizes, row, of_functions=of_functions))} |")
    return "\n".join(lines) + "\n"


def _markdown_row(sizes: Sizes, row: Row, *, of_functions: bool) -> list[str]:
    """Return the cells of a row; `of_functions` means a row of functions, not of entries."""
    cells = [*map(markdown_cell, row.keys), str(row.count)]
    if sizes.downloads:
        cells.append(bytes_text(row.download, estimated=of_functions and bool(row.functions)))
    return [*cells, bytes_text(row.installed, estimated=row.estimated), bytes_text(row.unpacked)]
