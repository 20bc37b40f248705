"""The result of a device-link step."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.devicelink.links import Link


class StepResult:
    """The result of a step: the pieces of its output, in order, and the links.

    `read` are the files that were read. `packing` and `finishing` are the milliseconds for the fat
    binary and for the object; None if the step writes none.
    """

    __slots__ = ("finishing", "links", "packing", "pieces", "read")

    def __init__(self, links: Sequence[Link], read: list[str]) -> None:
        self.links = links
        self.read = read
        self.pieces: list[bytes] = []
        self.packing: float | None = None
        self.finishing: float | None = None
