"""The folder in which the socket of a server lies: private, and removed by others if it is left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile

# The path of the socket has at most 107 bytes; mkdtemp adds 8 to the prefix.
PREFIX = "pylink-serve-"
SOCKET = "socket"
LONGEST_PARENT = 107 - len(f"/{PREFIX}XXXXXXXX/{SOCKET}")


def make_folder() -> str:
    """A new folder of mode 0700 in which the path of a socket is not too long for the system.

    Those of servers that were killed are removed.
    """
    places = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp")
    # Clients run in other directories, and tempfile leaves a TMPDIR of `.` as it is.
    for parent in [os.path.abspath(place) if place else place for place in places]:
        short = len(os.fsencode(parent)) <= LONGEST_PARENT
        if short and os.access(parent, os.W_OK | os.X_OK):
            break
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                remove_left(entry.path)
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        if hold(folder):
            return folder


def hold(folder: str) -> bool:
    """Tell others that a server has this folder, until this process and all that it forks end.

    False when it is gone, since another server came first.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    with contextlib.suppress(OSError):  # no locks on this file system: none will be removed there
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.fstat(descriptor).st_nlink > 0


def remove_left(folder: str) -> None:
    """Remove a folder of this user's that no server has."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(SOCKET, dir_fd=descriptor)
            os.rmdir(folder)
    except OSError:  # a server has it
        pass
    finally:
        os.close(descriptor)
