"""The private directory of a server's socket. Later servers remove it if its server was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile

# The system allows 107 bytes for the path of a socket; mkdtemp adds 8 to the prefix.
PREFIX = "pylink-serve-"
SOCKET = "socket"
LONGEST_PARENT = 107 - len(f"/{PREFIX}XXXXXXXX/{SOCKET}")


def make_directory() -> str:
    """Create a directory of mode 0700 in which the path of a socket is short enough for the system.

    Directories of servers that were killed are removed.
    """
    places = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp")
    # Clients run in other directories, and tempfile does not make a TMPDIR of `.` absolute.
    for parent in [os.path.abspath(place) if place else place for place in places]:
        is_short = len(os.fsencode(parent)) <= LONGEST_PARENT
        if is_short and os.access(parent, os.W_OK | os.X_OK):
            break
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                _remove_abandoned(entry.path)
    while True:
        directory = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        if _lock_directory(directory):
            return directory


def _lock_directory(directory: str) -> bool:
    """Lock the directory until this process and all its children end.

    False if another server has removed it.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    with contextlib.suppress(OSError):  # without locks on this file system, no directory is removed
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fstat(descriptor).st_nlink > 0


def _remove_abandoned(directory: str) -> None:
    """Remove a directory of this user that no server has locked."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(SOCKET, dir_fd=descriptor)
            os.rmdir(directory)
    except OSError:  # a server has locked it
        pass
    finally:
        os.close(descriptor)
