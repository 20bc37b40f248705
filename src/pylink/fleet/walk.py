"""The files of a build tree, and by what a change of one is noticed.

Folders are entered, links to folders are not: a link may lead up again. Links to files count as the
files. What is no regular file, has no bytes, or more than an input may have, is passed over.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pylink.inputs.incoming import MAX_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable

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


@dataclass(frozen=True)
class Tree:
    """What was found: files in the order of their paths, and folders that could not be entered."""

    files: list[Found]
    closed: list[tuple[bytes, str]]


def walk(roots: Iterable[bytes], skipped: bytes | None = None) -> Tree:
    """All files below the roots, absolute paths; `skipped` is a folder that is passed over."""
    files: list[Found] = []
    closed: list[tuple[bytes, str]] = []
    youngest = time.time_ns() - TICK_NS
    for root in roots:
        start = len(root.rstrip(b"/")) + 1
        pending = [root]
        while pending:
            folder = pending.pop()
            try:
                entries = list(os.scandir(folder))
            except OSError as error:
                closed.append((folder, error.strerror or str(error)))
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.path != skipped:
                        pending.append(entry.path)
                    continue
                try:
                    status = entry.stat()
                except OSError:  # gone already, or a link that leads nowhere
                    continue
                if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= MAX_SIZE:
                    continue
                stamp = Stamp.of(status)
                if stamp.ctime > youngest:
                    stamp = stamp.forgotten()
                files.append(Found(root, entry.path[start:], stamp))
    files.sort()
    return Tree(files, sorted(closed))
