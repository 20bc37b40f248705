"""Sections put into a report: derived metrics computed, name patterns resolved, gaps reported.

The tools that open a report compute nothing: what sections derive and what their patterns stand for
has to be in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pylink.report.model import Action, Importance, Report, Section
from pylink.report.sections.derived import DerivedError, evaluate
from pylink.report.sections.filters import Target, choose, matches, target_of
from pylink.report.sections.text import section_metrics

REGEX, GROUP, BREAKDOWN = "regex:", "group:", "breakdown:"
PATTERNS = (REGEX, GROUP, BREAKDOWN)


@dataclass(frozen=True, slots=True)
class Gap:
    """A metric that a section asks for and an action lacks; an error where it is required."""

    action: str
    section: str
    metric: str
    reason: str
    is_error: bool

    def __str__(self) -> str:
        return f"{self.action}: section {self.section}: metric {self.metric} {self.reason}"


def apply_sections(report: Report, sections: Iterable[Section]) -> list[Gap]:
    """Give every action the sections that count for it, and what these derive; the gaps.

    A section none of whose metrics an action has is left out there, unless one is required.
    """
    ordered = list(sections)
    gaps: list[Gap] = []
    used: set[str] = set()
    for action in report.actions:
        target = target_of(action)
        fitting = [each for each in ordered if matches(None, each.filter, target)]
        for section in fitting:
            gaps += _derive(action, section)
        action.sections = [each for each in fitting if _says_something(action, each, target)]
        for section in action.sections:
            used.add(section.identifier)
            gaps += _find_gaps(action, section, target)
    for section in ordered:
        if section.identifier not in used and section_metrics(section):
            gaps.append(Gap("report", section.identifier, "of this section", "are missing", False))
    return gaps


def _says_something(action: Action, section: Section, target: Target) -> bool:
    """Whether the action has a metric of the section, or lacks one that is required."""
    for entry in section_metrics(section):
        chosen = choose(entry, section, target)
        if chosen is not None and (
            chosen.name in action.metrics
            or chosen.importance is Importance.REQUIRED
            or (chosen.name.startswith(PATTERNS) and _members(action, section, chosen.name))
        ):
            return True
    return not section_metrics(section)


def _find_gaps(action: Action, section: Section, target: Target) -> list[Gap]:
    """Resolve the patterns of a section; the metrics it names that the action does not have."""
    gaps: dict[str, Gap] = {}
    for entry in section_metrics(section):
        chosen = choose(entry, section, target)
        if chosen is None or chosen.name in action.metrics:
            continue
        if chosen.name.startswith(PATTERNS):
            members = _members(action, section, chosen.name)
            if members:
                action.set(chosen.name, ",".join(members))
        elif chosen.name not in gaps:
            required = chosen.importance is Importance.REQUIRED
            gap = _gap(action, section, chosen.name, "is missing", is_error=required)
            gaps[chosen.name] = gap
    return list(gaps.values())


def _gap(action: Action, section: Section, metric: str, reason: str, *, is_error: bool) -> Gap:
    name = action.demangled_name or action.function_name or "range"
    return Gap(name, section.identifier, metric, reason, is_error)


def _derive(action: Action, section: Section) -> list[Gap]:
    """Compute the derived metrics of a section, once in an action; those it cannot have."""
    gaps: list[Gap] = []

    def warn(problem: str) -> None:
        gaps.append(_gap(action, section, definition.name, problem, is_error=False))

    for definition in section.definitions():
        if definition.name in action.metrics:
            continue
        try:
            metric = evaluate(definition.name, definition.expression, action.metrics, warn)
        except DerivedError as error:
            gaps.append(_gap(action, section, definition.name, str(error), is_error=True))
        except KeyError as error:
            warn(f"cannot be derived: there is no metric {error.args[0]}")
        else:
            if metric.value is not None or metric.instances:
                action.add(metric)
    return gaps


def _members(action: Action, section: Section, pattern: str) -> list[str]:
    """The metrics that a pattern stands for, which tools look for under its own name.

    What a `breakdown:` consists of, only the one who measured it knows.
    """
    if pattern.startswith(REGEX):
        expression = re.compile(pattern.removeprefix(REGEX))
        names = [name for name in action.metrics if expression.fullmatch(name)]
    elif pattern.startswith(GROUP):
        group = pattern.removeprefix(GROUP)
        members = {each.name for each in section_metrics(section) if group in each.groups}
        names = [name for name in action.metrics if name in members]
    else:
        return []
    return sorted(name for name in names if not name.startswith(PATTERNS))
