"""Renderers that write a file atomically when the link has ended."""

from __future__ import annotations

from abc import abstractmethod

from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.sink import Renderer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics.sink import Sink
    from pylink.files.atomic import WholeFile


class FileRenderer(Renderer):
    """Writes `contents` to a file, which is opened at the start and replaced at the end.

    If the file cannot be written, this is reported as an error, and an old file stays unchanged.
    """

    def __init__(self, file: WholeFile) -> None:
        self.path = file.path
        self._file = file

    @abstractmethod
    def contents(self, sink: Sink) -> bytes:
        """Return the bytes of the complete file."""

    def close(self, sink: Sink) -> None:
        """Write the file and put it in place, or report why that failed."""
        try:
            self._file.write(self.contents(sink))
            self._file.commit()
        except OSError as error:
            sink.report("cannot-write-file", file=self.path, reason=reason_of(error))
        finally:
            self._file.discard()

    def discard(self) -> None:
        """Give up the new file; a file of this name stays unchanged."""
        self._file.discard()
