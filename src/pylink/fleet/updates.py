"""Brings an index up to date with its trees, reading only changed files.

Without changes, the code that reads and writes fragments is not loaded.
"""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass

from pylink.fleet.compaction import compact
from pylink.fleet.index import Index
from pylink.fleet.locks import Writing
from pylink.fleet.parts import Part, parts
from pylink.fleet.state import State, saved_at
from pylink.fleet.walk import Files, Stamp, find_listed, split_by_root, time_one_tick_ago, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pylink._native.census import Census
    from pylink.fleet.engine import Engine
    from pylink.fleet.fragment import Fragment
    from pylink.fleet.walk import Tree


class NothingToRead(Exception):
    """There is no directory to index, or one is not indexed yet or cannot be entered."""


@dataclass(frozen=True, slots=True)
class Update:
    """The result of a run.

    `files`, `read` and `gone` are numbers of files: in the index now, read by this run, removed.
    `closed` has the directories that could not be entered, with the reason, and `outside` counts
    listed names that are in no indexed directory.
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

    Files of other roots are not checked. With `names`, only these files are checked, and all files
    in those of `names` that are directories. `progress` is called with the bytes done and in total.
    `targets` is the path of a description of targets, empty for targets by directory, None for the
    description that the index names. Raises NothingToRead, BadDescription, BrokenIndex, BusyIndex,
    and EngineError.
    """
    with Writing(index.directory):
        index.refresh()
        index.remove_leftovers()
        index.check_stamps(index.fragments, saved_at(index))
        state = State(index)
        state.read_rest()
        census = state.census
        roots = roots or index.roots
        tree, outside = _find_files(index, census, roots, names)
        changed, gone = tree.changed, _find_gone(tree, roots)
        files = census.count() - gone.rows
        description = index.settings["targets"] if targets is None else targets or None
        stamp = _stamp_description(description)
        members = None
        is_new = changed.rows or gone.rows or not state.is_saved
        if description and (is_new or not index.is_described(description, stamp)):
            # The description is read first, so that its errors are reported before files are read.
            members = _read_targets(
                description, {*census.files()} - {(file.root, file.path) for file in gone.files()}
            )
        index.add_roots(roots)
        total = sum(changed.sizes)
        done = 0
        new_rows = []
        for fragment in engine.map(make_part_fragment, parts(index.next_run(), changed, gone)):
            index.publish(fragment.rows.fragment, fragment.tables)
            new_rows.append(fragment.rows)
            done += fragment.size
            if progress is not None:
                progress(done, total)
        # Fragments are finished in any order, but the state file has them in the order of names.
        for rows in sorted(new_rows, key=lambda rows: rows.fragment):
            state.add(rows)
        index.write_targets(description, stamp, members)
        if changed.rows or gone.rows:
            compact(index, files, state.counts())
        state.save()
        return Update(files, changed.rows, total, gone.rows, tree.closed, outside)


def _find_files(
    index: Index, census: Census, roots: Sequence[bytes], names: Sequence[bytes] | None
) -> tuple[Tree, int]:
    """Return the files below the roots, or at `names`; and the number of names below no root."""
    if not roots:
        raise NothingToRead(
            f"{index.directory}: nothing is indexed yet: name the directories to index"
        )
    outside = 0
    if names is None:
        tree = walk(census, roots, os.fsencode(index.directory))
    else:
        for root in roots:
            if root not in index.roots:
                raise NothingToRead(
                    f"{os.fsdecode(root)}: not indexed yet: run once without a list of changes"
                )
        paths, outside = split_by_root(names, roots)
        tree = find_listed(census, paths, os.fsencode(index.directory))
    for directory, reason in tree.closed:
        if directory in roots:
            raise NothingToRead(f"{os.fsdecode(directory)}: {reason}")
    return tree, outside


def _find_gone(tree: Tree, roots: Sequence[bytes]) -> Files:
    """Return the removed files of these roots, except in directories that could not be read."""
    unreadable = tuple(directory.rstrip(b"/") + b"/" for directory, _ in tree.closed)
    unseen = tree.unseen
    listed_roots = {number for number, name in enumerate(unseen.root_names) if name in roots}
    rows = [row for row, root in enumerate(array("i", unseen.root_numbers)) if root in listed_roots]
    if unreadable:
        rows = [row for row in rows if not unseen.file(row).full_path.startswith(unreadable)]
    return unseen if len(rows) == unseen.rows else Files.of(map(unseen.file, rows))


def _stamp_description(description: str | None) -> Stamp | None:
    """Return the stamp of the description file.

    None if it is missing, or so young that it may change again and keep its stamp.
    """
    if not description:
        return None
    try:
        stamp = Stamp.of(os.stat(description))
    except OSError:
        return None
    return stamp if stamp.ctime <= time_one_tick_ago() else None


def _read_targets(description: str, files: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the table of targets of a description, as a Parquet file."""
    from pylink.fleet.manifest import pack_members, read_members

    return pack_members(read_members(description, sorted(files)))


def make_part_fragment(part: Part) -> Fragment:
    """Make the fragment of a part, and import `fragment` only now."""
    from pylink.fleet.fragment import make_fragment

    return make_fragment(part)
