"""The output while phases write it: in memory, or directly in the output file.

An output that is written in its file needs no memory of its own, whatever its size. If the file
cannot be opened, the output is made in memory, and phase write reports the error.
"""

from __future__ import annotations

import os

from pylink._native.image import Canvas
from pylink.diagnostics.errors import reason_of
from pylink.files.atomic import WholeFile
from pylink.files.lazyfile import LazyFile, contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import NoReturn

    from pylink.diagnostics import Sink

# Outputs up to this size (bytes) are made in memory, so that callers need not read a file.
WRITTEN_SIZE = 8 << 20


class OutputBuffer:
    """The output while it is made, in memory or in its file: phases write to `canvas`.

    The end of a `with` block closes the canvas, and discards a file that was not committed.
    """

    __slots__ = ("_file", "_written", "canvas")

    def __init__(self, size: int, path: str | None = None) -> None:
        """Make a buffer in the file `path`; in memory for a small output or an unusable file."""
        self._file: WholeFile | None = None
        self._written: LazyFile | bytes = b""
        canvas = None
        if path is not None and size > WRITTEN_SIZE:
            canvas = self._open(path, size)
        self.canvas = Canvas(size) if canvas is None else canvas

    def _open(self, path: str, size: int) -> Canvas | None:
        """Open the output file and reserve its space; None if the output must be made in memory."""
        # A pipe is not opened here: to close it without a byte would be the end for its reader.
        if os.path.exists(path) and not os.path.isfile(path):
            return None
        try:
            self._file = WholeFile(path)
        except (OSError, ValueError):
            return None
        descriptor = self._file.new_descriptor
        canvas = None if descriptor is None else Canvas.on_file(descriptor, size)
        if canvas is None:
            self._discard()
        return canvas

    @property
    def image(self) -> bytes | LazyFile:
        """The output: bytes if it is made in memory; else its file, or b"" before `commit`.

        The bytes of the file were read instead if too many files were open.
        """
        return self.canvas.image if self._file is None else self._written

    def commit(self) -> bool:
        """Put the file in its place; False if the output is in memory. OSError if that fails."""
        if self._file is None:
            return False
        descriptor = self._file.new_descriptor
        assert descriptor is not None
        try:
            self._written = LazyFile(descriptor, self._file.path)
        except OSError:  # too many open files
            self._written = contents(descriptor, self.canvas.size)
        self._file.commit()
        return True

    def report(self, error: OSError, sink: Sink) -> NoReturn:
        """Report a write error, which ends the link."""
        path = None if self._file is None else self._file.path
        sink.fatal("cannot-write-file", file=path, reason=reason_of(error))

    def _discard(self) -> None:
        """Drop the new file, if the output is made in one."""
        if self._file is not None:
            self._file.discard()
            self._file = None

    def __enter__(self) -> OutputBuffer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.canvas.close()
        self._discard()
