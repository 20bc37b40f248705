"""An index on disk: a directory with fragments, targets, and results of folding.

    INDEX/index.json           format, indexed directories, name of the description of targets
    INDEX/fragments/RUN-PART/  files.parquet, objects.parquet, sections.parquet; sums: checksums
    INDEX/state                the known files in one file, see `state`
    INDEX/targets.parquet      the files of each target, if there is a description
    INDEX/folding/KEY.json     the result of folding for one target, see `folding`

A target is what a build links from several files. A description is a file of the build that says
which files each target has, see `manifest`. A fragment is made under a temporary name and renamed
when it is complete, so an interrupted run keeps its complete fragments. Only one run at a time
writes an index.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from dataclasses import dataclass
from typing import Any

from pylink.diagnostics.errors import reason_of
from pylink.files.atomic import write_whole
from pylink.fleet.columns import MOST_RUNS, TABLES, read_table
from pylink.fleet.locks import WRITER, Writing, is_unread
from pylink.packages.extras import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.fleet.walk import Stamp


# Number of the index's format. A change after which older indexes cannot be updated increments it.
FORMAT = 3

SETTINGS_FILE = "index.json"
UNFINISHED = ".unfinished"  # prefix of the name of a fragment that is not complete
SUMS = "sums"  # file with the checksums of a fragment's tables
REMAKE_ADVICE = "remove the index and make it again"  # advice at the end of messages
_DIRECTORIES = ("fragments", "folding")

_NAME = re.compile(r"(?P<first>\d+-\d+)(?:\+(?P<last>\d+-\d+)\.(?P<serial>\d+))?")


class BrokenIndex(Exception):
    """An index cannot be used; the text names it and says what to do."""


@dataclass(frozen=True, slots=True)
class FragmentName:
    """The name of a fragment: RUN-PART, or FIRST+LAST.SERIAL if it replaces others.

    FIRST and LAST are the RUN-PART of the first and the last fragment that it replaces, and SERIAL
    is larger than their serials. For a name RUN-PART, `first` and `last` are RUN-PART, and `serial`
    is 0.
    """

    first: str
    last: str
    serial: int

    @classmethod
    def of(cls, name: str) -> FragmentName | None:
        """Parse a name; None if it is not the name of a fragment."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        return cls(match["first"], match["last"] or match["first"], int(match["serial"] or 0))

    def is_in(self, other: FragmentName) -> bool:
        """Return whether this fragment was merged into the other."""
        inside = other.first <= self.first and self.last <= other.last
        return inside and other.serial > self.serial

    def __str__(self) -> str:
        return f"{self.first}+{self.last}.{self.serial}" if self.serial else self.first


class Index:
    """An existing index; `fragments` and other members read its files on each call."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = os.fspath(directory)
        self.settings = _read_settings(self.directory)

    @classmethod
    def open_or_make(cls, directory: str | os.PathLike[str]) -> Index:
        """Open the index in `directory`, creating it if the directory is missing or empty.

        BrokenIndex if the directory has other files, BusyIndex while another run creates the index.
        """
        mark = os.path.join(directory, SETTINGS_FILE)
        if not os.path.exists(mark):
            try:
                os.makedirs(directory, exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                raise BrokenIndex(f"{directory}: it is not a directory: name another one") from None
            if not _is_free(directory):
                raise BrokenIndex(
                    f"{directory}: it has files and is not an index: name another one"
                )
            with Writing(directory):
                if not os.path.exists(mark):  # not created by another run meanwhile
                    for name in _DIRECTORIES:
                        os.makedirs(os.path.join(directory, name), exist_ok=True)
                    _write_settings(directory, {"format": FORMAT, "targets": None})
        return cls(directory)

    def refresh(self) -> None:
        """Read the settings again, which another run may have changed; the caller has the lock."""
        self.settings = _read_settings(self.directory)

    @property
    def fragments(self) -> list[str]:
        """The names of the fragments that were not merged into another one, oldest first."""
        try:
            entries = os.listdir(self.fragment_path())
        except OSError as error:
            raise _unreadable(self.fragment_path(), error) from error
        fragments = [name for entry in entries if (name := FragmentName.of(entry)) is not None]
        joined = [name for name in fragments if name.serial]
        return sorted(str(name) for name in fragments if not any(map(name.is_in, joined)))

    def fragment_path(self, *names: str) -> str:
        """Return the path of a fragment or of a file in it; without names, of all fragments."""
        return os.path.join(self.directory, "fragments", *names)

    def next_run(self) -> int:
        """Return the number of a new run; BrokenIndex if no number is left."""
        names = map(FragmentName.of, self.fragments)
        run = max((int(name.last.partition("-")[0]) for name in names if name), default=0) + 1
        if run >= MOST_RUNS:
            raise BrokenIndex(f"{self.directory}: no run number is left: {REMAKE_ADVICE}")
        return run

    def check(self, fragments: Iterable[str]) -> None:
        """Compare the tables of fragments with their checksums; BrokenIndex if one differs.

        Readers of Parquet detect only some damage.
        """
        for fragment in fragments:
            try:
                sums = _read(self.fragment_path(fragment, SUMS))
                checksum_lines = [
                    _checksum_line(name, _read(self.fragment_path(fragment, f"{name}.parquet")))
                    for name in TABLES
                ]
            except OSError as error:
                raise _unreadable(self.fragment_path(fragment), error) from error
            if sums != b"".join(checksum_lines):
                lines = zip(TABLES, checksum_lines, strict=True)
                wrong = [f"{name}.parquet" for name, line in lines if line not in sums] or [SUMS]
                raise BrokenIndex(
                    f"{self.fragment_path(fragment, wrong[0])}: it is damaged: {REMAKE_ADVICE}"
                )

    def check_stamps(self, fragments: Iterable[str], since: int) -> None:
        """Check the sizes and times of tables, which is faster than `check`; BrokenIndex on damage.

        Checksums are compared only in fragments in which a size differs from the stored one, or a
        file was modified after `since` (ns).
        """
        for fragment in fragments:
            try:
                sums = _read(self.fragment_path(fragment, SUMS)).splitlines()
                tables = [
                    os.stat(self.fragment_path(fragment, f"{name}.parquet")) for name in TABLES
                ]
                youngest = os.stat(self.fragment_path(fragment, SUMS)).st_mtime_ns
            except OSError as error:
                raise _unreadable(self.fragment_path(fragment), error) from error
            youngest = max(youngest, *(status.st_mtime_ns for status in tables))
            stored_sizes = [line.rpartition(b" ")[0] for line in sums]
            sizes = [
                f"{name} {status.st_size}".encode()
                for name, status in zip(TABLES, tables, strict=True)
            ]
            if stored_sizes != sizes or youngest > since:
                self.check([fragment])

    def read_files(self, fragment: str, columns: list[str]) -> Any:
        """Read columns of a fragment's table of files; BrokenIndex if it cannot be read."""
        pa = need("pyarrow")
        path = self.fragment_path(fragment, "files.parquet")
        try:
            return read_table(path, columns)
        except (OSError, pa.ArrowException) as error:
            raise BrokenIndex(f"{path}: {error}: {REMAKE_ADVICE}") from error

    def count_rows(self, fragment: str) -> int:
        """Return the number of rows in a fragment's table of files."""
        path = self.fragment_path(fragment, "files.parquet")
        count: int = need("pyarrow.parquet").read_metadata(path).num_rows
        return count

    def publish(self, name: str, tables: dict[str, bytes]) -> None:
        """Add the fragment `name` atomically; `tables` has its Parquet files by table name."""
        unfinished = self.fragment_path(UNFINISHED + name)
        _remove(unfinished)
        files = {f"{table}.parquet": tables[table] for table in TABLES}
        files[SUMS] = b"".join(_checksum_line(table, tables[table]) for table in TABLES)
        os.mkdir(unfinished)
        for file, data in files.items():
            try:
                _write(os.path.join(unfinished, file), data)
            except OSError as error:
                error.filename = self.fragment_path(name, file)  # a full disk's error has none
                raise
        os.rename(unfinished, self.fragment_path(name))

    def remove_leftovers(self) -> None:
        """Remove merged and incomplete fragments, unless a process reads the index.

        The caller holds the lock.
        """
        current = set(self.fragments)
        outdated = [entry for entry in os.listdir(self.fragment_path()) if entry not in current]
        if outdated and is_unread(self.fragment_path()):
            for entry in outdated:
                _remove(self.fragment_path(entry))

    def is_described(self, description: str, stamp: Stamp | None) -> bool:
        """Return whether the table of targets was made from this version of the description.

        `description` is the name of its file, `stamp` the file's stamp; False if that is None.
        """
        stored = (self.settings["targets"], self.settings.get("described"))
        return stamp is not None and stored == (description, [*stamp])

    def write_targets(
        self, description: str | None, stamp: Stamp | None, table: bytes | None
    ) -> None:
        """Store the name and stamp of the description, and replace the table of targets.

        `table` is a Parquet file; None keeps the table that the index has.
        """
        if table is not None:
            self._update_settings(described=None)  # until the table matches the description
            write_whole(os.path.join(self.directory, "targets.parquet"), table)
        self._update_settings(targets=description, described=None if stamp is None else [*stamp])

    @property
    def roots(self) -> list[bytes]:
        """The indexed directories, empty ones included."""
        return [os.fsencode(root) for root in self.settings.get("roots", ())]

    def add_roots(self, roots: Iterable[bytes]) -> None:
        """Store directories for later runs."""
        self._update_settings(roots=sorted({*map(os.fsdecode, (*self.roots, *roots))}))

    def _update_settings(self, **changes: object) -> None:
        """Change settings atomically."""
        if self.settings != {**self.settings, **changes}:
            self.settings.update(changes)
            _write_settings(self.directory, self.settings)


def _read_settings(directory: str) -> dict[str, Any]:
    """Read the settings; BrokenIndex if missing, unreadable, damaged or of another release."""
    mark = os.path.join(directory, SETTINGS_FILE)
    try:
        settings = json.loads(_read(mark))
    except (FileNotFoundError, NotADirectoryError):
        raise BrokenIndex(
            f"{directory}: not an index: make one with `pylink dedup index DIR -o {directory}`"
        ) from None
    except OSError as error:
        raise _unreadable(mark, error) from error
    except (ValueError, RecursionError) as error:
        raise BrokenIndex(f"{mark}: it is damaged: {REMAKE_ADVICE}") from error
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        raise BrokenIndex(f"{directory}: an index of another release of pylink: {REMAKE_ADVICE}")
    roots = settings.get("roots", [])
    if (
        not isinstance(settings.get("targets", 0), str | None)
        or not isinstance(roots, list)
        or not all(isinstance(root, str) and root.startswith("/") for root in roots)
    ):
        raise BrokenIndex(f"{mark}: it is damaged: {REMAKE_ADVICE}")
    return settings


def _unreadable(path: str, error: OSError) -> BrokenIndex:
    """Make the error of an unreadable file; without permission, a new index would not help."""
    advice = "" if isinstance(error, PermissionError) else f": {REMAKE_ADVICE}"
    return BrokenIndex(f"{path}: {reason_of(error)}{advice}")


def _is_free(directory: str | os.PathLike[str]) -> bool:
    """Return whether the directory is empty, or has only leftovers of creating an index."""
    names = {*os.listdir(directory)}
    return names <= {*_DIRECTORIES, WRITER} and not any(
        os.listdir(os.path.join(directory, name)) for name in names.intersection(_DIRECTORIES)
    )


def _remove(directory: str) -> None:
    """Remove a directory, such as an outdated fragment, if it exists."""
    if os.path.exists(directory):
        from shutil import rmtree

        rmtree(directory, ignore_errors=True)


def _checksum_line(table: str, data: bytes) -> bytes:
    """Return the line of a table in the file with checksums: name, size, CRC-32."""
    return f"{table} {len(data)} {zlib.crc32(data):08x}\n".encode()


def _read(path: str) -> bytes:
    """Return the contents of a file."""
    with open(path, "rb") as stream:
        return stream.read()


def _write(path: str, data: bytes) -> None:
    """Write a file of a fragment that is not complete."""
    with open(path, "wb") as stream:
        stream.write(data)


def _write_settings(directory: str | os.PathLike[str], settings: dict[str, Any]) -> None:
    """Replace the settings of an index atomically."""
    write_whole(os.path.join(directory, SETTINGS_FILE), (json.dumps(settings) + "\n").encode())
