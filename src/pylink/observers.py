"""Makes the observers that options ask for. A link without such options imports none of them."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.diagnostics import Sink
    from pylink.observer import Observer
    from pylink.options.model import Options

# Options with which the link loads the settings of remarks. The other options of remarks, such as
# --pass-remarks-why-live, have an effect only beside these.
REMARK_OPTIONS = (
    "pass_remarks", "pass_remarks_missed", "pass_remarks_analysis", "pass_remarks_output",
    "pass_remarks_format", "pass_remarks_filter", "Xopt",
)  # fmt: skip


def make_observers(options: Options, sink: Sink, *, shows_progress: bool = False) -> list[Observer]:
    """Make the observers that options, PYLINK_WIZARD or `shows_progress` ask for."""
    settings = None
    if any(getattr(options, option) for option in REMARK_OPTIONS):
        from pylink.remarks.settings import Settings

        # Invalid settings end the link before any observer exists.
        settings = Settings(options, sink)
    observers: list[Observer] = []
    if options.section or options.set or options.rule or options.metrics:
        from pylink.profile.output import check_chosen_sections

        check_chosen_sections(options, sink)
    if options.profile is not None:
        from pylink.profile.output import check_packages

        check_packages(options, sink)
    if options.profile is not None or options.profile_aprof or options.time_trace:
        from pylink.profile.output import Collector

        # The collector comes first, so that the work of other observers counts for no phase.
        observers.append(Collector(options, sink, shows_progress=shows_progress))
    if options.Map is not None:
        from pylink.outputs.linkmap import MapObserver

        observers.append(MapObserver(options.Map, sink))
    if options.depfile is not None:
        from pylink.outputs.depfile import DepfileObserver

        observers.append(DepfileObserver(options, sink))
    if settings is not None:
        if settings.are_needed():
            from pylink.remarks.observer import RemarkObserver

            observers.append(RemarkObserver(settings, sink))
        _add_profuse(observers, settings.profuse)
    elif "PYLINK_WIZARD" in os.environ:
        _add_profuse(observers, {})
    if shows_progress:
        from pylink.terminal.progress import ProgressObserver

        observers.append(ProgressObserver())
    return observers


def _add_profuse(observers: list[Observer], states: dict[str, bool]) -> None:
    """Add the observer that prints each step of the search for equal sections, if it is asked for.

    `states` says which of its channels (kinds of texts) -Xopt switches on or off, by name.
    """
    from pylink.remarks.profuse import ProfuseObserver, enabled_channels

    channels = enabled_channels(states)
    if channels:
        observers.append(ProfuseObserver(channels))
