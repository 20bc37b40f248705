"""Bringing an index up to date with the trees that it is of: only what changed is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylink.fleet.compact import compact
from pylink.fleet.fragment import Part, make_fragment
from pylink.fleet.index import Index, Lock
from pylink.fleet.targets import by_description
from pylink.fleet.walk import Found, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pylink.fleet.engine import Engine
    from pylink.fleet.targets import Member

# A part has room in any memory, and is what an interrupted run has to do again at most.
PART_FILES = 4096
PART_BYTES = 128 << 20


class NothingToRead(Exception):
    """A folder to index cannot be entered; the text names it."""


@dataclass(frozen=True)
class Update:
    """What one run did: numbers of files, and folders that it could not enter, with the reason."""

    files: int
    read: int
    read_bytes: int
    gone: int
    closed: list[tuple[bytes, str]]


def update(
    index: Index,
    roots: Sequence[bytes],
    engine: Engine,
    progress: Callable[[int, int], None] | None = None,
    targets: str | None = None,
) -> Update:
    """Index the files below `roots`, absolute paths, or below those indexed before without any.

    Files of other roots stay as they are. `progress` is told how many bytes of how many are done.
    `targets` is a file that says which target has which files, empty for what folders say, None for
    what the index remembers. Raises NothingToRead, BadDescription, and what `read_census` and the
    engine do.
    """
    with Lock(index):
        index.clean()
        census = index.read_census()
        roots = roots or sorted(census.known_roots())
        tree = walk(census, roots, bytes(index.folder.absolute()))
        for root in roots:
            for folder, reason in tree.closed:
                if folder == root:
                    raise NothingToRead(f"{root.decode('utf-8', 'replace')}: {reason}")
        changed = tree.changed
        shut = tuple(folder + b"/" for folder, _ in tree.closed)
        gone = [
            file for file in tree.unseen if file.root in roots and not file.full.startswith(shut)
        ]
        count = tree.count + len(tree.unseen) - len(gone)
        description = index.settings["targets"] if targets is None else targets or None
        members: list[Member] = []
        if description:
            # One that is wrong is to be known before anything is read for long.
            known = {*census.found(), *(file[:2] for file in tree.unseen)}
            members += by_description(description, sorted(known - {file[:2] for file in gone}))
        total = sum(file.stamp.size for file in changed)
        done = 0
        for part, tables in engine.map(make_named, parts(index.next_run(), changed, gone)):
            index.publish(part.name, tables)
            done += sum(file.stamp.size for file in part.files)
            if progress is not None:
                progress(done, total)
        index.write_targets(description, members)
        if changed or gone:
            compact(index, count)
        return Update(count, len(changed), total, len(gone), tree.closed)


def make_named(part: Part) -> tuple[Part, dict[str, bytes]]:
    """A fragment with the part that it is of, since parts are done in any order."""
    return part, make_fragment(part)


def parts(run: int, changed: Sequence[Found], gone: Sequence[Found]) -> Iterator[Part]:
    """The tasks of a run: what is changed in the order of paths, and first of all what is gone."""
    number = start = 0
    while start < len(changed):
        end, size = start, 0
        while (
            end < len(changed)
            and end - start < PART_FILES
            and (end == start or size + changed[end].stamp.size <= PART_BYTES)
        ):
            size += changed[end].stamp.size
            end += 1
        yield Part(run, number, tuple(changed[start:end]), () if number else tuple(gone))
        number, start = number + 1, end
    if gone and not changed:
        yield Part(run, 0, (), tuple(gone))
