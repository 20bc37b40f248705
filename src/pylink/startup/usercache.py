"""The user's cache of bundles, for installations that this user may not write.

A bundle is a program: who can write it decides what runs. The folder has mode 0700 and belongs
to the effective user, the file has mode 0600, and a process with another user's rights (setuid)
or with another user's HOME has no cache. src/_native/launcher/usercache.h makes the same checks on
the open descriptors before a bundle is used, and verifies its bytes.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

# Bundles not written for so many seconds are removed: their installations are probably gone.
UNUSED_SECONDS = 60 * 86400


def cache_folder() -> str | None:
    """Path of this user's folder of bundles, which may not exist; None if it would be unsafe."""
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
    """The file name in the cache of the bundle `name` for the package in the folder `package`."""
    status = os.stat(package)
    return f"{status.st_dev:x}-{status.st_ino:x}.{name}"


def open_folder(path: str) -> int:
    """Open the folder, creating it if needed, and return a descriptor.

    OSError if its owner or mode is not safe.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(folder)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) != 0o700:
        os.close(folder)
        raise PermissionError(f"{path} is not a folder of this user's with mode 0700")
    return folder


def write_cached(path: str, name: str, bundle: bytes) -> None:
    """Write a bundle into the folder and remove old bundles there; OSError."""
    folder = open_folder(path)
    try:
        unfinished = f".{name}.{os.getpid()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(unfinished, flags, 0o600, dir_fd=folder), "wb") as stream:
                os.fchmod(stream.fileno(), 0o600)
                stream.write(bundle)
            os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            _remove(unfinished, folder)
            raise
        before = time.time() - UNUSED_SECONDS
        for other in os.listdir(folder):
            if os.stat(other, dir_fd=folder, follow_symlinks=False).st_mtime < before:
                _remove(other, folder)
    finally:
        os.close(folder)


def _remove(name: str, folder: int) -> None:
    with suppress(OSError):  # already removed, or a folder
        os.unlink(name, dir_fd=folder)
