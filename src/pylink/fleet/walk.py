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
    from collections.abc import Sequence

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
    """What was found below some roots: numbers of files, which of them an index does not know as
    they are in the order of their paths, which it knows and were not found, and folders that could
    not be entered, with the reason.
    """

    count: int
    changed: list[Found]
    unseen: list[Found]
    closed: list[tuple[bytes, str]]


def walk(census: Census, roots: Sequence[bytes], skipped: bytes = b"") -> Tree:
    """Look at all files below the roots, absolute paths; `skipped` is a folder that is passed over.

    What is unseen is so below any root.
    """
    closed = census.walk(list(roots), skipped, MAX_SIZE, time.time_ns() - TICK_NS)
    count, changed = census.compare()
    return Tree(
        count,
        sorted(map(Found.of, changed)),
        list(map(Found.of, census.unseen())),
        sorted((folder, os.strerror(error)) for folder, error in closed),
    )
