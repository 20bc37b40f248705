"""Diagnostics as HTML for notebooks."""

from __future__ import annotations

from collections import Counter
from html import escape

from pylink.diagnostics.plain import plain_text
from pylink.diagnostics.severity import NAMES
from pylink.diagnostics.sourcefiles import SourceFiles
from pylink.diagnostics.stream import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics.record import Diagnostic

# Limits: the number of records that are shown, and of characters of each. Further records are only
# counted, and a longer text is cut.
MAX_RECORDS, MAX_CHARACTERS = 10, 2000


def diagnostics_html(records: Sequence[Diagnostic], sources: SourceFiles | None = None) -> str:
    """Return HTML of the first records with their details, and the number of records by severity.

    `sources` has the source files that may be shown (default: those below the working directory).
    """
    if not records:
        return "<p>no diagnostics</p>"
    sources = SourceFiles() if sources is None else sources
    counts = Counter(NAMES[record.level] for record in records)
    # `count_text` is not used: this package must not import `pylink.terminal`, a higher layer.
    total = ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items())
    parts = [f"<p>{escape(total)}</p>"]
    for record in records[:MAX_RECORDS]:
        text = plain_text(record, sources)
        text = text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 3]}..."
        lines = "\n".join(printable(line) for line in text.splitlines())
        parts.append(f"<pre>{escape(NAMES[record.level])}: {escape(lines)}</pre>")
    if len(records) > MAX_RECORDS:
        parts.append(
            f"<p>{len(records) - MAX_RECORDS} more; <code>.diagnostics</code> has all.</p>"
        )
    return "".join(parts)
