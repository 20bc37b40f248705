"""Temporary names of files that are being written: their owners, and leftovers of killed processes.

The process that owns a temporary name has a lock on the file. A file without a lock is a leftover.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    Key = tuple[int, int, bytes]  # device and inode of the directory, and the name

# Temporary names of one file: the number of links that may write the same output at once.
MOST_NAMES = 64
# Limit of the bytes of the file's name in its temporary name; file systems allow 255 in total.
_NAME_PREFIX_SIZE = 200

# Flags to open a leftover, whose name may now be a link or a pipe.
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

# Temporary names in use by this process: locks exclude only other processes.
_held: dict[Key, object] = {}


def temporary_name(name: bytes, number: int) -> bytes:
    """Return the temporary name with this number for a file called `name`."""
    return b".%s.%d.pylink" % (name[:_NAME_PREFIX_SIZE], number)


def hold(directory: int, name: bytes, owner: object) -> Key | None:
    """Reserve a temporary name in an open directory for `owner`; None if this process uses it."""
    status = os.fstat(directory)
    key = status.st_dev, status.st_ino, name
    return key if _held.setdefault(key, owner) is owner else None


def release(key: Key) -> None:
    """Release a temporary name that `hold` reserved."""
    _held.pop(key, None)


def remove_first_leftover(directory: int, name: bytes) -> None:
    """Remove the first temporary name of the file `name` if a killed process left it."""
    owner = object()
    key = hold(directory, temporary_name(name, 0), owner)
    if key is not None:
        try:
            remove_leftover(key[2], directory)
        finally:
            release(key)


def lock(descriptor: int) -> bool | None:
    """Lock a file for this process; False if another has the lock, None if locks do not work."""
    try:
        os.lockf(descriptor, os.F_TLOCK, 0)
    except OSError as error:
        return False if error.errno in (errno.EACCES, errno.EAGAIN) else None
    return True


def has_name(descriptor: int, name: bytes, directory: int) -> bool:
    """Return whether an open file is the one with this name in an open directory."""
    try:
        entry = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(entry, os.fstat(descriptor))


def remove_leftover(name: bytes, directory: int) -> bool:
    """Remove a leftover of a killed process; True if the temporary name is free now.

    A locked file belongs to a running link. A file of another user, or of another kind, stays.
    """
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        if (
            stat.S_ISREG(status.st_mode)
            and status.st_nlink == 1
            and status.st_uid == os.geteuid()
            and lock(descriptor)
            and has_name(descriptor, name, directory)
        ):
            os.unlink(name, dir_fd=directory)
            return True
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return False
