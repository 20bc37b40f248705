"""Reads the source files whose lines may be shown, and no others.

Names of source files come from the debug data of inputs, so the author of an input can name any
file. A file is read only if it is a regular file of bounded size below an allowed directory: the
working directory, the directories of inputs and libraries, and those of --source-root. The compile
directory in debug data is not allowed by itself.

Except for --source-root, the root directory is not allowed, and hidden files and directories are
not shown, since people keep keys and passwords there. pylink does not even check whether a path
outside of these directories exists: that can hang if a file system is mounted on demand.
"""

from __future__ import annotations

import os
import stat
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics.record import Source

# Limits in bytes of a source file, and of a line of it. What is longer is not shown.
MAX_FILE_SIZE = 1 << 24
MAX_LINE_SIZE = 1 << 12

OUTSIDE = (
    "it is outside of the working directory, the directories of inputs and those of --source-root"
)
IRREGULAR = "it is not a regular file"
TOO_LARGE = f"it has more than {MAX_FILE_SIZE} bytes"
TOO_LONG = f"the line has more than {MAX_LINE_SIZE} bytes"


class Withheld(Exception):
    """A file, or a line of it, must not be shown; the text says why."""


class SourceFiles:
    """The files that the diagnostics of one link may show.

    `roots` are directories that the user allowed, `inputs` files beside which source may be,
    `directories` further directories with source. The present working directory is allowed, too.
    """

    __slots__ = ("_last_read", "_roots")

    def __init__(
        self,
        roots: Iterable[str] = (),
        *,
        inputs: Iterable[str] = (),
        directories: Iterable[str] = (),
    ) -> None:
        implied = dict.fromkeys(["", *map(os.path.dirname, inputs), *directories])
        # The allowed directories, each as a path with symbolic links and one without, and whether
        # the user named the directory.
        self._roots: list[tuple[str, bool]] = []
        for is_requested, group in ((True, roots), (False, implied)):
            for directory in group:
                for path in dict.fromkeys(_both_paths(directory)):
                    if is_requested or path != "/":
                        self._roots.append((path, is_requested))
        # The path and the lines of the file that was read last, since diagnostics are often about
        # the same file.
        self._last_read: deque[tuple[str, list[bytes]]] = deque(maxlen=1)

    def line(self, source: Source) -> str | None:
        """Return the line of a place, from `source` or its file, without its newline.

        None if the file cannot be read or has no such line; Withheld if it must not be shown.
        """
        if source.text is not None:
            return source.text
        try:
            lines = self._read_lines(os.path.abspath(source.file))
        except (OSError, ValueError):
            return None
        if not 0 < source.line <= len(lines):
            return None
        text = lines[source.line - 1]
        if len(text) > MAX_LINE_SIZE:
            raise Withheld(TOO_LONG)
        return text.decode("utf-8", "replace").rstrip("\r")

    def _read_lines(self, path: str) -> list[bytes]:
        """Return the lines of a file; Withheld if it is not allowed, not regular or too large."""
        if self._last_read and self._last_read[0][0] == path:
            return self._last_read[0][1]
        if not self._is_within(path):
            raise Withheld(OUTSIDE)
        real = os.path.realpath(path)
        if not self._is_within(real):  # a symbolic link leads out
            raise Withheld(OUTSIDE)
        # Opening a file that is not regular can have effects, or block forever.
        if not stat.S_ISREG(os.lstat(real).st_mode):
            raise Withheld(IRREGULAR)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with open(os.open(real, flags), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Withheld(IRREGULAR)
            if status.st_size > MAX_FILE_SIZE:
                raise Withheld(TOO_LARGE)
            # The size limits the bytes read: files in /proc have the size 0 and may have no end.
            lines = stream.read(status.st_size).split(b"\n")
        if not lines[-1]:
            del lines[-1]
        self._last_read.append((path, lines))
        return lines

    def _is_within(self, path: str) -> bool:
        """Return whether a path without `..` is below an allowed directory.

        Hidden files and directories are allowed only below directories that the user named.
        """
        for root, is_requested in self._roots:
            if root == "/" or path.startswith(root + "/"):
                below = path[len(root) :]
                if is_requested or "/." not in below:
                    return True
        return False


def _both_paths(directory: str) -> list[str]:
    """Return the absolute path of a directory, then the one without symbolic links.

    The list is empty for an invalid path, and for a relative one in a deleted working directory.
    """
    try:
        return [os.path.abspath(directory), os.path.realpath(directory)]
    except (OSError, ValueError):
        return []
