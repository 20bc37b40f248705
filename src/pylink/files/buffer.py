"""The output while phases make it: in memory, or in the file that will be it.

An output that is made in its file needs no memory of its own, whatever its size. Where the file
cannot be had, it is made in memory, and phase write says what is wrong with the place.
"""

from __future__ import annotations

import os

from pylink._native.image import Canvas
from pylink.diagnostics.errors import reason_of
from pylink.files.atomic import WholeFile
from pylink.files.lazyfile import KeptFile, contents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import NoReturn

    from pylink.diagnostics import Sink

# Outputs up to so many bytes are made in memory: callers that want bytes need not read a file.
WRITTEN_SIZE = 8 << 20


class OutputBuffer:
    """The bytes of the output: `canvas` takes them.

    At its end a `with` block lets go of the canvas, and of a file that was not committed.
    """

    __slots__ = ("_file", "_written", "canvas")

    def __init__(self, size: int, path: str | None = None) -> None:
        """In memory, or in the file that is to be `path`, where that can be."""
        self._file: WholeFile | None = None
        self._written: KeptFile | bytes = b""
        canvas = None
        if path is not None and size > WRITTEN_SIZE:
            canvas = self._open(path, size)
        self.canvas = Canvas(size) if canvas is None else canvas

    def _open(self, path: str, size: int) -> Canvas | None:
        # A reader of a pipe would take this opening, without a byte written, for all of it.
        if os.path.exists(path) and not os.path.isfile(path):
            return None
        try:
            self._file = WholeFile(path)
        except (OSError, ValueError):
            return None
        descriptor = self._file.unfinished
        canvas = None if descriptor is None else Canvas.on_file(descriptor, size)
        if canvas is None:
            self._discard()
        return canvas

    @property
    def image(self) -> bytes | KeptFile:
        """The bytes, or the file that has them: empty before it is in its place."""
        return self.canvas.image if self._file is None else self._written

    def commit(self) -> bool:
        """Put the file in its place; False where there is none. OSError when that fails."""
        if self._file is None:
            return False
        descriptor = self._file.unfinished
        assert descriptor is not None
        try:
            self._written = KeptFile(descriptor, self._file.path)
        except OSError:  # too many are open
            self._written = contents(descriptor, self.canvas.size)
        self._file.commit()
        return True

    def report(self, error: OSError, sink: Sink) -> NoReturn:
        """End the link after an error in writing."""
        path = None if self._file is None else self._file.path
        sink.fatal("cannot-write-file", file=path, reason=reason_of(error))

    def _discard(self) -> None:
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
