"""Sections put into a report: derived metrics computed, name patterns resolved, gaps reported.

The tools that open a report compute nothing: what sections derive and what their patterns stand for
must be in the file.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pylink.report.model import Action, Importance, Report, Section
from pylink.report.sections.derived import DerivedError, evaluate
from pylink.report.sections.filters import Chosen, Target, choose, counts_for, target_of
from pylink.report.sections.patterns import GROUP, PATTERNS, REGEX, matching
from pylink.report.sections.text import section_metrics


@dataclass(frozen=True, slots=True)
class Gap:
    """What a section asks for and cannot have; an error where it is required.

    `action` is the first that should have it. `is_absence` says that there is no such metric there,
    rather than one with a doubtful value.
    """

    action: str
    section: str
    metric: str
    reason: str
    is_error: bool
    is_absence: bool = True

    def __str__(self) -> str:
        return f"{self.action}: section {self.section}: metric {self.metric} {self.reason}"


class _Asked(NamedTuple):
    """A section that counts for a target, and the metrics that it asks for there."""

    section: Section
    metrics: list[Chosen]


def apply_sections(
    report: Report, sections: Iterable[Section], asked: Container[str] = ()
) -> list[Gap]:
    """Give every action the sections that count for it, and what these derive; the gaps.

    If a section was `asked` for by identifier, each of its metrics that no action has is a gap,
    even if the section is not shown since it has none.

    A section none of whose metrics an action has is omitted there, unless one is required. What
    only some actions lack is not a gap: a phase does not have the counts of another.
    """
    ordered = list(sections)
    # The actions of a link have two targets between them: one architecture, and both scopes.
    by_target: dict[Target, list[_Asked]] = {}
    fitting: list[tuple[Action, list[_Asked]]] = []
    for action in report.actions:
        target = target_of(action)
        if target not in by_target:
            by_target[target] = _fitting(ordered, target)
        fitting.append((action, by_target[target]))
    new_sections = [
        gap for action, chosen in fitting for entry in chosen for gap in _derive(action, entry)
    ]
    known = {name for action in report.actions for name in action.metrics}
    for action, chosen in fitting:
        shown = [entry for entry in chosen if _says_something(action, entry, known)]
        action.sections = [entry.section for entry in shown]
        for entry in shown:
            new_sections += _find_gaps(action, entry, known)
    for action, chosen in fitting[:1]:
        for entry in chosen:
            if entry.section.identifier in asked:
                new_sections += _find_gaps(action, entry, known)
    gaps: dict[tuple[str, str], Gap] = {}
    for gap in new_sections:
        gaps.setdefault((gap.section, gap.metric), gap)
    used = {section.identifier for action in report.actions for section in action.sections}
    return [
        gap
        for gap in gaps.values()
        if not gap.is_absence
        or (gap.metric not in known and (gap.section in used or gap.section in asked))
    ]


def _fitting(sections: list[Section], target: Target) -> list[_Asked]:
    return [
        _Asked(
            each,
            [metric for entry in section_metrics(each) if (metric := choose(entry, each, target))],
        )
        for each in sections
        if counts_for(each, target)
    ]


def _says_something(action: Action, asked: _Asked, known: set[str]) -> bool:
    """Whether the action has a metric of the section, or a required one is nowhere."""
    for chosen in asked.metrics:
        if (
            chosen.name in action.metrics
            or (chosen.importance is Importance.REQUIRED and chosen.name not in known)
            or (chosen.name.startswith(PATTERNS) and _has_members(action, asked, chosen.name))
        ):
            return True
    return not section_metrics(asked.section)


def _find_gaps(action: Action, asked: _Asked, known: set[str]) -> Iterator[Gap]:
    """Resolve the patterns of a section; the metrics it names that are not in `known`."""
    for chosen in asked.metrics:
        if chosen.name in action.metrics:
            continue
        if chosen.name.startswith(PATTERNS):
            try:
                members = _members(action, asked.section, chosen.name)
            except re.error as error:
                yield _gap(action, asked.section, chosen.name, f"is not resolved: {error}")
                continue
            if members:
                action.set(chosen.name, ",".join(members))
        elif chosen.name not in known:
            required = chosen.importance is Importance.REQUIRED
            yield _gap(action, asked.section, chosen.name, "is missing", is_error=required)


def _gap(
    action: Action,
    section: Section,
    metric: str,
    reason: str,
    *,
    is_error: bool = False,
    is_absence: bool = True,
) -> Gap:
    name = action.demangled_name or action.function_name or "range"
    return Gap(name, section.identifier, metric, reason, is_error, is_absence)


def _derive(action: Action, asked: _Asked) -> Iterator[Gap]:
    """Compute the derived metrics of a section, once in an action; what is wrong with them."""
    section = asked.section
    for definition in section.definitions():
        name = definition.name
        if name in action.metrics:
            continue
        warned: list[str] = []
        try:
            metric = evaluate(name, definition.expression, action.metrics, warned.append)
        except DerivedError as error:
            reason = f"cannot be derived: {error}"
            yield _gap(action, section, name, reason, is_absence=False)
            continue
        except KeyError as error:
            reason = f"cannot be derived: there is no metric {error.args[0]}"
            yield _gap(action, section, name, reason)
            continue
        if metric.value is not None or metric.instances:
            action.add(metric)
        for problem in warned:
            yield _gap(action, section, name, f"is bounded: {problem}", is_absence=False)


def _has_members(action: Action, asked: _Asked, pattern: str) -> bool:
    """Whether a pattern stands for something; it may, where nobody knows."""
    try:
        return bool(_members(action, asked.section, pattern))
    except re.error:
        return True


def _members(action: Action, section: Section, pattern: str) -> list[str]:
    """The metrics that a pattern stands for, which tools look for under its own name.

    What a `breakdown:` consists of, only the program that measured it knows. re.error for an
    expression that takes too long.
    """
    if pattern.startswith(REGEX):
        names = matching(pattern, action.metrics)
    elif pattern.startswith(GROUP):
        group = pattern.removeprefix(GROUP)
        members = {each.name for each in section_metrics(section) if group in each.groups}
        names = [name for name in action.metrics if name in members]
    else:
        return []
    return sorted(name for name in names if not name.startswith(PATTERNS))
