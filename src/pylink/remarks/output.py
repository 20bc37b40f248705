"""The file of remarks: written as they come, there at the end or not at all."""

from __future__ import annotations

from pylink.diagnostics.stream import show_bytes
from pylink.files.atomic import WholeFile

# Bytes that are collected before they are written.
_BUFFER = 1 << 20


class OutputFile:
    """A file that is written from start to end; `-` is standard output.

    Making one is an OSError or a ValueError where the file could not be made or replaced. What goes
    wrong later is kept for `commit`: a link does not stop for a full disk under its remarks.
    """

    __slots__ = ("_error", "_file", "_pending", "_size", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = StandardOutput() if path == "-" else WholeFile(path)
        self._error: OSError | None = None
        self._pending: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Go on with `data`."""
        self._pending.append(data)
        self._size += len(data)
        if self._size >= _BUFFER:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._pending)
        self._pending.clear()
        self._size = 0
        if self._error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self._error = error

    def commit(self) -> None:
        """Put the file in its place; OSError, with nothing left behind, when that fails."""
        try:
            self._flush()
            if self._error is not None:
                raise self._error
            self._file.commit()
        finally:
            self._file.discard()

    def discard(self) -> None:
        """Leave no file, and one that was there as it was."""
        self._file.discard()


class StandardOutput:
    """Standard output in the place of a file."""

    __slots__ = ()

    def write(self, data: bytes) -> None:
        show_bytes(data)

    def commit(self) -> None:
        """Nothing to do."""

    def discard(self) -> None:
        """A stream keeps what was written to it."""
