"""Compares Python files with the rows of a bundle of their compiled code."""

from collections.abc import Iterable

from pylink.startup.bundle import LaterRow, Row

def are_unchanged(files: Iterable[Row | LaterRow], directory: int) -> bool:
    """Return whether each file below `directory` has the size (bytes) and time (ns) in its row.

    Paths are relative to the directory descriptor `directory`. False if a file is missing. Rows
    without a path are ignored.
    """
