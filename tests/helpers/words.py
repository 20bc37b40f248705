"""Messages as nvlink has them: without what pylink adds to nvlink's words."""

from __future__ import annotations

import re

# Where a fault is, behind messages of nvlink's that name no file.
PLACE = re.compile(
    r" \([^()\n]*(?:: |\+0x)[^()\n]*\)$|(?<=to non-accelerated) \([^()\n]*\)$", re.MULTILINE
)
NOTE = re.compile(r"^\w+ note    : .*\n", re.MULTILINE)


def without_notes(text: str) -> str:
    """All but the notes, which nvlink has none of."""
    return NOTE.sub("", text)


def nvlink_words(text: str) -> str:
    """The lines that nvlink would print: no notes of a way out, no places behind messages."""
    return PLACE.sub("", without_notes(text))
