"""The file `INDEX/state`: all that fragments say of files, in one file.

A run with few changes must be cheap: it neither reads Parquet nor loads packages that do. The
file has blocks, each with the files of some fragments, and the names of these fragments. The first
block has all files known when it was written; later runs append blocks. If the fragments in blocks
are the oldest ones of the index, only the others are read and added; else all are read. A damaged
block and all after it are ignored. So an interrupted write, or removing the file, only costs time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
from dataclasses import dataclass

from pylink._native.census import Census, build_slots
from pylink.files.atomic import write_whole
from pylink.fleet.columns import GONE
from pylink.fleet.walk import Files, Stamp, TreeFile
from pylink.packages.extras import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pylink.fleet.index import Index

STATE_FILE = "state"

# The header of a block: magic, checksum of the rest, and bytes of each of its parts: ends, stamps,
# roots, hash slots to find a file (first block only), text, flags of removed files (later blocks
# only), names of roots (each ended by NUL), fragments. 8-byte numbers are aligned.
_HEAD = struct.Struct("=8sQ8Q")
_MAGIC = b"PYLINKS2"

# The file is rewritten as one block if more rows were appended than 1/_GROWTH_SHARE of the first
# block's rows plus _GROWTH_ROWS.
_GROWTH_SHARE = 8
_GROWTH_ROWS = 4096

# Columns of the table of files that the state needs.
COLUMNS = ["root", "path", *Stamp._fields, "kind"]


@dataclass(frozen=True, slots=True)
class Rows:
    """The files of a fragment; for each, `gone` has a byte, 1 if it was removed."""

    fragment: str
    files: Files
    gone: bytes


def saved_at(index: Index) -> int:
    """Return the modification time of the state file in ns; 0 if it does not exist."""
    try:
        return os.stat(os.path.join(index.directory, STATE_FILE)).st_mtime_ns
    except OSError:
        return 0


class State:
    """The known files of an index.

    `is_saved` says that the state file, when it was read, was undamaged and had all files.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._path = os.path.join(index.directory, STATE_FILE)
        self._reset()
        with contextlib.suppress(OSError), open(self._path, "rb") as file:
            self.is_saved = self._load(file.read())
        covered = [*map(self._fragment_key, index.fragments[: len(self._rows_by_fragment)])]
        if covered != [*self._rows_by_fragment]:
            self._reset()

    def _reset(self) -> None:
        """Forget everything."""
        self.census = Census()
        self.is_saved = False
        self._rows_by_fragment: dict[bytes, int] = {}  # numbers of rows, by `_fragment_key`
        self._added: list[bytes] = []  # blocks that the file does not have
        self._rows: list[int] = []  # number of rows of each block

    def _load(self, data: bytes) -> bool:
        """Load the file up to a damaged block; False if there is one, or if the file is empty."""
        offset = 0
        while offset < len(data):
            if len(data) - offset < _HEAD.size:
                return False
            magic, checksum, *sizes = _HEAD.unpack_from(data, offset)
            offset += _HEAD.size
            body = memoryview(data)[offset : offset + sum(sizes)]
            if magic != _MAGIC or len(body) != sum(sizes) or _checksum(body) != checksum:
                return False
            places = [*itertools.accumulate(sizes, initial=offset)]
            parts = itertools.starmap(slice, itertools.pairwise(places))
            ends, stamps, roots, slots, text, gone, names, fragments = parts
            offset = places[-1]
            try:
                lines = map(_split, data[fragments].splitlines())
                rows = {name: int(count) for name, count in lines}
                directories = data[names].split(b"\0")[:-1]
                if slots.start < slots.stop:  # the first block, which is not copied
                    self.census.set_base(directories, data, places[:6])
                else:
                    columns = (data[part] for part in (roots, ends, text, stamps, gone))
                    self.census.add_rows(directories, *columns)
            except (ValueError, IndexError):
                return False
            self._rows_by_fragment.update(rows)
            self._rows.append((roots.stop - roots.start) // 4)
        return bool(self._rows)

    def read_rest(self) -> None:
        """Add the fragments that the state file lacks; BrokenIndex if one cannot be read."""
        for fragment in self._index.fragments[len(self._rows_by_fragment) :]:
            self.add(self._read(fragment))
            self.is_saved = False

    def add(self, rows: Rows) -> None:
        """Add the rows of the next fragment, which replace earlier rows of the same files."""
        key = self._fragment_key(rows.fragment)
        counts = {key: rows.files.rows}
        self.census.add_rows(*rows.files, rows.gone)
        self._rows_by_fragment.update(counts)
        self._added.append(_pack_block(counts, rows.files, b"", rows.gone))
        self._rows.append(rows.files.rows)

    def counts(self) -> dict[str, int]:
        """Return the number of file rows, by the name of the fragment."""
        return {_name(fragment): count for fragment, count in self._rows_by_fragment.items()}

    def save(self) -> None:
        """Write the file if it is not up to date; the caller holds the lock.

        If fragments were merged meanwhile, the known files are the same, but the whole file is
        written, since it names other fragments.
        """
        fragments = [*map(self._fragment_key, self._index.fragments)]
        is_same = fragments == [*self._rows_by_fragment]
        if is_same and self.is_saved and not self._added:
            return
        # The file only saves time, so a full disk is not an error.
        with contextlib.suppress(OSError):
            if (
                is_same
                and self.is_saved
                and sum(self._rows[1:]) <= self._rows[0] // _GROWTH_SHARE + _GROWTH_ROWS
            ):
                with open(self._path, "ab") as file:
                    file.write(b"".join(self._added))
            else:
                self._write_all(fragments)

    def _write_all(self, fragments: Sequence[bytes]) -> None:
        """Write the file again, as one block for these fragments, which are all of the index."""
        counts = {}
        for fragment in fragments:
            count = self._rows_by_fragment.get(fragment)
            # A fragment that was merged by this run has no count yet, though its files are known.
            counts[fragment] = self._index.count_rows(_name(fragment)) if count is None else count
        files = Files(*self.census.export_rows())
        slots = build_slots(files.root_numbers, files.ends, files.text)
        write_whole(self._path, _pack_block(counts, files, slots, b""))

    def _read(self, fragment: str) -> Rows:
        """Read the files of a fragment from its Parquet file."""
        table = self._index.read_files(fragment, COLUMNS)
        roots, paths, *stamps, kinds = (table[name].to_pylist() for name in COLUMNS)
        rows = zip(roots, paths, zip(*stamps, strict=True), strict=True)
        files = Files.of(TreeFile(root, path, Stamp(*stamp)) for root, path, stamp in rows)
        return Rows(fragment, files, bytes(kind == GONE for kind in kinds))

    def _fragment_key(self, fragment: str) -> bytes:
        """Return a fragment's name and its table's size: a later one may get the same name."""
        size = os.stat(self._index.fragment_path(fragment, "files.parquet")).st_size
        return b"%s %d" % (os.fsencode(fragment), size)


def _pack_block(counts: Mapping[bytes, int], files: Files, slots: bytes, gone: bytes) -> bytes:
    """Return a block; `counts` are numbers of rows, by the keys of the fragments in it.

    `slots`, a hash table, is for the first block, and `gone` for later ones; else they are empty.
    """
    fragments = b"".join(b"%s %d\n" % entry for entry in counts.items())
    names = b"".join(root + b"\0" for root in files.root_names)
    columns = (files.ends, files.stamps, files.root_numbers, slots, files.text)
    parts = (*columns, gone, names, fragments)
    body = b"".join(parts)
    return _HEAD.pack(_MAGIC, _checksum(body), *map(len, parts)) + body


def _checksum(body: bytes | memoryview) -> int:
    """Return the checksum of a block after its header."""
    checksum: int = need("xxhash").xxh3_64_intdigest(body)
    return checksum


def _split(line: bytes) -> tuple[bytes, bytes]:
    """Return key and number of rows (a text) of a fragment, from a line of a block."""
    name, _, count = line.rpartition(b" ")
    return name, count


def _name(key: bytes) -> str:
    """Return the name of a fragment from its key."""
    return os.fsdecode(key.rpartition(b" ")[0])
