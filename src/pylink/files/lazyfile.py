"""A written file whose bytes are read only if a caller needs them."""

from __future__ import annotations

import errno
import os


class LazyFile:
    """The present contents of an open file, readable even after its name is removed.

    The object owns its descriptor and closes it. Copying or pickling the object gives bytes.
    """

    __slots__ = ("_descriptor", "_modified", "path", "size")

    def __init__(self, descriptor: int, path: str) -> None:
        """Duplicate `descriptor`; OSError if that fails. `path` is for messages."""
        self._descriptor = -1
        self._descriptor = os.dup(descriptor)
        status = os.fstat(descriptor)
        self.path = path
        self.size = status.st_size
        self._modified = status.st_mtime_ns

    def read(self) -> bytes:
        """Return the contents; OSError if the file has been changed since."""
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
    """Return the first `size` bytes of a file, or all of a shorter one."""
    parts: list[bytes] = []
    offset = 0
    while part := os.pread(descriptor, size - offset, offset):
        parts.append(part)
        offset += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
