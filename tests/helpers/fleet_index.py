"""Updates indexes of trees in this process."""

from __future__ import annotations

from pathlib import Path

from pylink.fleet.columns import GONE
from pylink.fleet.engine import Local
from pylink.fleet.index import Index
from pylink.fleet.state import COLUMNS
from pylink.fleet.updates import Update, update
from pylink.fleet.walk import Stamp


def run(index: Index, *roots: Path, names: list[bytes] | None = None) -> Update:
    """Update an index for these folders, or from a list of changed files."""
    return update(index, [bytes(root) for root in roots], Local(), names=names)


def made_index(folder: Path, tree: Path) -> Index:
    """Make an index of a tree."""
    index = Index.open_or_make(folder)
    run(index, tree)
    return index


def read_state(index: Index) -> dict[tuple[bytes, bytes], Stamp]:
    """Return, by root and path of the files of the last run, size and times that the index has."""
    state: dict[tuple[bytes, bytes], Stamp] = {}
    for fragment in index.fragments:
        table = index.read_files(fragment, COLUMNS)
        rows = zip(*(table[name].to_pylist() for name in COLUMNS), strict=True)
        for root, path, size, mtime, ctime, inode, kind in rows:
            state[root, path] = Stamp(size, mtime, ctime, inode)
            if kind == GONE:
                del state[root, path]
    return state
