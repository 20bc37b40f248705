"""Diagnostics as a notebook shows them."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from pylink.diagnostics.plain import plain_text
from pylink.diagnostics.severity import NAMES
from pylink.diagnostics.sourcefiles import SourceFiles
from pylink.diagnostics.stream import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics.record import Diagnostic

# Records that are shown, and characters of each.
SHOWN, LONGEST = 10, 2000


def diagnostics_html(records: Sequence[Diagnostic], sources: SourceFiles | None = None) -> str:
    """The first records with what is known of each, and how many there are of each severity.

    `sources` says which source lines may be shown; without it those below the working directory.
    """
    if not records:
        return "<p>no diagnostics</p>"
    sources = SourceFiles() if sources is None else sources
    counts = Counter(NAMES[record.level] for record in records)
    total = ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items())
    parts = [f"<p>{escape(total)}</p>"]
    for record in records[:SHOWN]:
        text = plain_text(record, sources)
        text = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
        shown = "\n".join(printable(line) for line in text.splitlines())
        parts.append(f"<pre>{escape(NAMES[record.level])}: {escape(shown)}</pre>")
    if len(records) > SHOWN:
        parts.append(f"<p>{len(records) - SHOWN} more; <code>.diagnostics</code> has all.</p>")
    return "".join(parts)
