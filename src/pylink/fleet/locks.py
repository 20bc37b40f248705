"""Who may change an index, and who reads it.

One process at a time writes. Any number read, also while one writes: what a reader found stays
until it ends, since fragments never change, and those that others took the place of are removed
when nobody reads. Locks go with the process that has them, however it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

WRITER = "lock"

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class BusyIndex(Exception):
    """Another process writes an index; the text names it."""


class Writing:
    """The right to change the index in a folder, for one process at a time."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        self._descriptor = -1

    def __enter__(self) -> Writing:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        path = os.path.join(self._folder, WRITER)
        self._descriptor = os.open(path, flags, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            if isinstance(error, BlockingIOError):
                raise BusyIndex(f"{self._folder}: another run is writing this index") from error
            error.filename = path  # of a file system without locks
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


class Reading:
    """Whoever has one finds the files of an index until it is closed, in a folder of fragments.

    Where a file system has no locks, a file may be missed.
    """

    def __init__(self, fragments: str) -> None:
        self._descriptor = -1
        with contextlib.suppress(OSError):
            self._descriptor = os.open(fragments, _FOLDER)
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


def nobody_reads(fragments: str) -> bool:
    """Whether no other process has a `Reading` of this folder, as far as that can be known."""
    descriptor = os.open(fragments, _FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return True
