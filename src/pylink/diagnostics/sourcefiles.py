"""Which files of source text may be shown, and the one place that reads them.

Names of source files come from the debug data of inputs, and whoever makes an input can name any
file. So a line is shown only of a regular file, of bounded size, below a folder that the user has
to do with: the working directory, those of the inputs and libraries, those of --source-root. A
compile directory that debug data names is none of these by itself. Nothing below the other folders
than those of --source-root counts that is hidden, where people keep keys and passwords, and neither
does the root of all files. Outside of these folders not even the presence of a file is looked up:
that alone can hang where a file system is mounted on demand.
"""

from __future__ import annotations

import os
import stat
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylink.diagnostics.record import Source

# More than any source has, of bytes in a file and in a line.
LARGEST = 1 << 24
LONGEST = 1 << 12

OUTSIDE = (
    "it is outside of the working directory, of the folders of inputs and of those of --source-root"
)
IRREGULAR = "it is not a regular file"
TOO_LARGE = f"it has more than {LARGEST} bytes"
TOO_LONG = f"the line has more than {LONGEST} bytes"


class Withheld(Exception):
    """A file, or a line of it, that is not shown; the text says why."""


class SourceFiles:
    """The files that the diagnostics of one link may show.

    `roots` are folders that the user named for this, `inputs` names of files beside which source
    may be, `folders` others that it may be in. The working directory is that of this moment.
    """

    __slots__ = ("_read", "_roots")

    def __init__(
        self,
        roots: Iterable[str] = (),
        *,
        inputs: Iterable[str] = (),
        folders: Iterable[str] = (),
    ) -> None:
        implied = dict.fromkeys(["", *map(os.path.dirname, inputs), *folders])
        # Each by its names with and without symbolic links, and whether it was asked for.
        self._roots: list[tuple[str, bool]] = []
        for named, group in ((True, roots), (False, implied)):
            for folder in group:
                for form in dict.fromkeys(_both_names(folder)):
                    if named or form != "/":
                        self._roots.append((form, named))
        # The file that was read last: diagnostics often are about the same.
        self._read: deque[tuple[str, list[bytes]]] = deque(maxlen=1)

    def line(self, source: Source) -> str | None:
        """The line that a place is in, from the record or the file, without its end.

        None when there is no such file or line; Withheld when there may be and it is not shown.
        """
        if source.text is not None:
            return source.text
        try:
            lines = self._lines(os.path.abspath(source.file))
        except (OSError, ValueError):
            return None
        if not 0 < source.line <= len(lines):
            return None
        text = lines[source.line - 1]
        if len(text) > LONGEST:
            raise Withheld(TOO_LONG)
        return text.decode("utf-8", "replace").rstrip("\r")

    def _lines(self, path: str) -> list[bytes]:
        if self._read and self._read[0][0] == path:
            return self._read[0][1]
        if not self._is_within(path):
            raise Withheld(OUTSIDE)
        real = os.path.realpath(path)
        if not self._is_within(real):  # a symbolic link leads out
            raise Withheld(OUTSIDE)
        # Opening what is none can do something, or never return.
        if not stat.S_ISREG(os.lstat(real).st_mode):
            raise Withheld(IRREGULAR)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with open(os.open(real, flags), "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Withheld(IRREGULAR)
            if status.st_size > LARGEST:
                raise Withheld(TOO_LARGE)
            # No more than it says: files of the kernel say 0 and have no end.
            lines = stream.read(status.st_size).split(b"\n")
        if not lines[-1]:
            del lines[-1]
        self._read.append((path, lines))
        return lines

    def _is_within(self, path: str) -> bool:
        """Whether a path without `..` lies below a root."""
        for root, named in self._roots:
            if root == "/" or path.startswith(root + "/"):
                below = path[len(root) :]
                if named or "/." not in below:
                    return True
        return False


def _both_names(folder: str) -> list[str]:
    """The absolute names of a folder; none where it has none, as in one that was deleted."""
    try:
        return [os.path.abspath(folder), os.path.realpath(folder)]
    except (OSError, ValueError):
        return []
