"""What a device-link step makes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.devicelink.links import Link


class StepResult:
    """What a step makes: the pieces of its output, in order, and the links.

    `read` are the files that it is made of; `packing` and `finishing` the milliseconds that the fat
    binary and the object took, None without one.
    """

    __slots__ = ("finishing", "links", "packing", "pieces", "read")

    def __init__(self, links: Sequence[Link], read: list[str]) -> None:
        self.links = links
        self.read = read
        self.pieces: list[bytes] = []
        self.packing: float | None = None
        self.finishing: float | None = None
