"""Why a file is not pruned."""

from __future__ import annotations


class NotPruned(Exception):
    """A file that is left as it is; the text says why."""
