"""Removes from messages what pylink adds to nvlink's."""

from __future__ import annotations

import re

# The place of an error, after messages of nvlink that do not name a file.
PLACE = re.compile(
    r" \([^()\n]*(?:: |\+0x)[^()\n]*\)$|(?<=to non-accelerated) \([^()\n]*\)$", re.MULTILINE
)
NOTE = re.compile(r"^\w+ note    : .*\n", re.MULTILINE)


def without_notes(text: str) -> str:
    """Return the messages without notes, which nvlink does not have."""
    return NOTE.sub("", text)


def nvlink_words(text: str) -> str:
    """Return messages that nvlink would print: without notes, and without places after messages."""
    return PLACE.sub("", without_notes(text))
