"""The working directory, which may have been deleted, and where files are of a link done again."""

from __future__ import annotations

import os

_DELETED = " (deleted)"  # what the kernel adds to the name

# What stands for the root directory while a link of another machine is done again.
_roots: list[str] = []


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
    """The path from the root on, as os.path.abspath gives it where there is a working directory.

    Where a link is done again, it is the path where that link first ran.
    """
    whole = os.path.normpath(os.path.join(working_directory(), path))
    return whole.removeprefix(_roots[-1]) if _roots else whole


def present(path: str) -> str:
    """Where the file is that has this path where the link first ran."""
    return _roots[-1] + path if _roots and path.startswith("/") else path


def enter_root(folder: str) -> None:
    """Let `folder`, an absolute path, stand for the root directory of another machine."""
    _roots.append(folder)


def leave_root() -> None:
    """End what `enter_root` began."""
    _roots.pop()
