"""The error for files that cannot be pruned."""

from __future__ import annotations


class NotPruned(Exception):
    """A file that cannot be pruned and stays unchanged; the text is the reason."""
