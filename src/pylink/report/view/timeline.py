"""Start and duration of the phases of a link and of their longer steps."""

from __future__ import annotations

from dataclasses import dataclass

from pylink.report.model import Action, Report
from pylink.report.view.overview import phase_actions, phase_name
from pylink.report.view.pages import DURATION

# The metric of a phase's steps, the metric of the helper thread's time, and the share of the link
# from which on a step is visible.
STEPS, HELPER = "link__step_time_duration.sum", "file__helper_time_duration.sum"
READING, SHORTEST_STEP = "read_files", 0.01


@dataclass(frozen=True, slots=True)
class Stretch:
    """One bar of a timeline; times in nanoseconds. A step is a part of the phase above it."""

    name: str
    start: float
    duration: float
    is_step: bool = False


def stretches(report: Report) -> list[Stretch]:
    """The phases, each followed by its longer steps; reading also by the helper thread."""
    spans = []
    total = sum(float(action.number(DURATION) or 0) for action in phase_actions(report))
    end = 0.0
    for action in phase_actions(report):
        duration = float(action.number(DURATION) or 0)
        spans.append(Stretch(phase_name(action), end, duration))
        spans += _steps(action, end, total)
        end += duration
    return spans


def _steps(action: Action, begin: float, total: float) -> list[Stretch]:
    """The visible steps of a phase, one after the other."""
    spans = []
    metric = action.metrics.get(STEPS)
    for step in metric.instances if metric else ():
        duration = float(step.value)
        if total and duration >= SHORTEST_STEP * total:
            spans.append(Stretch(str(step.id).replace("_", " "), begin, duration, is_step=True))
        if step.id == READING:
            helper_ns = float(action.number(HELPER) or 0)
            if total and helper_ns >= SHORTEST_STEP * total:
                name = "other threads"
                spans.append(Stretch(name, begin, min(helper_ns, duration), is_step=True))
        begin += duration
    return spans
