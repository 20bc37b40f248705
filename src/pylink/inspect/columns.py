"""Text in columns, 100 wide if names allow: names come last and are never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pylink.terminal.tables import align_columns

WIDTH = 100  # characters of a line


def format_table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: str = "") -> str:
    """Format rows under their heads; empty without rows.

    `right` has a letter for each column, r if it is aligned to the right.
    """
    lines = align_columns([heads, *rows], right) if rows else ()
    return "".join(f"  {line}".rstrip() + "\n" for line in lines)


def format_pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Format names and texts, one per line; long texts continue under their beginning."""
    width = max((len(name) for name, _ in rows), default=0)
    lines = []
    for name, text in rows:
        head = f"  {name:{width}}  "
        wrapped = textwrap.wrap(
            text, WIDTH - len(head), break_long_words=False, break_on_hyphens=False
        )
        lines += [head + (wrapped[0] if wrapped else "")]
        lines += [" " * len(head) + line for line in wrapped[1:]]
    return "".join(line.rstrip() + "\n" for line in lines)


def add_title(title: str, body: str) -> str:
    """Put a title above a text; the result is empty for an empty text."""
    return f"{title}\n{body}" if body else ""
