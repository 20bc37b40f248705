"""Bringing an index up to date with the trees that it is of: only what changed is read.

Where nothing changed, nothing is loaded of what reads and writes fragments.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylink.fleet.index import Index, Lock
from pylink.fleet.parts import Part, parts
from pylink.fleet.state import State
from pylink.fleet.targets import by_description
from pylink.fleet.walk import Stamp, below, look, walk, youngest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pylink.fleet.engine import Engine
    from pylink.fleet.walk import Found, Tree


class NothingToRead(Exception):
    """A folder to index cannot be entered; the text names it."""


@dataclass(frozen=True)
class Update:
    """What one run did: numbers of files, folders that it could not enter, with the reason, and how
    many names of a list of changes are in no folder of the index.
    """

    files: int
    read: int
    read_bytes: int
    gone: int
    closed: list[tuple[bytes, str]]
    outside: int


def update(
    index: Index,
    roots: Sequence[bytes],
    engine: Engine,
    progress: Callable[[int, int], None] | None = None,
    targets: str | None = None,
    names: Sequence[bytes] | None = None,
) -> Update:
    """Index the files below `roots`, absolute paths, or below those indexed before without any.

    Files of other roots stay as they are. With `names`, only files of these names are looked at,
    and all in folders of these names. `progress` is told how many bytes of how many are done.
    `targets` is a file that says which target has which files, empty for what folders say, None for
    what the index remembers. Raises NothingToRead, BadDescription, BrokenIndex, and what the engine
    does.
    """
    with Lock(index):
        index.clean()
        state = State(index)
        state.read_rest()
        census = state.census
        known = census.known_roots()
        roots = roots or sorted(known)
        inside = bytes(index.folder.absolute())
        outside = 0
        if names is None:
            tree = walk(census, roots, inside)
        else:
            for root in roots:
                if root not in known:
                    raise NothingToRead(
                        f"{os.fsdecode(root)}: not indexed yet: run once without a list of changes"
                    )
            paths, outside = below(names, roots)
            tree = look(census, paths, inside)
        for folder, reason in tree.closed:
            if folder in roots:
                raise NothingToRead(f"{os.fsdecode(folder)}: {reason}")
        changed, gone = tree.changed, _gone(tree, roots)
        files = census.count() - len(gone)
        description = index.settings["targets"] if targets is None else targets or None
        stamp = _stamp(description)
        members = None
        if description and (
            changed or gone or not state.is_saved or not index.is_described(description, stamp)
        ):
            # One that is wrong is to be known before anything is read for long.
            there = {*census.files()} - {file[:2] for file in gone}
            members = list(by_description(description, sorted(there)))
        total = sum(file.stamp.size for file in changed)
        done = 0
        for part, tables in engine.map(make_named, parts(index.next_run(), changed, gone)):
            index.publish(part.name, tables)
            done += sum(file.stamp.size for file in part.files)
            if progress is not None:
                progress(done, total)
        index.write_targets(description, stamp, members)
        if changed or gone:
            from pylink.fleet.compact import compact  # noqa: PLC0415 -- with all that reads Parquet

            state.read_rest()
            compact(index, files)
        state.save()
        return Update(files, len(changed), total, len(gone), tree.closed, outside)


def _gone(tree: Tree, roots: Sequence[bytes]) -> list[Found]:
    """The files that are not there any more, as far as somebody could look."""
    shut = tuple(folder.rstrip(b"/") + b"/" for folder, _ in tree.closed)
    return [file for file in tree.unseen if file.root in roots and not file.full.startswith(shut)]


def _stamp(description: str | None) -> Stamp | None:
    """By what a change of the description is noticed; None where it is not."""
    if not description:
        return None
    try:
        stamp = Stamp.of(os.stat(description))
    except OSError:
        return None
    return stamp if stamp.ctime <= youngest() else None


def make_named(part: Part) -> tuple[Part, dict[str, bytes]]:
    """A fragment with the part that it is of, since parts are done in any order."""
    from pylink.fleet.fragment import make_fragment  # noqa: PLC0415 -- where nothing changed

    return part, make_fragment(part)
