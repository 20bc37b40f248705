"""The results of a link that a profile counts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.finalize import Final
    from pylink.phases.results import Objects, Placed


class PhaseResults:
    """The inputs and the results of a link; `final` is None if it ended before finalize.

    `objects` are the inputs as read. From sm_100 on, `placed.merged.objects` may be others, since
    merge replaces inputs whose kernels it rewrites.
    """

    __slots__ = ("final", "objects", "placed")

    def __init__(self, objects: Objects, placed: Placed, final: Final | None) -> None:
        self.objects = objects
        self.placed = placed
        self.final = final
