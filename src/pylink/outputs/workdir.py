"""The working directory, which may have been deleted."""

from __future__ import annotations

import os

_DELETED = " (deleted)"  # what the kernel adds to the name


def working_directory() -> str:
    """The path that the working directory has, or had when it was deleted; empty if unknown."""
    try:
        return os.getcwd()
    except OSError:
        pass
    try:
        return os.readlink("/proc/self/cwd").removesuffix(_DELETED)
    except OSError:
        return ""


def absolute(path: str) -> str:
    """The path from the root on, as os.path.abspath gives it where there is a working directory."""
    return os.path.normpath(os.path.join(working_directory(), path))
