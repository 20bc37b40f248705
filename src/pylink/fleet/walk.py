"""The files of a build tree, and by what a change of one is noticed.

Folders are entered, links to folders are not: a link may lead up again. Links to files count as the
files. What is no regular file, has no bytes, or more than an input may have, is passed over.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylink.inputs.incoming import MAX_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pylink._native.census import Census, Row

# A file that changes again within one tick of the file system's clock keeps its times. What is so
# young is read again by the next run.
TICK_NS = 100_000_000

# A file of which nothing is known: always read.
UNKNOWN = (0, 0, 0)


class Stamp(NamedTuple):
    """What tells that a file is as it was: bytes, nanoseconds of both times, number in its disk."""

    size: int
    mtime: int
    ctime: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def fits(self, path: bytes) -> bool:
        """Whether the file is as it was, as far as that is known."""
        try:
            now = Stamp.of(os.stat(path))
        except OSError:
            return False
        return self in (now, now.forgotten())

    def forgotten(self) -> Stamp:
        """The same size, and times that no file has."""
        return Stamp(self.size, *UNKNOWN)


class Found(NamedTuple):
    """A file: `path` is below `root`, both as the system has them."""

    root: bytes
    path: bytes
    stamp: Stamp

    @property
    def full(self) -> bytes:
        return b"%s/%s" % (self.root, self.path)

    @classmethod
    def of(cls, row: Row) -> Found:
        """What a row of a census says."""
        root, path, stamp = row
        return cls(root, path, Stamp(*stamp))


@dataclass(frozen=True)
class Tree:
    """What was found below some roots.

    `changed` are the files that an index does not know as they are, in the order of their paths,
    `unseen` those that it knows, below whatever root, and that were looked for in vain, `closed`
    the folders that could not be entered, with the reason.
    """

    changed: list[Found]
    unseen: list[Found]
    closed: list[tuple[bytes, str]]


def walk(census: Census, roots: Sequence[bytes], skipped: bytes = b"") -> Tree:
    """Look at all files below the roots, absolute paths; `skipped` is a folder that is passed over.

    What is unseen is so below any root.
    """
    closed = census.walk(list(roots), skipped, MAX_SIZE, youngest())
    return _tree(census.compare(), census.unseen(), closed)


def look(census: Census, paths: Mapping[bytes, Sequence[bytes]], skipped: bytes = b"") -> Tree:
    """Look at some files alone: `paths` below roots, of files or of folders with all in them."""
    closed, rest = [], {}
    for root, some in paths.items():
        shut, rest[root] = census.look(root, list(some), skipped, MAX_SIZE, youngest())
        closed += shut
    changed = census.compare()
    unseen = [row for root, some in rest.items() if some for row in census.unseen_of(root, some)]
    return _tree(changed, unseen, closed)


def youngest() -> int:
    """The time (ns) of a change after which another one may keep it."""
    return time.time_ns() - TICK_NS


def _tree(
    changed: Iterable[Row], unseen: Iterable[Row], closed: Iterable[tuple[bytes, int]]
) -> Tree:
    return Tree(
        sorted(map(Found.of, changed)),
        list(map(Found.of, unseen)),
        sorted((folder, os.strerror(error)) for folder, error in closed),
    )


def below(names: Iterable[bytes], roots: Sequence[bytes]) -> tuple[dict[bytes, list[bytes]], int]:
    """Names of files as paths below the roots, and how many are below none.

    Names and roots may lead over different links to the same folder. A name that ends in a link
    stays one.
    """
    real = {root: os.path.realpath(root).rstrip(b"/") + b"/" for root in roots}
    paths: dict[bytes, list[bytes]] = {root: [] for root in roots}
    folders: dict[bytes, bytes] = {}
    outside = 0
    for name in names:
        folder, _, last = name.rstrip(b"/").rpartition(b"/")
        if last in (b"", b".", b".."):
            folder, last = name, b""
        where = folders.get(folder)
        if where is None:
            where = folders[folder] = os.path.realpath(folder or b"/" * name.startswith(b"/"))
        full = os.path.join(where, last).rstrip(b"/") + b"/"
        inside = [root for root in roots if full.startswith(real[root])]
        around = [root for root in roots if real[root].startswith(full) and root not in inside]
        for root in inside:
            paths[root].append(full[len(real[root]) : -1])
        for root in around:
            paths[root].append(b"")
        outside += not (inside or around)
    return paths, outside
