"""Reads the bytes of a file piece by piece, and maps them to bytes of an archive."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod

from pylink.files.reading import MAX_SIZE, Incoming, read_incoming

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.size.marks import InflationMarks


# First bytes of a zip file with members, and of an empty one.
ZIP_MAGICS = (b"PK\3\4", b"PK\5\6")


class ShortRead(OSError):
    """A file that became shorter while it was read."""


class Source(ABC):
    """A sequence of `size` bytes, in a file or in memory.

    `in_archive` is true for bytes of a member of a zip file.
    """

    size = 0
    in_archive = False

    @abstractmethod
    def read(self, offset: int, size: int) -> bytes:
        """Read `size` bytes, or fewer at the end of the source."""

    def bytes_before(self, offset: int) -> int:
        """Return how many bytes of the archive the first `offset` bytes of this source take.

        The number is an estimate if the archive has them deflated, and 0 outside archives.
        """
        return 0

    def place_of(self, offset: int) -> tuple[FileSource, int] | None:
        """Return the file and the offset in it of the bytes from `offset` on.

        None if no file has them in this form, as for inflated members.
        """
        return None

    def download(self, start: int, end: int) -> int | None:
        """Return the number of archive bytes between two offsets; None outside archives."""
        return self.bytes_before(end) - self.bytes_before(start) if self.in_archive else None


# A small read fetches the bytes after it, too: 4 KiB after a jump, since only a header may be
# needed, then twice as many for each read that continues the last one, up to _LARGEST_BLOCK bytes.
# Reads of more than _MOST_BUFFERED bytes fetch nothing else.
_SMALLEST_BLOCK, _LARGEST_BLOCK, _MOST_BUFFERED = 1 << 12, 1 << 18, 1 << 16


class FileSource(Source):
    """A regular file; at most one block of it is kept in memory.

    The file has holders, the first of which opened it. It is closed when the last calls `close`.
    """

    def __init__(self, path: str) -> None:
        self._file = Incoming(path, pipes=False)
        self.path = path
        self.size = self._file.size
        self._block_data, self._block_start, self._block_size = b"", 0, _SMALLEST_BLOCK
        self._holder_count = 1

    @property
    def descriptor(self) -> int:
        return self._file.fileno()

    def place_of(self, offset: int) -> tuple[FileSource, int]:
        return self, offset

    def read(self, offset: int, size: int) -> bytes:
        position = offset - self._block_start
        if 0 <= position <= position + size <= len(self._block_data):
            return self._block_data[position : position + size]
        size = max(0, min(size, self.size - offset))
        if size > _MOST_BUFFERED:
            return self.read_apart(offset, size)
        if position < 0 or position + size > len(self._block_data):
            continues = 0 <= position <= len(self._block_data)
            self._block_size = (
                min(2 * self._block_size, _LARGEST_BLOCK) if continues else _SMALLEST_BLOCK
            )
            block_size = min(max(size, self._block_size), self.size - offset)
            self._block_data, self._block_start, position = b"", offset, 0
            self._block_data = self.read_apart(offset, block_size)
        return self._block_data[position : position + size]

    def read_apart(self, offset: int, size: int) -> bytes:
        """Read exactly `size` bytes, from any thread; ShortRead if the file ends earlier."""
        parts = []
        while size:
            part = os.pread(self._file.fileno(), size, offset)
            if not part:
                raise self.short_read()
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def short_read(self) -> ShortRead:
        """Return the exception for a file that is shorter than when it was opened."""
        return ShortRead(errno.EIO, "it became shorter while it was read", self.path)

    def hold(self) -> None:
        """Require one more call of `close` before the file is closed."""
        self._holder_count += 1

    def close(self) -> None:
        """Release the file for one holder."""
        self._holder_count -= 1
        if not self._holder_count:
            self._file.close()


class MemorySource(Source):
    """Bytes in memory; with `marks`, those of an inflated member of a zip file."""

    def __init__(self, data: bytes | bytearray, marks: InflationMarks | None = None) -> None:
        self._data = memoryview(data)
        self.size = len(data)
        self.in_archive = marks is not None
        self._marks = marks

    def read(self, offset: int, size: int) -> bytes:
        return bytes(self._data[offset : offset + size])

    def bytes_before(self, offset: int) -> int:
        return self._marks.bytes_before(offset) if self._marks is not None else 0


class PartSource(Source):
    """A range of another source; `stored` means that it is an uncompressed member of a zip file."""

    def __init__(self, source: Source, start: int, size: int, *, stored: bool = False) -> None:
        self._source, self._start = source, start
        self.size = size
        self._stored = stored
        self.in_archive = stored or source.in_archive

    def read(self, offset: int, size: int) -> bytes:
        return self._source.read(self._start + offset, max(0, min(size, self.size - offset)))

    def bytes_before(self, offset: int) -> int:
        return offset if self._stored else self._source.bytes_before(self._start + offset)

    def place_of(self, offset: int) -> tuple[FileSource, int] | None:
        return self._source.place_of(self._start + offset)


def open_source(path: str) -> Source:
    """Open a file or a pipe; OSError if it cannot be read."""
    if os.path.isfile(path):
        return FileSource(path)
    return MemorySource(read_incoming(path, limit=MAX_SIZE))
