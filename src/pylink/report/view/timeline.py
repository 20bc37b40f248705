"""Start and duration of the phases of a link and of their longer steps."""

from __future__ import annotations

from dataclasses import dataclass

from pylink.report.model import Action, Report
from pylink.report.view.overview import phase_actions, phase_name
from pylink.report.view.pages import DURATION

# The metric with the nanoseconds of each step of a phase, and the metric with the nanoseconds in
# which helper threads read files. READING_STEP is the step in which they read. A step is shown from
# the share SHORTEST_STEP of the time of all phases on.
STEPS, HELPER = "link__step_time_duration.sum", "file__helper_time_duration.sum"
READING_STEP, SHORTEST_STEP = "read_files", 0.01


@dataclass(frozen=True, slots=True)
class Stretch:
    """One bar of a timeline; times in nanoseconds. A step is a part of the phase above it."""

    name: str
    start: float
    duration: float
    is_step: bool = False


def stretches(report: Report) -> list[Stretch]:
    """Return the phases of a link, each followed by its longer steps.

    After the step that reads files comes the reading by helper threads, which runs beside it.
    """
    bars = []
    total = sum(float(action.number(DURATION) or 0) for action in phase_actions(report))
    end = 0.0
    for action in phase_actions(report):
        duration = float(action.number(DURATION) or 0)
        bars.append(Stretch(phase_name(action), end, duration))
        bars += _steps(action, end, total)
        end += duration
    return bars


def _steps(action: Action, start: float, total: float) -> list[Stretch]:
    """Return the steps of a phase that are long enough to be shown.

    `start` is when the phase began, and `total` the time of all phases.
    """
    spans = []
    metric = action.metrics.get(STEPS)
    for step in metric.instances if metric else ():
        duration = float(step.value)
        if total and duration >= SHORTEST_STEP * total:
            spans.append(Stretch(str(step.id).replace("_", " "), start, duration, is_step=True))
        if step.id == READING_STEP:
            helper_ns = float(action.number(HELPER) or 0)
            if total and helper_ns >= SHORTEST_STEP * total:
                name = "other threads"
                spans.append(Stretch(name, start, min(helper_ns, duration), is_step=True))
        start += duration
    return spans
