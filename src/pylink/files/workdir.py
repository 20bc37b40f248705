"""The working directory, which may have been deleted, and paths of a reproduced link."""

from __future__ import annotations

import os

_DELETED = " (deleted)"  # what the kernel adds to the path of a deleted directory

# Directories that stand for the root directory while a link of another machine is reproduced.
_roots: list[str] = []


def working_directory() -> str:
    """Return the path of the working directory, even if it was deleted; empty if unknown."""
    try:
        return os.getcwd()
    except OSError:
        pass
    try:
        return os.readlink("/proc/self/cwd").removesuffix(_DELETED)
    except OSError:
        return ""


def absolute_path(path: str) -> str:
    """Return the absolute path; like os.path.abspath, but it works in a deleted directory.

    While a link is reproduced, it is the path on the machine of the original link.
    """
    full_path = os.path.normpath(os.path.join(working_directory(), path))
    return full_path.removeprefix(_roots[-1]) if _roots else full_path


def present_path(path: str) -> str:
    """Return the path on this machine for a path on the machine of the original link.

    It is the same path unless a link is reproduced.
    """
    return _roots[-1] + path if _roots and path.startswith("/") else path


def enter_root(directory: str) -> None:
    """Let `directory`, an absolute path, stand for the root directory of another machine."""
    _roots.append(directory)


def leave_root() -> None:
    """Undo the last `enter_root`."""
    _roots.pop()
