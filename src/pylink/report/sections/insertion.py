"""Adds sections to a report: computes derived metrics, resolves name patterns, reports gaps.

Tools that open a report compute nothing, so the file must contain derived metrics, and for each
pattern the names of the metrics that match it. A gap is a metric of a section that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace

from pylink.report.model import Action, Importance, Report, Section
from pylink.report.sections.derived import DerivedError, evaluate
from pylink.report.sections.filters import (
    ChosenMetric,
    Target,
    choose_metric,
    counts_for,
    target_of,
)
from pylink.report.sections.patterns import GROUP, PATTERNS, REGEX, matching_names
from pylink.report.sections.text import section_metrics


@dataclass(frozen=True, slots=True)
class Gap:
    """A metric of a section that is missing, or whose value is not as its definition says.

    `is_absence` is True if the metric is missing or its pattern cannot be matched, and False if its
    definition is invalid or its value was limited. `action` is the name of the first action
    concerned. `is_error` is True for a missing metric that is required.
    """

    action: str
    section: str
    metric: str
    reason: str
    is_error: bool
    is_absence: bool = True

    def __str__(self) -> str:
        return f"{self.action}: section {self.section}: metric {self.metric} {self.reason}"


@dataclass(frozen=True, slots=True)
class _SectionForTarget:
    """A section whose filters accept a target, and the metrics that it shows there."""

    section: Section
    metrics: list[ChosenMetric]


def apply_sections(
    report: Report, sections: Iterable[Section], requested: Container[str] = ()
) -> list[Gap]:
    """Add to every action the sections for its target, and derived metrics; return the gaps.

    An action gets a section only if it has a metric of it, if no action has a metric that the
    section requires, or if the section has no metrics. A metric that only some actions lack is not
    a gap, since actions (phases of a link) have different metrics. In a section whose identifier is
    in `requested`, each metric that no action has is a gap, even if no action gets the section.
    """
    ordered = list(sections)
    # The actions of a link only have two targets: one architecture with both scopes.
    by_target: dict[Target, list[_SectionForTarget]] = {}
    action_candidates: list[tuple[Action, list[_SectionForTarget]]] = []
    for action in report.actions:
        target = target_of(action)
        if target not in by_target:
            by_target[target] = _sections_for(ordered, target)
        action_candidates.append((action, by_target[target]))
    all_gaps = [
        gap
        for action, candidates in action_candidates
        for candidate in candidates
        for gap in _derive(action, candidate)
    ]
    metric_names = {name for action in report.actions for name in action.metrics}
    for action, candidates in action_candidates:
        shown_candidates = [
            candidate for candidate in candidates if _has_content(action, candidate, metric_names)
        ]
        action.sections = [candidate.section for candidate in shown_candidates]
        for candidate in shown_candidates:
            all_gaps += _find_gaps(action, candidate, metric_names)
    for action, candidates in action_candidates[:1]:
        for candidate in candidates:
            if candidate.section.identifier in requested:
                all_gaps += _find_gaps(action, candidate, metric_names)
    gaps: dict[tuple[str, str], Gap] = {}
    for gap in all_gaps:
        key = gap.section, gap.metric
        # The first gap says why a metric cannot be derived, and a later one if it is required.
        first = gaps.setdefault(key, gap)
        if gap.is_error and not first.is_error:
            gaps[key] = replace(first, is_error=True)
    shown_identifiers = {
        section.identifier for action in report.actions for section in action.sections
    }
    return [
        gap
        for gap in gaps.values()
        if not gap.is_absence
        or (
            gap.metric not in metric_names
            and (gap.section in shown_identifiers or gap.section in requested)
        )
    ]


def _sections_for(sections: list[Section], target: Target) -> list[_SectionForTarget]:
    """Return the sections whose filters accept a target, with the metrics that they show there."""
    return [
        _SectionForTarget(
            section,
            [
                metric
                for entry in section_metrics(section)
                if (metric := choose_metric(entry, section, target))
            ],
        )
        for section in sections
        if counts_for(section, target)
    ]


def _has_content(action: Action, candidate: _SectionForTarget, metric_names: set[str]) -> bool:
    """Return whether the action has a metric of the section.

    True also if no action has a metric that the section requires, and for a section without
    metrics. `metric_names` are those of all actions.
    """
    for chosen in candidate.metrics:
        if (
            chosen.name in action.metrics
            or (chosen.importance is Importance.REQUIRED and chosen.name not in metric_names)
            or (
                chosen.name.startswith(PATTERNS)
                and _matches_some_metric(action, candidate, chosen.name)
            )
        ):
            return True
    return not section_metrics(candidate.section)


def _find_gaps(
    action: Action, candidate: _SectionForTarget, metric_names: set[str]
) -> Iterator[Gap]:
    """Resolve the patterns of a section; yield gaps for metrics that no action has.

    `metric_names` are those of all actions. A pattern is resolved by a metric with its name, whose
    value lists the metrics that match. A pattern that cannot be matched is a gap.
    """
    for chosen in candidate.metrics:
        if chosen.name in action.metrics:
            continue
        if chosen.name.startswith(PATTERNS):
            try:
                members = _matching_metrics(action, candidate.section, chosen.name)
            except re.error as error:
                yield _gap(action, candidate.section, chosen.name, f"is not resolved: {error}")
                continue
            if members:
                action.set(chosen.name, ",".join(members))
        elif chosen.name not in metric_names:
            required = chosen.importance is Importance.REQUIRED
            yield _gap(action, candidate.section, chosen.name, "is missing", is_error=required)


def _gap(
    action: Action,
    section: Section,
    metric: str,
    reason: str,
    *,
    is_error: bool = False,
    is_absence: bool = True,
) -> Gap:
    """Return the gap of the metric `metric` of a section in an action, for a `reason`."""
    name = action.demangled_name or action.function_name or "range"
    return Gap(name, section.identifier, metric, reason, is_error, is_absence)


def _derive(action: Action, candidate: _SectionForTarget) -> Iterator[Gap]:
    """Compute the derived metrics of a section that the action lacks; yield problems as gaps."""
    section = candidate.section
    for definition in section.definitions():
        name = definition.name
        if name in action.metrics:
            continue
        warnings: list[str] = []
        try:
            metric = evaluate(name, definition.expression, action.metrics, warnings.append)
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
        for problem in warnings:
            yield _gap(action, section, name, f"is bounded: {problem}", is_absence=False)


def _matches_some_metric(action: Action, candidate: _SectionForTarget, pattern: str) -> bool:
    """Return whether a pattern matches a metric; True if it cannot be evaluated."""
    try:
        return bool(_matching_metrics(action, candidate.section, pattern))
    except re.error:
        return True


def _matching_metrics(action: Action, section: Section, pattern: str) -> list[str]:
    """Return the names of an action's metrics that match a pattern, sorted.

    Empty for `breakdown:`, since only the program that measured a metric knows its parts. re.error
    for an expression that is invalid or takes too long.
    """
    if pattern.startswith(REGEX):
        names = matching_names(pattern, action.metrics)
    elif pattern.startswith(GROUP):
        group = pattern.removeprefix(GROUP)
        members = {metric.name for metric in section_metrics(section) if group in metric.groups}
        names = [name for name in action.metrics if name in members]
    else:
        return []
    return sorted(name for name in names if not name.startswith(PATTERNS))
