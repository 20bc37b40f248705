"""What a diagnostic means, for `--explain`: what docs/diagnostics.md has on it, as plain text."""

from __future__ import annotations

from textwrap import fill

from pylink.diagnostics.help import paragraph
from pylink.diagnostics.kinds import KINDS
from pylink.diagnostics.severity import DISCRETIONARY, NAMES

WIDTH = 80


def explanation(kind: str) -> str:
    """Number, name, severity and message of a kind, and the paragraph on it."""
    number, severity, template = KINDS[kind]
    fixed = "; no option changes that" if severity > DISCRETIONARY else ""
    text = fill(paragraph(kind), WIDTH, break_on_hyphens=False, break_long_words=False)
    return f"{number} {kind}: {NAMES[severity]}{fixed}\n\n    {template}\n\n{text}\n"
