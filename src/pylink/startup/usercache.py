"""The user's cache of bundles, for installations that this user may not write.

A bundle is a program: who can write it decides what runs. The directory has mode 0700 and belongs
to the effective user, the file has mode 0600, and a process with another user's rights (setuid)
or with another user's HOME has no cache. src/_native/launcher/usercache.h makes the same checks on
the open descriptors before a bundle is used, and verifies its bytes.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

# Bundles that were written longer ago are removed: their installations are probably gone.
MAX_AGE_S = 60 * 86400


def cache_directory() -> str | None:
    """Return the path of this user's directory of bundles, which may not exist; None if unsafe."""
    user = os.geteuid()
    if os.getuid() != user or os.getgid() != os.getegid():
        return None
    home, cache = os.environ.get("HOME", ""), os.environ.get("XDG_CACHE_HOME", "")
    try:
        if home and os.stat(home).st_uid != user:
            return None
        if cache.startswith("/"):
            owner = os.stat(cache).st_uid if os.path.exists(cache) else user
            return f"{cache}/pylink" if owner == user else None
    except OSError:
        return None
    return f"{home}/.cache/pylink" if home.startswith("/") else None


def cached_name(package: str, name: str) -> str:
    """Return the file name in the cache of bundle `name` of the package in directory `package`."""
    status = os.stat(package)
    return f"{status.st_dev:x}-{status.st_ino:x}.{name}"


def _open_directory(path: str) -> int:
    """Open the directory, creating it if needed, and return a descriptor.

    OSError if its owner or mode is not safe.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(directory)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != 0o700:
        os.close(directory)
        raise PermissionError(f"{path} is not a directory of this user's with mode 0700")
    return directory


def write_cached(path: str, name: str, bundle: bytes) -> None:
    """Write a bundle into the directory and remove old bundles there; OSError if that fails.

    `files.atomic` is for directories in which others write, too: it locks, and removes what a
    killed process left. Only this user writes here, and leftovers are removed with old bundles.
    """
    directory = _open_directory(path)
    try:
        unfinished = f".{name}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(unfinished, flags, 0o600, dir_fd=directory), "wb") as stream:
                os.fchmod(stream.fileno(), 0o600)
                stream.write(bundle)
            os.rename(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            _remove(unfinished, directory)
            raise
        oldest_kept = time.time() - MAX_AGE_S
        for other in os.listdir(directory):
            if os.stat(other, dir_fd=directory, follow_symlinks=False).st_mtime < oldest_kept:
                _remove(other, directory)
    finally:
        os.close(directory)


def _remove(name: str, directory: int) -> None:
    """Remove a file of the directory with this descriptor, if it can be removed."""
    with suppress(OSError):  # already removed, or a directory
        os.unlink(name, dir_fd=directory)
