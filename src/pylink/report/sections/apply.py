"""Sections put into a report: derived metrics computed, name patterns resolved, gaps reported.

The tools that open a report compute nothing: what sections derive and what their patterns stand for
has to be in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pylink.report.model import Action, Importance, Report, Section
from pylink.report.sections.derived import DerivedError, evaluate
from pylink.report.sections.filters import Chosen, choose, matches, target_of
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
    """Give every action the sections that count for it, and what these derive; the gaps."""
    ordered = list(sections)
    gaps: list[Gap] = []
    for action in report.actions:
        target = target_of(action)
        action.sections = [each for each in ordered if matches(None, each.filter, target)]
        gaps += complete(action, action.sections)
    return gaps


def complete(action: Action, sections: Sequence[Section]) -> list[Gap]:
    """Add the metrics that the sections derive and resolve to an action; the gaps that remain."""
    target = target_of(action)
    gaps: list[Gap] = []
    for section in sections:
        gaps += _derive(action, section)
    for section in sections:
        reported: set[str] = set()
        for entry in section_metrics(section):
            chosen = choose(entry, section, target)
            if chosen is None or chosen.name in reported:
                continue
            if chosen.name.startswith(PATTERNS):
                _resolve(action, section, chosen)
            if chosen.name not in action.metrics:
                reported.add(chosen.name)
                required = chosen.importance is Importance.REQUIRED
                gaps.append(_gap(action, section, chosen.name, "is missing", is_error=required))
    return gaps


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


def _resolve(action: Action, section: Section, chosen: Chosen) -> None:
    """Store the names that a pattern stands for, which is how tools find them.

    What a `breakdown:` consists of, only the one who measured it knows.
    """
    if chosen.name.startswith(REGEX):
        pattern = re.compile(chosen.name.removeprefix(REGEX))
        names = [name for name in action.metrics if pattern.fullmatch(name)]
    elif chosen.name.startswith(GROUP):
        group = chosen.name.removeprefix(GROUP)
        members = {each.name for each in section_metrics(section) if group in each.groups}
        names = [name for name in action.metrics if name in members]
    else:
        return
    names = sorted(name for name in names if not name.startswith(PATTERNS))
    if names and chosen.name not in action.metrics:
        action.set(chosen.name, ",".join(names))
