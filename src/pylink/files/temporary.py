"""Temporary names of files that are being written: whose they are, and what killed processes left.

The owner of a temporary name holds a lock on the file, so that nobody takes what is in use for a
leftover.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    Key = tuple[int, int, bytes]  # device and inode of the folder, and the name

# Temporary names that one file may have at once: links of the same output at the same moment.
MOST_NAMES = 64
# Bytes of the file's own name in a temporary one; file systems take 255 for all of it.
_KEPT_OF_NAME = 200

_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

# Temporary names that this process holds: a lock keeps only other processes out.
_held: dict[Key, object] = {}


def temporary_name(name: bytes, number: int) -> bytes:
    """The temporary name of that number for a file called `name`."""
    return b".%s.%d.pylink" % (name[:_KEPT_OF_NAME], number)


def hold(folder: int, name: bytes, owner: object) -> Key | None:
    """Keep a temporary name in an open folder for `owner`; None when this process has it in use."""
    status = os.fstat(folder)
    key = status.st_dev, status.st_ino, name
    return key if _held.setdefault(key, owner) is owner else None


def let_go(key: Key) -> None:
    """Give a temporary name back."""
    _held.pop(key, None)


def clean(folder: int, name: bytes) -> None:
    """Remove what a killed process left of a file called `name`, under the first temporary name."""
    owner = object()
    key = hold(folder, temporary_name(name, 0), owner)
    if key is not None:
        try:
            remove_leftover(key[2], folder)
        finally:
            let_go(key)


def lock(descriptor: int) -> bool | None:
    """Lock a file for this process; False when another has it, None where there are no locks."""
    try:
        os.lockf(descriptor, os.F_TLOCK, 0)
    except OSError as error:
        return False if error.errno in (errno.EACCES, errno.EAGAIN) else None
    return True


def has_name(descriptor: int, name: bytes, folder: int) -> bool:
    try:
        named = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(named, os.fstat(descriptor))


def remove_leftover(name: bytes, folder: int) -> bool:
    """Remove what a killed process left under a temporary name; whether the name is free now.

    What is locked belongs to a link that runs, and what another user or program put there is not
    ours to remove.
    """
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=folder)
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
            and has_name(descriptor, name, folder)
        ):
            os.unlink(name, dir_fd=folder)
            return True
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return False
