"""What watches a link and writes about it: remarks, profiles, maps.

An observer is told the result of each phase when the phase has ended. It reads finished tables and
changes nothing, so the output is the same with and without it. A link that asks for none imports
none.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.options import Options


class Observer:
    """Base of what is told about a link; the methods do nothing."""

    __slots__ = ()

    def after(self, tag: str, result: object) -> None:
        """The phase `tag` ended with `result`, such as `Merged` for merge."""

    def close(self, *, failed: bool) -> None:
        """The link ended, `failed` when it made no output. Comes once, also after errors."""


def observers(options: Options, sink: Sink) -> list[Observer]:
    """The observers that the options ask for."""
    watching: list[Observer] = []
    if options.Map is not None:
        from pylink.linkmap import MapObserver  # noqa: PLC0415 -- few links ask

        watching.append(MapObserver(options.Map, sink))
    if options.depfile is not None:
        from pylink.depfile import DepfileObserver  # noqa: PLC0415

        watching.append(DepfileObserver(options, sink))
    return watching
