"""What an index knows of its files as one file, `INDEX/state`, that follows from its fragments.

A run in which little changed is to cost little: it neither reads Parquet nor loads the packages for
that. The file is a row of pieces, each of some fragments that it names: the first has all files
that there were when it was written, later runs add what their fragments say. Where the fragments of
all pieces are the first of those that are there, the rest is read and added; where they are not,
all are read. A damaged piece ends the file. So a run that ended before it wrote the file, or while
it did, and somebody who removes it, lose nothing but time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from pylink._native.census import Census, slots_of
from pylink.files.atomic import write_whole
from pylink.fleet.columns import GONE
from pylink.fleet.walk import Files, Stamp, TreeFile
from pylink.packages.extras import need

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylink.fleet.index import Index

FILE = "state"

# The header of a piece: magic, checksum of what follows, and bytes of each of its parts: ends,
# stamps, roots, slots by which to find a file (in the first piece), text, which files are gone (in
# others), names of roots (each ended by NUL), fragments. Numbers of eight bytes lie at multiples of
# eight.
_HEAD = struct.Struct("=8sQ8Q")
_MAGIC = b"PYLINKS2"

# What is added may have so many of the rows that are there, and a few more, before all is written
# anew: with every run the file would be longer.
_PART = 8
_FEW = 4096

# What says which files there were, and as what each was read.
COLUMNS = ["root", "path", *Stamp._fields, "kind"]


class Rows(NamedTuple):
    """What a fragment says of files: a byte of `gone` for each tells which are not there."""

    fragment: str
    files: Files
    gone: bytes


def saved_at(index: Index) -> int:
    """When the file was written last, in ns; 0 without one."""
    try:
        return os.stat(os.path.join(index.folder, FILE)).st_mtime_ns
    except OSError:
        return 0


class State:
    """The files that an index knows of; `is_saved` says that the last run wrote all of it."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._path = os.path.join(index.folder, FILE)
        self._start()
        with contextlib.suppress(OSError), open(self._path, "rb") as file:
            self.is_saved = self._load(file.read())
        there = [*map(self._described, index.fragments[: len(self._rows_described)])]
        if there != [*self._rows_described]:
            self._start()

    def _start(self) -> None:
        """Know nothing."""
        self.census = Census()
        self.is_saved = False
        self._rows_described: dict[bytes, int] = {}  # by the description of a fragment
        self._added: list[bytes] = []  # pieces that the file does not have
        self._rows: list[int] = []  # of each piece

    def _load(self, data: bytes) -> bool:
        """Take what a file says; False when not all of it is sound."""
        at = 0
        while at < len(data):
            if len(data) - at < _HEAD.size:
                return False
            magic, checksum, *sizes = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            body = memoryview(data)[at : at + sum(sizes)]
            if magic != _MAGIC or len(body) != sum(sizes) or _checksum(body) != checksum:
                return False
            places = [*itertools.accumulate(sizes, initial=at)]
            parts = itertools.starmap(slice, itertools.pairwise(places))
            ends, stamps, roots, slots, text, gone, names, known = parts
            at = places[-1]
            try:
                lines = map(_split, data[known].splitlines())
                rows = {name: int(count) for name, count in lines}
                folders = data[names].split(b"\0")[:-1]
                if slots.start < slots.stop:  # all that there was, too much to be copied
                    self.census.rest_on(folders, data, places[:6])
                else:
                    columns = (data[part] for part in (roots, ends, text, stamps, gone))
                    self.census.know(folders, *columns)
            except (ValueError, IndexError):
                return False
            self._rows_described.update(rows)
            self._rows.append((roots.stop - roots.start) // 4)
        return bool(self._rows)

    def read_rest(self) -> None:
        """Learn what fragments say that are not known. BrokenIndex where one cannot be read."""
        for fragment in self._index.fragments[len(self._rows_described) :]:
            self.add(self._read(fragment))
            self.is_saved = False

    def add(self, rows: Rows) -> None:
        """Learn what the next fragment says; its rows count more than those before."""
        described = self._described(rows.fragment)
        known = {described: rows.files.rows}
        self.census.know(*rows.files, rows.gone)
        self._rows_described.update(known)
        self._added.append(_piece(known, rows.files, b"", rows.gone))
        self._rows.append(rows.files.rows)

    def counts(self) -> dict[str, int]:
        """How many rows of files each fragment has, by its name."""
        return {_name(fragment): count for fragment, count in self._rows_described.items()}

    def save(self) -> None:
        """Write the file, unless it is as it should be; for the holder of the lock.

        A fragment that took the place of others says the same as these.
        """
        there = [*map(self._described, self._index.fragments)]
        is_same = there == [*self._rows_described]
        if is_same and self.is_saved and not self._added:
            return
        # It only saves time; and the disk may be full now.
        with contextlib.suppress(OSError):
            if is_same and self.is_saved and sum(self._rows[1:]) <= self._rows[0] // _PART + _FEW:
                with open(self._path, "ab") as file:
                    file.write(b"".join(self._added))
            else:
                self._write_all(there)

    def _write_all(self, there: Sequence[bytes]) -> None:
        counts = {}
        for fragment in there:
            count = self._rows_described.get(fragment)
            # One that took the place of others, and says the same.
            counts[fragment] = self._index.count_rows(_name(fragment)) if count is None else count
        files = Files(*self.census.known())
        slots = slots_of(files.roots, files.ends, files.text)
        write_whole(self._path, _piece(counts, files, slots, b""))

    def _read(self, fragment: str) -> Rows:
        table = self._index.read_files(fragment, COLUMNS)
        roots, paths, *stamps, kinds = (table[name].to_pylist() for name in COLUMNS)
        rows = zip(roots, paths, zip(*stamps, strict=True), strict=True)
        files = Files.of(TreeFile(root, path, Stamp(*stamp)) for root, path, stamp in rows)
        return Rows(fragment, files, bytes(kind == GONE for kind in kinds))

    def _described(self, fragment: str) -> bytes:
        """A fragment as the file names it: another one of that name is seldom as long."""
        size = os.stat(self._index.place(fragment, "files.parquet")).st_size
        return b"%s %d" % (os.fsencode(fragment), size)


def _piece(known: Mapping[bytes, int], files: Files, slots: bytes, gone: bytes) -> bytes:
    fragments = b"".join(b"%s %d\n" % entry for entry in known.items())
    names = b"".join(root + b"\0" for root in files.names)
    columns = (files.ends, files.stamps, files.roots, slots, files.text)
    parts = (*columns, gone, names, fragments)
    body = b"".join(parts)
    return _HEAD.pack(_MAGIC, _checksum(body), *map(len, parts)) + body


def _checksum(body: bytes | memoryview) -> int:
    checksum: int = need("xxhash").xxh3_64_intdigest(body)
    return checksum


def _split(line: bytes) -> tuple[bytes, bytes]:
    name, _, count = line.rpartition(b" ")
    return name, count


def _name(described: bytes) -> str:
    return os.fsdecode(described.rpartition(b" ")[0])
