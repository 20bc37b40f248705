"""A file that was written and may be wanted back, as bytes, later or never."""

from __future__ import annotations

import errno
import os


class KeptFile:
    """The contents of an open file as they are now, whatever becomes of its name.

    The descriptor is this object's own, and is closed with it. A copy of the object, by pickle too,
    is bytes.
    """

    __slots__ = ("_descriptor", "_modified", "path", "size")

    def __init__(self, descriptor: int, path: str) -> None:
        """OSError when there can be no other descriptor; `path` is for messages."""
        self._descriptor = -1
        self._descriptor = os.dup(descriptor)
        status = os.fstat(descriptor)
        self.path = path
        self.size = status.st_size
        self._modified = status.st_mtime_ns

    def read(self) -> bytes:
        """The contents; OSError when somebody has changed the file."""
        data = contents(self._descriptor, self.size)
        status = os.fstat(self._descriptor)
        if (status.st_size, status.st_mtime_ns) != (self.size, self._modified):
            reason = "The file was changed in its place after the link, which kept no copy of it"
            raise OSError(errno.ESTALE, reason, self.path)
        return data

    def __reduce__(self) -> tuple[type[bytes], tuple[bytes]]:
        return bytes, (self.read(),)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def contents(descriptor: int, size: int) -> bytes:
    """The first `size` bytes of a file, or all where it has less."""
    parts: list[bytes] = []
    at = 0
    while part := os.pread(descriptor, size - at, at):
        parts.append(part)
        at += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
