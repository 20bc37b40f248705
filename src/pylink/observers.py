"""What watches a link and writes about it: remarks, profiles, maps.

An observer is told the result of each phase when the phase has ended. It reads finished tables and
changes nothing, so the output is the same with and without it. A link that asks for none imports
none. Who measures is also told of the steps in a phase as they end.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pylink.diagnostics import Sink
    from pylink.options import Options
    from pylink.profile.model import Profile

# Options of which any may ask for remarks; the others say how.
REMARK_OPTIONS = (
    "pass_remarks",
    "pass_remarks_missed",
    "pass_remarks_analysis",
    "pass_remarks_output",
    "pass_remarks_format",
    "pass_remarks_filter",
    "Xopt",
)


class Observer:
    """Base of what is told about a link; the methods do nothing.

    `timed` says that kernels are to keep the times of their items, `profile` is what the link cost
    once it has ended. `of_cubins` says that there is nothing to tell where no cubins were linked,
    because link-time optimization made the whole program.
    """

    __slots__ = ()

    timed = False
    of_cubins = False
    profile: Profile | None = None

    def resume(self) -> None:
        """All observers know of the phase that ended; what comes now is part of the next one."""

    def step(self, name: str, detail: object) -> None:
        """The step `name` of the running phase ended; it began where the one before it ended."""

    def after(self, tag: str, result: object) -> None:
        """The phase `tag` ended with `result`, such as `Merged` for merge."""

    def close(self, *, failed: bool) -> None:
        """The link ended, `failed` when it made no output. Comes once, also after errors."""


class Steps:
    """What phases tell of their steps, for those who watch; most links have nobody."""

    __slots__ = ("_watching", "timed")

    def __init__(self, watching: Sequence[Observer] = ()) -> None:
        self._watching = watching
        self.timed = any(observer.timed for observer in watching)

    def done(self, name: str, detail: object = None) -> None:
        """The step `name` has ended; `detail` is what the result of the phase does not show."""
        for observer in self._watching:
            observer.step(name, detail)

    def times(self, items: int) -> bytearray | None:
        """Room for the TimeRow of each item of a kernel, where times are asked for."""
        return bytearray(32 * items) if self.timed else None


def observers(options: Options, sink: Sink) -> list[Observer]:
    """The observers that the options ask for."""
    watching: list[Observer] = []
    # First, so that what the others do counts for no phase.
    if options.profile is not None or options.profile_aprof or options.time_trace:
        from pylink.profile.collect import Collector  # noqa: PLC0415 -- few links ask

        watching.append(Collector(options, sink))
    if options.Map is not None:
        from pylink.linkmap import MapObserver  # noqa: PLC0415 -- few links ask

        watching.append(MapObserver(options.Map, sink))
    if options.depfile is not None:
        from pylink.depfile import DepfileObserver  # noqa: PLC0415

        watching.append(DepfileObserver(options, sink))
    if any(getattr(options, option) for option in REMARK_OPTIONS):
        from pylink.remarks.settings import Settings  # noqa: PLC0415 -- few links have remarks

        settings = Settings(options, sink)
        if settings.ask():
            from pylink.remarks.observer import RemarkObserver  # noqa: PLC0415

            watching.append(RemarkObserver(settings, sink))
        _add_profuse(watching, settings.profuse)
    elif "PYLINK_WIZARD" in os.environ:
        _add_profuse(watching, {})
    return watching


def _add_profuse(watching: list[Observer], said: dict[str, bool]) -> None:
    from pylink.profuse import ProfuseObserver, channels  # noqa: PLC0415 -- few links trace

    speaking = channels(said)
    if speaking:
        watching.append(ProfuseObserver(speaking))
