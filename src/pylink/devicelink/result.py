"""The result of a device-link step."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.devicelink.links import Link


class StepResult:
    """The result of a device-link step: the pieces of its output, in order, and the links.

    `files_read` are the paths of the files that were read. `packing_ms` is the time for the fat
    binary in milliseconds, summed over the threads. `finishing_ms` is the time for the object,
    including its writing to a file, if any. Each is None if the step does not make that part.
    """

    __slots__ = ("files_read", "finishing_ms", "links", "packing_ms", "pieces")

    def __init__(self, links: Sequence[Link], files_read: list[str]) -> None:
        self.links = links
        self.files_read = files_read
        self.pieces: list[bytes] = []
        self.packing_ms: float | None = None
        self.finishing_ms: float | None = None
