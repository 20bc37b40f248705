"""The observers of a link: those that options ask for. A link without any imports none."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.observer import Observer
    from pylink.options.model import Options

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
        from pylink.remarks.settings import Settings

        # What it refuses ends the link before anyone observes it.
        settings = Settings(options, sink)
    watchers: list[Observer] = []
    # First, so that what the others do counts for no phase.
    if options.section or options.set or options.rule or options.metrics:
        from pylink.profile.output import check_choice

        check_choice(options, sink)
    if options.profile is not None:
        from pylink.profile.output import check_packages

        check_packages(options, sink)
    if options.profile is not None or options.profile_aprof or options.time_trace:
        from pylink.profile.output import Collector

        watchers.append(Collector(options, sink, shows_progress=shows_progress))
    if options.Map is not None:
        from pylink.outputs.linkmap import MapObserver

        watchers.append(MapObserver(options.Map, sink))
    if options.depfile is not None:
        from pylink.outputs.depfile import DepfileObserver

        watchers.append(DepfileObserver(options, sink))
    if settings is not None:
        if settings.ask():
            from pylink.remarks.observer import RemarkObserver

            watchers.append(RemarkObserver(settings, sink))
        _add_profuse(watchers, settings.profuse)
    elif "PYLINK_WIZARD" in os.environ:
        _add_profuse(watchers, {})
    if shows_progress:
        from pylink.terminal.progress import ProgressObserver

        watchers.append(ProgressObserver())
    return watchers


def _add_profuse(watchers: list[Observer], answers: dict[str, bool]) -> None:
    from pylink.remarks.profuse import ProfuseObserver, channels

    speaking = channels(answers)
    if speaking:
        watchers.append(ProfuseObserver(speaking))
