"""Who watches a link: the observers that options ask for. A link without any imports none."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.options import Options
    from pylink.watch.observers import Observer

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


def observers(options: Options, sink: Sink, *, shows_progress: bool = False) -> list[Observer]:
    """The observers that the options ask for, and one for people who wait."""
    settings = None
    if any(getattr(options, option) for option in REMARK_OPTIONS):
        from pylink.remarks.settings import Settings  # noqa: PLC0415 -- few links have remarks

        # What it refuses ends the link before anyone watches it.
        settings = Settings(options, sink)
    watching: list[Observer] = []
    # First, so that what the others do counts for no phase.
    if options.section or options.set or options.rule or options.metrics:
        from pylink.profile.output import check_choice  # noqa: PLC0415 -- few links ask

        check_choice(options, sink)
    if options.profile is not None or options.profile_aprof or options.time_trace:
        from pylink.profile.output import Collector  # noqa: PLC0415 -- few links ask

        watching.append(Collector(options, sink, shows_progress=shows_progress))
    if options.Map is not None:
        from pylink.outputs.linkmap import MapObserver  # noqa: PLC0415 -- few links ask

        watching.append(MapObserver(options.Map, sink))
    if options.depfile is not None:
        from pylink.outputs.depfile import DepfileObserver  # noqa: PLC0415

        watching.append(DepfileObserver(options, sink))
    if settings is not None:
        if settings.ask():
            from pylink.remarks.observer import RemarkObserver  # noqa: PLC0415

            watching.append(RemarkObserver(settings, sink))
        _add_profuse(watching, settings.profuse)
    elif "PYLINK_WIZARD" in os.environ:
        _add_profuse(watching, {})
    if shows_progress:
        from pylink.watch.progress import ProgressObserver  # noqa: PLC0415 -- long links alone

        watching.append(ProgressObserver())
    return watching


def _add_profuse(watching: list[Observer], said: dict[str, bool]) -> None:
    from pylink.remarks.profuse import ProfuseObserver, channels  # noqa: PLC0415 -- few links trace

    speaking = channels(said)
    if speaking:
        watching.append(ProfuseObserver(speaking))
