"""Bringing an index up to date with the trees that it is of: only what changed is read.

Where nothing changed, nothing is loaded of what reads and writes fragments.
"""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING, NamedTuple

from pylink.fleet.compaction import compact
from pylink.fleet.index import Index
from pylink.fleet.locks import Writing
from pylink.fleet.parts import Part, parts
from pylink.fleet.state import State, saved_at
from pylink.fleet.walk import Files, Stamp, below, look, walk, youngest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pylink._native.census import Census
    from pylink.fleet.engine import Engine
    from pylink.fleet.fragment import Fragment
    from pylink.fleet.walk import Tree


class NothingToRead(Exception):
    """A folder to index cannot be entered; the text names it."""


class Update(NamedTuple):
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
    """Index the files below `roots`, absolute paths; without roots, below those of the index.

    Files of other roots stay as they are. With `names`, only files of these names are looked at,
    and all in folders of these names. `progress` is called with the bytes done and the bytes in
    all. `targets` is a file that says which target has which files, empty for what folders say,
    None for what the index remembers. Raises NothingToRead, BadDescription, BrokenIndex, BusyIndex,
    and what the engine does.
    """
    with Writing(index.folder):
        index.refresh()
        index.clean()
        index.look_over(index.fragments, saved_at(index))
        state = State(index)
        state.read_rest()
        census = state.census
        roots = roots or index.roots
        tree, outside = _find(index, census, roots, names)
        changed, gone = tree.changed, _gone(tree, roots)
        files = census.count() - gone.rows
        description = index.settings["targets"] if targets is None else targets or None
        stamp = _stamp(description)
        members = None
        is_new = changed.rows or gone.rows or not state.is_saved
        if description and (is_new or not index.is_described(description, stamp)):
            # One that is wrong is to be known before anything is read for long.
            members = _members(description, {*census.files()} - {row[:2] for row in gone.files()})
        index.add_roots(roots)
        total = sum(changed.sizes)
        done = 0
        learnt = []
        for fragment in engine.map(make, parts(index.next_run(), changed, gone)):
            index.publish(fragment.rows.fragment, fragment.tables)
            learnt.append(fragment.rows)
            done += fragment.size
            if progress is not None:
                progress(done, total)
        for rows in sorted(learnt):  # they come in any order
            state.add(rows)
        index.write_targets(description, stamp, members)
        if changed.rows or gone.rows:
            compact(index, files, state.counts())
        state.save()
        return Update(files, changed.rows, total, gone.rows, tree.closed, outside)


def _find(
    index: Index, census: Census, roots: Sequence[bytes], names: Sequence[bytes] | None
) -> tuple[Tree, int]:
    """What is below the roots, or of it what has one of the names; how many names are outside."""
    if not roots:
        raise NothingToRead(f"{index.folder}: nothing is indexed yet: name the folders to index")
    outside = 0
    if names is None:
        tree = walk(census, roots, os.fsencode(index.folder))
    else:
        for root in roots:
            if root not in index.roots:
                raise NothingToRead(
                    f"{os.fsdecode(root)}: not indexed yet: run once without a list of changes"
                )
        paths, outside = below(names, roots)
        tree = look(census, paths, os.fsencode(index.folder))
    for folder, reason in tree.closed:
        if folder in roots:
            raise NothingToRead(f"{os.fsdecode(folder)}: {reason}")
    return tree, outside


def _gone(tree: Tree, roots: Sequence[bytes]) -> Files:
    """The files that are gone, without those in folders that could not be read."""
    shut = tuple(folder.rstrip(b"/") + b"/" for folder, _ in tree.closed)
    unseen = tree.unseen
    wanted = {place for place, name in enumerate(unseen.names) if name in roots}
    rows = [row for row, root in enumerate(array("i", unseen.roots)) if root in wanted]
    if shut:
        rows = [row for row in rows if not unseen.file(row).full.startswith(shut)]
    return unseen if len(rows) == unseen.rows else Files.of(map(unseen.file, rows))


def _stamp(description: str | None) -> Stamp | None:
    """By what a change of the description is noticed; None where it is not."""
    if not description:
        return None
    try:
        stamp = Stamp.of(os.stat(description))
    except OSError:
        return None
    return stamp if stamp.ctime <= youngest() else None


def _members(description: str, files: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The table of targets that a file of the build describes."""
    from pylink.fleet.manifest import by_description, table_of

    return table_of(by_description(description, sorted(files)))


def make(part: Part) -> Fragment:
    """The fragment of a part; loads what makes one."""
    from pylink.fleet.fragment import make_fragment

    return make_fragment(part)
