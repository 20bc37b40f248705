"""The file of remarks: written in parts, and put in place atomically at the end."""

from __future__ import annotations

from pylink.diagnostics.stream import show_bytes
from pylink.files.atomic import WholeFile

# Bytes that are collected before they are written.
_BUFFER = 1 << 20


class OutputFile:
    """A file that is written from start to end; `-` is standard output.

    The constructor raises OSError or ValueError if the file cannot be created or replaced. Later
    errors are raised by `commit`, so that a full disk does not stop the link.
    """

    __slots__ = ("_error", "_file", "_pending", "_size", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = StandardOutput() if path == "-" else WholeFile(path)
        self._error: OSError | None = None  # of the first write that failed
        self._pending: list[bytes] = []
        self._size = 0  # bytes in `_pending`

    def write(self, data: bytes) -> None:
        """Append `data`, which is written to the file at once or later."""
        self._pending.append(data)
        self._size += len(data)
        if self._size >= _BUFFER:
            self._flush()

    def _flush(self) -> None:
        """Write the pending bytes to the file; keep the first error for `commit`."""
        data = b"".join(self._pending)
        self._pending.clear()
        self._size = 0
        if self._error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self._error = error

    def commit(self) -> None:
        """Put the file in place; OSError, and no new file, if that or an earlier write failed."""
        try:
            self._flush()
            if self._error is not None:
                raise self._error
            self._file.commit()
        finally:
            self._file.discard()

    def discard(self) -> None:
        """Remove the new file; an older file stays unchanged."""
        self._file.discard()


class StandardOutput:
    """Standard output with the methods of a file."""

    __slots__ = ()

    def write(self, data: bytes) -> None:
        show_bytes(data)

    def commit(self) -> None:
        """Do nothing: the data is written already."""

    def discard(self) -> None:
        """Do nothing: written data cannot be taken back."""
