"""An index on disk: a folder with fragments, targets, and what is known of folding.

    INDEX/index.json           format, folders that it is of, description of targets
    INDEX/fragments/RUN-PART/  files.parquet, objects.parquet, sections.parquet, and their sums
    INDEX/state                what follows from that for the next run, see `state`
    INDEX/targets.parquet      which file is of which target, where a description says
    INDEX/folding/KEY.json     what folding does for one target, see `folding`

A fragment is made beside the others under another name and gets its own when it is complete, so a
run that ends in the middle leaves those that it finished, and they count. Runs take turns.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from pylink.diagnostics.errors import reason_of
from pylink.files.atomic import write_whole
from pylink.fleet.columns import MOST_RUNS, TABLES, read_table
from pylink.fleet.locks import WRITER, Writing, nobody_reads
from pylink.packages.extras import need

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.fleet.walk import Stamp


# Another number for every change after which an older index cannot be gone on with.
FORMAT = 3

MARK = "index.json"
UNFINISHED = ".unfinished"
SUMS = "sums"
AGAIN = "remove the index and make it again"
_FOLDERS = ("fragments", "folding")

_NAME = re.compile(r"(?P<first>\d+-\d+)(?:\+(?P<last>\d+-\d+)\.(?P<serial>\d+))?")


class BrokenIndex(Exception):
    """Something is wrong with an index as a whole; the text names it and says what to do."""


class FragmentName(NamedTuple):
    """RUN-PART, or FIRST+LAST.SERIAL of one that stands for several.

    `serial` is larger than that of each fragment it stands for, 0 for one that stands for itself.
    """

    first: str
    last: str
    serial: int

    @classmethod
    def of(cls, name: str) -> FragmentName | None:
        """What a name says; None for one that no fragment has."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        return cls(match["first"], match["last"] or match["first"], int(match["serial"] or 0))

    def is_in(self, other: FragmentName) -> bool:
        """Whether the other stands for this one."""
        inside = other.first <= self.first and self.last <= other.last
        return inside and other.serial > self.serial

    def __str__(self) -> str:
        return f"{self.first}+{self.last}.{self.serial}" if self.serial else self.first


class Index:
    """An index that is there; `fragments` and the like look at its files each time."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)
        self.settings = _read_settings(self.folder)

    @classmethod
    def open_or_make(cls, folder: str | os.PathLike[str]) -> Index:
        """The index in `folder`, which may not be there or be empty."""
        mark = os.path.join(folder, MARK)
        if not os.path.exists(mark):
            try:
                os.makedirs(folder, exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                raise BrokenIndex(f"{folder}: it is not a folder: name another one") from None
            if not _is_free(folder):
                raise BrokenIndex(f"{folder}: it has files and is not an index: name another one")
            with Writing(folder):
                if not os.path.exists(mark):  # nor made by another run since
                    for name in _FOLDERS:
                        os.makedirs(os.path.join(folder, name), exist_ok=True)
                    _write_settings(folder, {"format": FORMAT, "targets": None})
        return cls(folder)

    def refresh(self) -> None:
        """Read the settings again: another run may have written them. The caller has the lock."""
        self.settings = _read_settings(self.folder)

    @property
    def fragments(self) -> list[str]:
        """The names of the fragments that count, oldest first."""
        try:
            there = os.listdir(self.place())
        except OSError as error:
            raise _unreadable(self.place(), error) from error
        fragments = [name for entry in there if (name := FragmentName.of(entry)) is not None]
        joined = [name for name in fragments if name.serial]
        return sorted(str(name) for name in fragments if not any(map(name.is_in, joined)))

    def place(self, *names: str) -> str:
        """Where the folder of the fragments is, or what has such names in it."""
        return os.path.join(self.folder, "fragments", *names)

    def next_run(self) -> int:
        """The number of a run that begins now. BrokenIndex where there is none left."""
        names = map(FragmentName.of, self.fragments)
        run = max((int(name.last.partition("-")[0]) for name in names if name), default=0) + 1
        if run >= MOST_RUNS:
            raise BrokenIndex(f"{self.folder}: it had as many runs as it has numbers for: {AGAIN}")
        return run

    def check(self, fragments: Iterable[str]) -> None:
        """Compare tables with the sums that were written with them; BrokenIndex for another one.

        Readers of Parquet notice only some of what can happen to a file.
        """
        for fragment in fragments:
            try:
                sums = _read(self.place(fragment, SUMS))
                faults = [
                    _sum(name, _read(self.place(fragment, f"{name}.parquet"))) for name in TABLES
                ]
            except OSError as error:
                raise _unreadable(self.place(fragment), error) from error
            if sums != b"".join(faults):
                lines = zip(TABLES, faults, strict=True)
                wrong = [f"{name}.parquet" for name, line in lines if line not in sums] or [SUMS]
                raise BrokenIndex(f"{self.place(fragment, wrong[0])}: it is damaged: {AGAIN}")

    def look_over(self, fragments: Iterable[str], since: int) -> None:
        """As `check`, at the cost of a look at each file; BrokenIndex.

        Sizes are compared, and the sums of fragments with a file that is younger than `since`, in
        ns: whoever writes to one makes it younger.
        """
        for fragment in fragments:
            try:
                sums = _read(self.place(fragment, SUMS)).splitlines()
                tables = [os.stat(self.place(fragment, f"{name}.parquet")) for name in TABLES]
                youngest = os.stat(self.place(fragment, SUMS)).st_mtime_ns
            except OSError as error:
                raise _unreadable(self.place(fragment), error) from error
            youngest = max(youngest, *(status.st_mtime_ns for status in tables))
            paths = [line.rpartition(b" ")[0] for line in sums]
            damaged = [
                f"{name} {status.st_size}".encode()
                for name, status in zip(TABLES, tables, strict=True)
            ]
            if paths != damaged or youngest > since:
                self.check([fragment])

    def read_files(self, fragment: str, columns: list[str]) -> Any:
        """Columns of the table of files of a fragment. BrokenIndex where it cannot be read."""
        pa = need("pyarrow")
        path = self.place(fragment, "files.parquet")
        try:
            return read_table(path, columns)
        except (OSError, pa.ArrowException) as error:
            raise BrokenIndex(f"{path}: {error}: {AGAIN}") from error

    def count_rows(self, fragment: str) -> int:
        """How many rows the table of files of a fragment has."""
        path = self.place(fragment, "files.parquet")
        count: int = need("pyarrow.parquet").read_metadata(path).num_rows
        return count

    def publish(self, name: str, tables: dict[str, bytes]) -> None:
        """Add a fragment, atomically."""
        unfinished = self.place(UNFINISHED + name)
        _remove(unfinished)
        files = {f"{table}.parquet": tables[table] for table in TABLES}
        files[SUMS] = b"".join(_sum(table, tables[table]) for table in TABLES)
        os.mkdir(unfinished)
        for file, data in files.items():
            try:
                _write(os.path.join(unfinished, file), data)
            except OSError as error:
                error.filename = self.place(name, file)  # a full disk names none
                raise
        os.rename(unfinished, self.place(name))

    def clean(self) -> None:
        """Remove what does not count, unless somebody reads it; for the holder of the lock."""
        counting = set(self.fragments)
        rest = [entry for entry in os.listdir(self.place()) if entry not in counting]
        if rest and nobody_reads(self.place()):
            for entry in rest:
                _remove(self.place(entry))

    def is_described(self, description: str, stamp: Stamp | None) -> bool:
        """Whether the table of targets is of this file as it is, and of the files there were."""
        known = (self.settings["targets"], self.settings.get("described"))
        return stamp is not None and known == (description, [*stamp])

    def write_targets(
        self, description: str | None, stamp: Stamp | None, table: bytes | None
    ) -> None:
        """Remember the file that describes targets, and replace the table of these."""
        if table is not None:
            self._say(described=None)  # until the table is that of the description
            write_whole(os.path.join(self.folder, "targets.parquet"), table)
        self._say(targets=description, described=None if stamp is None else [*stamp])

    @property
    def roots(self) -> list[bytes]:
        """The folders that were indexed, whether or not there are files in them."""
        return [os.fsencode(root) for root in self.settings.get("roots", ())]

    def add_roots(self, roots: Iterable[bytes]) -> None:
        """Remember folders for later runs."""
        self._say(roots=sorted({*map(os.fsdecode, (*self.roots, *roots))}))

    def _say(self, **said: object) -> None:
        """Change settings, in one step."""
        if self.settings != {**self.settings, **said}:
            self.settings.update(said)
            _write_settings(self.folder, self.settings)


def _read_settings(folder: str) -> dict[str, Any]:
    """The settings of an index. BrokenIndex where there is none, or none of this release."""
    mark = os.path.join(folder, MARK)
    try:
        settings = json.loads(_read(mark))
    except (FileNotFoundError, NotADirectoryError):
        raise BrokenIndex(
            f"{folder}: no index: make one with `pylink dedup index DIR -o {folder}`"
        ) from None
    except OSError as error:
        raise _unreadable(mark, error) from error
    except (ValueError, RecursionError) as error:
        raise BrokenIndex(f"{mark}: it is damaged: {AGAIN}") from error
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise BrokenIndex(f"{folder}: an index of another release of pylink: {AGAIN}")
    roots = settings.get("roots", [])
    if (
        not isinstance(settings.get("targets", 0), str | None)
        or not isinstance(roots, list)
        or not all(isinstance(root, str) and root.startswith("/") for root in roots)
    ):
        raise BrokenIndex(f"{mark}: it is damaged: {AGAIN}")
    return settings


def _unreadable(path: str, error: OSError) -> BrokenIndex:
    """A part of an index that cannot be read; where it may not be, another one would not help."""
    advice = "" if isinstance(error, PermissionError) else f": {AGAIN}"
    return BrokenIndex(f"{path}: {reason_of(error)}{advice}")


def _is_free(folder: str | os.PathLike[str]) -> bool:
    """Whether the folder is empty, or a process was killed in it before it had made an index."""
    names = {*os.listdir(folder)}
    return names <= {*_FOLDERS, WRITER} and not any(
        os.listdir(os.path.join(folder, name)) for name in names.intersection(_FOLDERS)
    )


def _remove(folder: str) -> None:
    """Remove a folder that is not a fragment, if it is there."""
    if os.path.exists(folder):
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)


def _sum(table: str, data: bytes) -> bytes:
    """A line of the sums of a fragment."""
    return f"{table} {len(data)} {zlib.crc32(data):08x}\n".encode()


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as stream:
        stream.write(data)


def _write_settings(folder: str | os.PathLike[str], settings: dict[str, Any]) -> None:
    write_whole(os.path.join(folder, MARK), (json.dumps(settings) + "\n").encode())
