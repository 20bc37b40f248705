"""An index on disk: a folder with fragments, targets, and what is known of folding.

    INDEX/index.json           format, description of targets
    INDEX/fragments/RUN-PART/  files.parquet, objects.parquet, sections.parquet, and their sums
    INDEX/state                what follows from that for the next run, see `state`
    INDEX/targets.parquet      which file is of which target, where a description says
    INDEX/folding/KEY.json     what folding does for one target, see `folding`

A fragment is made beside the others under another name and gets its own when it is complete, so a
run that ends in the middle leaves those that it finished, and they count. Runs take turns.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pylink.command.packages import need
from pylink.errors import reason_of
from pylink.fleet.columns import GONE, TABLES, read_table
from pylink.fleet.walk import Stamp
from pylink.outputs.wholefile import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable


# Another number for every change after which an older index cannot be gone on with.
FORMAT = 2

MARK = "index.json"
UNFINISHED = ".unfinished"
SUMS = "sums"
AGAIN = "remove the index and make it again"

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
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        return cls(found["first"], found["last"] or found["first"], int(found["serial"] or 0))

    def is_in(self, other: FragmentName) -> bool:
        """Whether the other stands for this one."""
        inside = other.first <= self.first and self.last <= other.last
        return inside and other.serial > self.serial

    def __str__(self) -> str:
        return f"{self.first}+{self.last}.{self.serial}" if self.serial else self.first


class Index:
    """An index that is there; `read_state` and the like look at its files each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.settings = json.loads((folder / MARK).read_bytes())
        except FileNotFoundError:
            raise BrokenIndex(
                f"{folder}: no index: make one with `pylink dedup index DIR -o {folder}`"
            ) from None
        except OSError as error:
            raise BrokenIndex(f"{folder / MARK}: {reason_of(error)}: {AGAIN}") from error
        except (ValueError, RecursionError) as error:
            raise BrokenIndex(f"{folder / MARK}: it is damaged: {AGAIN}") from error
        if not isinstance(self.settings, dict) or self.settings.get("format") != FORMAT:
            raise BrokenIndex(f"{folder}: an index of another release of pylink: {AGAIN}")
        if not isinstance(self.settings.get("targets", 0), str | None):
            raise BrokenIndex(f"{folder / MARK}: it is damaged: {AGAIN}")

    @classmethod
    def open_or_make(cls, folder: Path) -> Index:
        """The index in `folder`, which may not be there or be empty."""
        if not (folder / MARK).exists():
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise BrokenIndex(f"{folder}: it has files and is no index: name another folder")
            (folder / "fragments").mkdir(exist_ok=True)
            (folder / "folding").mkdir(exist_ok=True)
            write_settings(folder, {"format": FORMAT, "targets": None, "described": None})
        return cls(folder)

    @property
    def fragments(self) -> list[Path]:
        """The folders of the fragments that count, oldest first."""
        try:
            there = [*(self.folder / "fragments").iterdir()]
        except OSError as error:
            reason = reason_of(error)
            raise BrokenIndex(f"{self.folder / 'fragments'}: {reason}: {AGAIN}") from error
        found = [(name, one) for one in there if (name := FragmentName.of(one.name)) is not None]
        joined = [name for name, _ in found if name.serial]
        return sorted(one for name, one in found if not any(map(name.is_in, joined)))

    def next_run(self) -> int:
        """The number of a run that begins now."""
        names = [FragmentName.of(one.name) for one in self.fragments]
        return max((int(name.last.partition("-")[0]) for name in names if name), default=0) + 1

    def tables(self, name: str) -> list[str]:
        """The Parquet files of one table, oldest first."""
        return [str(one / f"{name}.parquet") for one in self.fragments]

    def check(self, fragments: Iterable[Path]) -> None:
        """Compare tables with the sums that were written with them; BrokenIndex for another one.

        Readers of Parquet notice only some of what can happen to a file.
        """
        for one in fragments:
            try:
                sums = (one / SUMS).read_bytes()
                found = [_sum(table, (one / f"{table}.parquet").read_bytes()) for table in TABLES]
            except OSError as error:
                raise BrokenIndex(f"{one}: {reason_of(error)}: {AGAIN}") from error
            if sums != b"".join(found):
                wrong = [
                    f"{t}.parquet"
                    for t, line in zip(TABLES, found, strict=True)
                    if line not in sums
                ]
                raise BrokenIndex(f"{one / (wrong or [SUMS])[0]}: it is damaged: {AGAIN}")

    def read_state(self) -> dict[tuple[bytes, bytes], Stamp]:
        """What was read of each file, (root, path), that was there at the last run."""
        state: dict[tuple[bytes, bytes], Stamp] = {}
        columns = ["root", "path", *Stamp._fields, "kind"]
        for fragment in self.fragments:
            table = self.read_files(fragment, columns)
            rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
            for root, name, size, mtime, ctime, inode, kind in rows:
                if kind == GONE:
                    state.pop((root, name), None)
                else:
                    state[root, name] = Stamp(size, mtime, ctime, inode)
        return state

    def read_files(self, fragment: Path, columns: list[str]) -> Any:
        """Columns of the table of files of a fragment. BrokenIndex where it cannot be read."""
        pa = need("pyarrow")
        path = fragment / "files.parquet"
        try:
            return read_table(path, columns)
        except (OSError, pa.ArrowException) as error:
            raise BrokenIndex(f"{path}: {error}: {AGAIN}") from error

    def count_rows(self, fragment: str) -> int:
        """How many rows the table of files of a fragment has."""
        path = self.folder / "fragments" / fragment / "files.parquet"
        count: int = need("pyarrow.parquet").read_metadata(path).num_rows
        return count

    def publish(self, name: str, tables: dict[str, bytes]) -> None:
        """Add a fragment, whole or not at all."""
        folder = self.folder / "fragments"
        draft = folder / (UNFINISHED + name)
        _remove(draft)
        files = {f"{table}.parquet": tables[table] for table in TABLES}
        files[SUMS] = b"".join(_sum(table, tables[table]) for table in TABLES)
        draft.mkdir()
        for file, data in files.items():
            try:
                (draft / file).write_bytes(data)
            except OSError as error:
                error.filename = str(folder / name / file)  # a full disk names none
                raise
        draft.rename(folder / name)

    def clean(self) -> None:
        """Remove what a run left behind that was ended; for who holds the lock."""
        counting = set(self.fragments)
        for one in (self.folder / "fragments").iterdir():
            if one not in counting:
                _remove(one)

    def is_described(self, description: str, stamp: Stamp | None) -> bool:
        """Whether the table of targets is of this file as it is, and of the files there were."""
        known = (self.settings["targets"], self.settings.get("described"))
        return stamp is not None and known == (description, [*stamp])

    def write_targets(
        self, description: str | None, stamp: Stamp | None, table: bytes | None
    ) -> None:
        """Remember the file that describes targets, and replace the table of these."""
        if table is not None:
            write_whole(str(self.folder / "targets.parquet"), table)
        said = {"targets": description, "described": None if stamp is None else [*stamp]}
        if self.settings != {**self.settings, **said}:
            self.settings.update(said)
            write_settings(self.folder, self.settings)


class Lock:
    """The right to change an index, for one process at a time."""

    def __init__(self, index: Index) -> None:
        self._path = index.folder / "lock"
        self._descriptor = -1

    def __enter__(self) -> Lock:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise BrokenIndex(f"{self._path.parent}: another run is writing this index") from error
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _remove(folder: Path) -> None:
    """Remove a folder that is no fragment, if it is there."""
    if folder.exists():
        from shutil import rmtree  # noqa: PLC0415 -- seldom something is left behind

        rmtree(folder, ignore_errors=True)


def _sum(table: str, data: bytes) -> bytes:
    """A line of the sums of a fragment."""
    return f"{table} {len(data)} {zlib.crc32(data):08x}\n".encode()


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    write_whole(str(folder / MARK), (json.dumps(settings) + "\n").encode())
