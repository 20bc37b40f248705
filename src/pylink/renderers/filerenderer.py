"""Renderers whose text becomes a file when the link has ended: whole, or not at all."""

from __future__ import annotations

from abc import abstractmethod

from pylink.diagnostics.errors import reason_of
from pylink.diagnostics.sink import Renderer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics.sink import Sink
    from pylink.files.atomic import WholeFile


class FileRenderer(Renderer):
    """Writes what `contents` gives to a file that is opened at once and appears at the end.

    A file that cannot be written is an error, reported once, and left as it was.
    """

    def __init__(self, file: WholeFile) -> None:
        self.path = file.path
        self._file = file

    @abstractmethod
    def contents(self, sink: Sink) -> bytes:
        """All of the file."""

    def close(self, sink: Sink) -> None:
        try:
            self._file.write(self.contents(sink))
            self._file.commit()
        except OSError as error:
            sink.report("cannot-write-file", file=self.path, reason=reason_of(error))
        finally:
            self._file.discard()

    def discard(self) -> None:
        self._file.discard()
