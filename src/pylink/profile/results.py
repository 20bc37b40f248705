"""The results of a link that a profile counts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.finalize import Final
    from pylink.phases.results import Merged, Objects, Placed


class PhaseResults:
    """The results of the phases of a link; `final` is None if it ended after layout."""

    __slots__ = ("final", "merged", "objects", "placed")

    def __init__(
        self, objects: Objects, merged: Merged, placed: Placed, final: Final | None
    ) -> None:
        self.objects = objects
        self.merged = merged
        self.placed = placed
        self.final = final
