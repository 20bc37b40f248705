"""Indexes of planted trees, brought up to date in this process."""

from __future__ import annotations

from pathlib import Path

from pylink.fleet.engine import Local
from pylink.fleet.index import Index
from pylink.fleet.update import Update, update


def run(index: Index, *roots: Path, names: list[bytes] | None = None) -> Update:
    """Bring an index up to date, with these folders, or from a list of changed files."""
    return update(index, [bytes(root) for root in roots], Local(), names=names)


def made_index(folder: Path, tree: Path) -> Index:
    """A new index of a tree."""
    index = Index.open_or_make(folder)
    run(index, tree)
    return index
