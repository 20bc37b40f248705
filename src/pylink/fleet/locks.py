"""Locks of an index: one writer, and any number of readers.

Processes may read while one writes: fragments never change, and merged ones are removed only if no
process reads. Locks end with their process, even if it is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os

WRITER = "lock"  # file that the writer locks

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class BusyIndex(Exception):
    """Another process writes an index; the text names it."""


class Writing:
    """The right to change an index, held in a `with` block; BusyIndex if another process has it."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = os.fspath(directory)
        self._descriptor = -1

    def __enter__(self) -> Writing:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        path = os.path.join(self._directory, WRITER)
        self._descriptor = os.open(path, flags, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            if isinstance(error, BlockingIOError):
                raise BusyIndex(f"{self._directory}: another run is writing this index") from error
            error.filename = path  # the error of a file system without locks names no file
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


class Reading:
    """Keeps the files in a directory of fragments from being removed, until it is closed.

    On file systems without locks, a file may still disappear.
    """

    def __init__(self, fragments: str) -> None:
        self._descriptor = -1
        with contextlib.suppress(OSError):
            self._descriptor = os.open(fragments, _DIRECTORY_FLAGS)
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


def is_unread(fragments: str) -> bool:
    """Return whether no `Reading` of this directory is open, in this or another process.

    True if the file system has no locks.
    """
    descriptor = os.open(fragments, _DIRECTORY_FLAGS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return True
