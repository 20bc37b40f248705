"""Finds the files of a build tree, and detects changed ones.

Links to directories are not followed, since they may lead up again. Links to files count as files.
Empty files, files larger than an input may be, and files that are not regular are skipped.
"""

from __future__ import annotations

import itertools
import os
import time
from array import array
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from pylink.files.reading import MAX_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pylink._native.census import Census

# A file that changes again within one tick of the file system's clock keeps its times. So files
# that changed less than a tick ago are read again by the next run.
TICK_NS = 100_000_000

# Times and inode of a file that must be read again.
UNKNOWN = (0, 0, 0)

# Formats of values in `Files`: a stamp, two neighboring ends of paths, the number of a root.
_STAMP = Struct("=4q")
_PAIR = Struct("=2q")
_NUMBER = Struct("=i")


class Stamp(NamedTuple):
    """Size, times (ns) and inode of a file, which change if the file changes."""

    size: int
    mtime: int
    ctime: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def fits(self, path: bytes) -> bool:
        """Return whether the file at `path` has this stamp, or if times are UNKNOWN, this size."""
        try:
            now = Stamp.of(os.stat(path))
        except OSError:
            return False
        return self in (now, now.without_times())

    def without_times(self) -> Stamp:
        """Return the stamp with only its size, so that the file is read again."""
        return Stamp(self.size, *UNKNOWN)


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file with its `path` below `root`, both as bytes."""

    root: bytes
    path: bytes
    stamp: Stamp

    @property
    def full_path(self) -> bytes:
        return os.path.join(self.root, self.path)


class Files(NamedTuple):
    """Files as columns, over which native code loops.

    `root_names` are the roots, and `root_numbers` the number (int32) of each file's root among
    them. `text` is all paths below the roots, joined, and `ends` the end of each path in it (int64,
    with a 0 in front). `stamps` has the fields of each file's Stamp (int64).
    """

    root_names: list[bytes]
    root_numbers: bytes
    ends: bytes
    text: bytes
    stamps: bytes

    @property
    def rows(self) -> int:
        return len(self.root_numbers) // 4

    @property
    def sizes(self) -> array[int]:
        return array("q", self.stamps)[::4]

    def file(self, row: int) -> TreeFile:
        """Return the file in a row."""
        start, end = _PAIR.unpack_from(self.ends, 8 * row)
        (root,) = _NUMBER.unpack_from(self.root_numbers, 4 * row)
        stamp = Stamp(*_STAMP.unpack_from(self.stamps, _STAMP.size * row))
        return TreeFile(self.root_names[root], self.text[start:end], stamp)

    def files(self) -> Iterator[TreeFile]:
        return map(self.file, range(self.rows))

    def part(self, first: int, last: int) -> Files:
        """Return the files in rows `first` (included) to `last` (excluded)."""
        ends = array("q", self.ends[8 * first : 8 * (last + 1)])
        start = ends[0]
        return Files(
            self.root_names,
            self.root_numbers[4 * first : 4 * last],
            array("q", [end - start for end in ends]).tobytes(),
            self.text[start : ends[-1]],
            self.stamps[_STAMP.size * first : _STAMP.size * last],
        )

    @classmethod
    def of(cls, files: Iterable[TreeFile]) -> Files:
        """Make the columns of files."""
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
        """Return the rows of this object, and after them those of `other`."""
        if not other.rows:
            return self
        names = list(dict.fromkeys((*self.root_names, *other.root_names)))
        numbers = [names.index(name) for name in other.root_names]
        start = len(self.text)
        return Files(
            names,
            self.root_numbers
            + array("i", map(numbers.__getitem__, array("i", other.root_numbers))).tobytes(),
            self.ends + array("q", [start + end for end in array("q", other.ends)[1:]]).tobytes(),
            self.text + other.text,
            self.stamps + other.stamps,
        )


@dataclass(frozen=True, slots=True)
class Tree:
    """The files found below some roots, compared with an index.

    `changed` are new and changed files, sorted by root and path. `unseen` are files of the index
    that were not found. `closed` are directories that could not be entered, each with the reason.
    """

    changed: Files
    unseen: Files
    closed: list[tuple[bytes, str]]


def walk(census: Census, roots: Sequence[bytes], skipped: bytes = b"") -> Tree:
    """Find all files below the roots (absolute paths), except for the directory `skipped`.

    `census` has the files of the index. Those below other roots are in `unseen` of the result.
    """
    closed = []
    for root in roots:
        closed += census.walk(root, _path_below(root, skipped), MAX_SIZE, time_one_tick_ago())
    return Tree(Files(*census.compare()), Files(*census.find_missing()), _describe_errors(closed))


def find_listed(
    census: Census, paths: Mapping[bytes, Sequence[bytes]], skipped: bytes = b""
) -> Tree:
    """Find only the files at `paths`, and all files in directories at `paths`.

    `paths` has paths below a root, by the root.
    """
    closed, missing_paths = [], []
    for root, names in paths.items():
        inner = _path_below(root, skipped)
        unreadable, unmatched = census.find_at(
            root, list(names), inner, MAX_SIZE, time_one_tick_ago()
        )
        closed += unreadable
        missing_paths.append(unmatched)
    changed = Files(*census.compare())
    return Tree(
        changed,
        Files(*census.find_missing_at(list(paths), missing_paths)),
        _describe_errors(closed),
    )


def _path_below(root: bytes, directory: bytes) -> bytes:
    """Return the path by which a walk of `root` meets a directory; empty if it is not below it."""
    start = _resolve_directory(root)
    real = os.path.realpath(directory)
    return os.path.join(root, real[len(start) :]) if directory and real.startswith(start) else b""


def _describe_errors(closed: Iterable[tuple[bytes, int]]) -> list[tuple[bytes, str]]:
    """Replace the errno of each directory by the system's message; sorted."""
    return sorted((directory, os.strerror(error)) for directory, error in closed)


def ends_of(values: Iterable[bytes]) -> bytes:
    """Return the end offsets of values in their joined text (int64), with a 0 in front."""
    return array("q", itertools.accumulate(map(len, values), initial=0)).tobytes()


def time_one_tick_ago() -> int:
    """Return the time (ns) one clock tick ago.

    A file that changed later may change again within its tick, and so keep its times.
    """
    return time.time_ns() - TICK_NS


def split_by_root(
    names: Iterable[bytes], roots: Sequence[bytes]
) -> tuple[dict[bytes, list[bytes]], int]:
    """Return names of files as paths below the roots, and the number of names below no root.

    The name of a directory above a root becomes the empty path, which is the root. Links in
    directories are resolved, so names and roots may use different ones. A link at the end of a name
    is kept.
    """
    real = {root: _resolve_directory(root) for root in roots}
    paths: dict[bytes, list[bytes]] = {root: [] for root in roots}
    directories: dict[bytes, bytes] = {}
    outside = 0
    for name in names:
        directory, _, last = name.rstrip(b"/").rpartition(b"/")
        if last in (b"", b".", b".."):
            directory, last = name, b""
        real_directory = directories.get(directory)
        if real_directory is None:
            real_directory = directories[directory] = _resolve_directory(
                directory or b"/" * name.startswith(b"/")
            )
        full = real_directory + last + b"/" if last else real_directory
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


def _resolve_directory(name: bytes) -> bytes:
    """Return the path of a directory with links resolved, and a slash at its end."""
    return os.path.realpath(name).rstrip(b"/") + b"/"
