"""Text in columns, 100 wide where names allow: names come last and are never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pylink.terminal.tables import aligned

WIDTH = 100


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: str = "") -> str:
    """Rows under their heads; `right` has an r for each column that is flushed right."""
    lines = aligned([heads, *rows], right) if rows else ()
    return "".join(f"  {line}".rstrip() + "\n" for line in lines)


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """A name and its text to a line, long texts continued under their beginning."""
    width = max((len(name) for name, _ in rows), default=0)
    shown = []
    for name, text in rows:
        head = f"  {name:{width}}  "
        wrapped = textwrap.wrap(
            text, WIDTH - len(head), break_long_words=False, break_on_hyphens=False
        )
        shown += [head + (wrapped[0] if wrapped else "")]
        shown += [" " * len(head) + line for line in wrapped[1:]]
    return "".join(line.rstrip() + "\n" for line in shown)


def titled(title: str, body: str) -> str:
    """A part under its title; nothing when there is nothing to show."""
    return f"{title}\n{body}" if body else ""
