"""Bytes of a file that are read piece by piece, and how many bytes of an archive they stand for."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right

from pylink.files.reading import MAX_SIZE, Incoming, read_incoming


class ShortRead(OSError):
    """A file that became shorter while it was read."""


class Source(ABC):
    """A row of bytes; `bytes_before` counts those of the archive that end before an offset."""

    size = 0
    in_archive = False

    @abstractmethod
    def read(self, offset: int, size: int) -> bytes:
        """Bytes of it; fewer at its end."""

    def bytes_before(self, offset: int) -> int:
        return 0

    def download(self, start: int, end: int) -> int | None:
        """Bytes of the archive from one offset to another; None outside archives."""
        return self.bytes_before(end) - self.bytes_before(start) if self.in_archive else None


# Headers are read with what follows them.
_BLOCK, _SMALL = 1 << 18, 1 << 16


class FileSource(Source):
    """A regular file, of which no more is in memory than is read, and a block around that."""

    def __init__(self, path: str) -> None:
        self._file = Incoming(path, pipes=False)
        self.path = path
        self.size = self._file.size
        self._block, self._start = b"", 0

    def read(self, offset: int, size: int) -> bytes:
        size = max(0, min(size, self.size - offset))
        if size > _SMALL:
            return self._read(offset, size)
        at = offset - self._start
        if at < 0 or at + size > len(self._block):
            self._block, self._start, at = b"", offset, 0
            self._block = self._read(offset, min(_BLOCK, self.size - offset))
        return self._block[at : at + size]

    def _read(self, offset: int, size: int) -> bytes:
        parts = []
        while size:
            part = os.pread(self._file.fileno(), size, offset)
            if not part:
                message = "it became shorter while it was read"
                raise ShortRead(errno.EIO, message, self.path)
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        self._file.close()


class Marks:
    """How many bytes of a member there were after each `step` bytes of the archive.

    Between two of these bytes are taken to be spread evenly. The member takes `packed` bytes.
    """

    def __init__(self, step: int, packed: int) -> None:
        self._step, self._packed = step, packed
        self.bytes_out = array("Q", [0])

    def bytes_before(self, offset: int) -> int:
        place = bisect_right(self.bytes_out, offset) - 1
        if place + 1 == len(self.bytes_out):
            return self._packed
        bytes_out, taken = self.bytes_out[place], self._step * place
        is_last = place + 2 == len(self.bytes_out)
        step = self._packed - taken if is_last else self._step
        return taken + step * (offset - bytes_out) // (self.bytes_out[place + 1] - bytes_out)


class MemorySource(Source):
    """Bytes that are in memory: a pipe, or what was inflated, which has `marks`."""

    def __init__(self, data: bytes | bytearray, marks: Marks | None = None) -> None:
        self._data = memoryview(data)
        self.size = len(data)
        self.in_archive = marks is not None
        self._marks = marks

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._data[offset : offset + size])

    def bytes_before(self, offset: int) -> int:
        return self._marks.bytes_before(offset) if self._marks is not None else 0


class PartSource(Source):
    """A stretch of another source; `stored` is one of an archive that keeps it as it is."""

    def __init__(self, whole: Source, start: int, size: int, *, stored: bool = False) -> None:
        self._whole, self._start = whole, start
        self.size = size
        self._stored = stored
        self.in_archive = stored or whole.in_archive

    def read(self, offset: int, size: int) -> bytes:
        return self._whole.read(self._start + offset, max(0, min(size, self.size - offset)))

    def bytes_before(self, offset: int) -> int:
        return offset if self._stored else self._whole.bytes_before(self._start + offset)


def open_source(path: str) -> Source:
    """A file, or a pipe; OSError if it cannot be read."""
    if os.path.isfile(path):
        return FileSource(path)
    return MemorySource(read_incoming(path, limit=MAX_SIZE))
