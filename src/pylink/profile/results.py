"""What a profile is made of beside what was measured."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.finalize import Final
    from pylink.phases.results import Merged, Objects, Placed


class Results:
    """What the phases of a link have made; `final` is None of one that ended after layout."""

    __slots__ = ("final", "merged", "objects", "placed")

    def __init__(
        self, objects: Objects, merged: Merged, placed: Placed, final: Final | None
    ) -> None:
        self.objects = objects
        self.merged = merged
        self.placed = placed
        self.final = final
