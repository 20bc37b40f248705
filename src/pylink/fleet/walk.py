"""The files of a build tree, and by what a change of one is noticed.

Folders are entered, links to folders are not: a link may lead up again. Links to files count as the
files. What is not a regular file, has no bytes, or more than an input may have, is skipped.
"""

from __future__ import annotations

import itertools
import os
import time
from array import array
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from pylink.files.reading import MAX_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pylink._native.census import Census

# A file that changes again within one tick of the file system's clock keeps its times. What is so
# young is read again by the next run.
TICK_NS = 100_000_000

# A file of which nothing is known: always read.
UNKNOWN = (0, 0, 0)

# Rows of columns of files.
_STAMP = Struct("=4q")
_PAIR = Struct("=2q")
_NUMBER = Struct("=i")


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


class TreeFile(NamedTuple):
    """A file: `path` is below `root`, both as the system has them."""

    root: bytes
    path: bytes
    stamp: Stamp

    @property
    def full(self) -> bytes:
        return os.path.join(self.root, self.path)


class Files(NamedTuple):
    """Files as the columns of a census: what costs something for each of them is native."""

    names: list[bytes]
    roots: bytes
    ends: bytes
    text: bytes
    stamps: bytes

    @property
    def rows(self) -> int:
        return len(self.roots) // 4

    @property
    def sizes(self) -> array[int]:
        return array("q", self.stamps)[::4]

    def file(self, row: int) -> TreeFile:
        start, end = _PAIR.unpack_from(self.ends, 8 * row)
        (root,) = _NUMBER.unpack_from(self.roots, 4 * row)
        stamp = Stamp(*_STAMP.unpack_from(self.stamps, _STAMP.size * row))
        return TreeFile(self.names[root], self.text[start:end], stamp)

    def files(self) -> Iterator[TreeFile]:
        return map(self.file, range(self.rows))

    def part(self, first: int, last: int) -> Files:
        """Those from row `first` up to `last`, without what only others need."""
        ends = array("q", self.ends[8 * first : 8 * (last + 1)])
        start = ends[0]
        return Files(
            self.names,
            self.roots[4 * first : 4 * last],
            array("q", [end - start for end in ends]).tobytes(),
            self.text[start : ends[-1]],
            self.stamps[_STAMP.size * first : _STAMP.size * last],
        )

    @classmethod
    def of(cls, files: Iterable[TreeFile]) -> Files:
        paths = list(files)
        names = list(dict.fromkeys(file.root for file in paths))
        number = {name: place for place, name in enumerate(names)}
        return cls(
            names,
            array("i", [number[file.root] for file in paths]).tobytes(),
            ends_of([file.path for file in paths]),
            b"".join(file.path for file in paths),
            array("q", itertools.chain.from_iterable(file.stamp for file in paths)).tobytes(),
        )

    def followed_by(self, other: Files) -> Files:
        """The rows of both."""
        if not other.rows:
            return self
        names = list(dict.fromkeys((*self.names, *other.names)))
        numbers = [names.index(name) for name in other.names]
        start = len(self.text)
        return Files(
            names,
            self.roots + array("i", map(numbers.__getitem__, array("i", other.roots))).tobytes(),
            self.ends + array("q", [start + end for end in array("q", other.ends)[1:]]).tobytes(),
            self.text + other.text,
            self.stamps + other.stamps,
        )


class Tree(NamedTuple):
    """What was found below some roots.

    `changed` are the files that an index does not know as they are, in the order of their paths.
    `unseen` are those that it knows, below whatever root, and that are gone. `closed` are the
    folders that could not be entered, with the reason.
    """

    changed: Files
    unseen: Files
    closed: list[tuple[bytes, str]]


def walk(census: Census, roots: Sequence[bytes], skipped: bytes = b"") -> Tree:
    """Look at all files below the roots, absolute paths; `skipped` is a folder that is skipped.

    What is unseen is so below any root.
    """
    closed = []
    for root in roots:
        closed += census.walk(root, _under(root, skipped), MAX_SIZE, youngest())
    return Tree(Files(*census.compare()), Files(*census.unseen()), _reasons(closed))


def look(census: Census, paths: Mapping[bytes, Sequence[bytes]], skipped: bytes = b"") -> Tree:
    """Look at some files alone: `paths` below roots, of files or of folders with all in them."""
    closed, rest = [], []
    for root, some in paths.items():
        inner = _under(root, skipped)
        shut, missing = census.look(root, list(some), inner, MAX_SIZE, youngest())
        closed += shut
        rest.append(missing)
    changed = Files(*census.compare())
    return Tree(changed, Files(*census.unseen_of(list(paths), rest)), _reasons(closed))


def _under(root: bytes, folder: bytes) -> bytes:
    """The name that a folder has below a root, whatever links lead to either; empty for none."""
    start = _folder(root)
    real = os.path.realpath(folder)
    return os.path.join(root, real[len(start) :]) if folder and real.startswith(start) else b""


def _reasons(closed: Iterable[tuple[bytes, int]]) -> list[tuple[bytes, str]]:
    return sorted((folder, os.strerror(error)) for folder, error in closed)


def ends_of(values: Iterable[bytes]) -> bytes:
    """Where each ends in the text of all (int64), with a 0 in front."""
    return array("q", itertools.accumulate(map(len, values), initial=0)).tobytes()


def youngest() -> int:
    """The time (ns) of a change after which another one may keep it."""
    return time.time_ns() - TICK_NS


def below(names: Iterable[bytes], roots: Sequence[bytes]) -> tuple[dict[bytes, list[bytes]], int]:
    """Names of files as paths below the roots, and how many are below none.

    Names and roots may lead over different links to the same folder. A name that ends in a link
    stays one.
    """
    real = {root: _folder(root) for root in roots}
    paths: dict[bytes, list[bytes]] = {root: [] for root in roots}
    folders: dict[bytes, bytes] = {}
    outside = 0
    for name in names:
        folder, _, last = name.rstrip(b"/").rpartition(b"/")
        if last in (b"", b".", b".."):
            folder, last = name, b""
        where = folders.get(folder)
        if where is None:
            where = folders[folder] = _folder(folder or b"/" * name.startswith(b"/"))
        full = where + last + b"/" if last else where
        is_outside = True
        for root, start in real.items():
            if full.startswith(start):
                paths[root].append(full[len(start) : -1])
            elif start.startswith(full):
                paths[root].append(b"")
            else:
                continue
            is_outside = False
        outside += is_outside
    return paths, outside


def _folder(name: bytes) -> bytes:
    """The name of a folder without links, with a slash at its end."""
    return os.path.realpath(name).rstrip(b"/") + b"/"
