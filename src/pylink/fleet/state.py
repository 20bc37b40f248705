"""What an index knows of its files as one file, `INDEX/state`, that follows from its fragments.

A run in which little changed is to cost little: it neither reads Parquet nor loads the packages for
that. The file names the fragments that it is of. Where these are the first of those that are there,
the rest is read and added; where they are not, or where the file is damaged, all are read. So a run
that ended before it wrote the file, and somebody who removes it, lose nothing but time.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any

from pylink._native import census
from pylink.command.packages import need
from pylink.fleet.columns import GONE
from pylink.fleet.walk import Stamp
from pylink.outputs.wholefile import write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from pylink._native.census import Census
    from pylink.fleet.index import Index

FILE = "state"

# Magic, checksum of what follows, and bytes of each of six parts: fragments, roots (each ended by
# NUL), and what Census.known returns.
_HEAD = struct.Struct("=8sQ6Q")
_MAGIC = b"PYLINKS1"

# What says which files there were, and as what each was read.
COLUMNS = ["root", "path", *Stamp._fields, "kind"]


class State:
    """The files that an index knows of; `is_saved` says that the last run wrote all of it."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.census: Census = census.Census()
        self._known: list[bytes] = []  # fragments
        self.is_saved = False
        with contextlib.suppress(OSError, ValueError, IndexError, struct.error):
            self._load((index.folder / FILE).read_bytes())
            self.is_saved = True

    def _load(self, data: bytes) -> None:
        """Take what a file says; ValueError and the like when it is damaged or does not fit."""
        magic, checksum, *sizes = _HEAD.unpack_from(data)
        body = memoryview(data)[_HEAD.size :]
        if magic != _MAGIC or len(body) != sum(sizes) or zlib.crc32(body) != checksum:
            raise ValueError
        parts, at = [], 0
        for size in sizes:
            parts.append(bytes(body[at : at + size]))
            at += size
        known = parts[0].splitlines()
        if [*map(_described, self._index.fragments[: len(known)])] != known:
            raise ValueError
        names, roots, offsets, text, stamps = parts[1:]
        there = bytes(len(roots) // 4)
        self.census.know(names.split(b"\0")[:-1], roots, offsets, text, stamps, there)
        self._known = known

    def read_rest(self) -> None:
        """Learn what fragments say that are not known. BrokenIndex where one cannot be read."""
        fragments = self._index.fragments
        for one in fragments[len(self._known) :]:
            self._learn(one)
            self._known.append(_described(one))
            self.is_saved = False

    def save(self) -> None:
        """Write the file, unless it is as it should be; for who holds the lock.

        A fragment that took the place of others says the same as these.
        """
        known = [*map(_described, self._index.fragments)]
        if self.is_saved and known == self._known:
            return
        # It only saves time; and the disk may be full now.
        with contextlib.suppress(OSError, OverflowError):
            roots, *columns, _ = self.census.known()
            parts = [b"\n".join(known), b"".join(root + b"\0" for root in roots), *columns]
            checksum = 0
            for part in parts:
                checksum = zlib.crc32(part, checksum)
            head = _HEAD.pack(_MAGIC, checksum, *map(len, parts))
            write_whole(str(self._index.folder / FILE), b"".join((head, *parts)))

    def _learn(self, fragment: Path) -> None:
        """Take the rows of one fragment, which count more than those before."""
        np = need("numpy")

        def values(array: Any, kind: str) -> Any:
            """What an array without nulls has; its own `to_numpy` loads pandas."""
            return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + rows]

        table = self._index.read_files(fragment, COLUMNS)
        rows = len(table)
        if not rows:
            return
        columns = {name: table[name].combine_chunks() for name in COLUMNS}
        roots = columns["root"].dictionary_encode()
        _, offsets, text = columns["path"].buffers()
        kinds = columns["kind"].dictionary_encode()
        is_gone = np.array([name == GONE for name in kinds.dictionary.to_pylist()], bool)
        stamps = [values(columns[name], "i8") for name in Stamp._fields]
        self.census.know(
            roots.dictionary.to_pylist(),
            values(roots.indices, "i4").tobytes(),
            np.frombuffer(offsets, "i4")[columns["path"].offset :][: rows + 1].tobytes(),
            text.to_pybytes() if text is not None else b"",
            np.column_stack(stamps).tobytes(),
            is_gone[values(kinds.indices, "i4")].tobytes(),
        )


def _described(fragment: Path) -> bytes:
    """A fragment as the file names it: another one of that name is seldom as long."""
    return b"%s %d" % (os.fsencode(fragment.name), (fragment / "files.parquet").stat().st_size)
