"""When the phases of a link and their longer steps began, and how long they took."""

from __future__ import annotations

from dataclasses import dataclass

from pylink.report.model import Action, Report
from pylink.report.view.overview import phase_name, phases
from pylink.report.view.pages import DURATION

# The steps of a phase, the time of the thread that helps with one of them, and the share of the
# link from which on a step can be seen.
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
    """The phases, below each its longer steps, and below reading the thread that helps."""
    spans = []
    whole = sum(float(action.number(DURATION) or 0) for action in phases(report))
    end = 0.0
    for action in phases(report):
        duration = float(action.number(DURATION) or 0)
        spans.append(Stretch(phase_name(action), end, duration))
        spans += _steps(action, end, whole)
        end += duration
    return spans


def _steps(action: Action, begin: float, whole: float) -> list[Stretch]:
    """The steps of a phase, one after the other, those that can be seen."""
    spans = []
    metric = action.metrics.get(STEPS)
    for step in metric.instances if metric else ():
        duration = float(step.value)
        if whole and duration >= SHORTEST_STEP * whole:
            spans.append(Stretch(str(step.id).replace("_", " "), begin, duration, is_step=True))
        if step.id == READING:
            helped = float(action.number(HELPER) or 0)
            if whole and helped >= SHORTEST_STEP * whole:
                name = "other threads"
                spans.append(Stretch(name, begin, min(helped, duration), is_step=True))
        begin += duration
    return spans
