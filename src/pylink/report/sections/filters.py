"""Filters of sections and metrics by architecture and scope."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pylink.report.display import (
    CAPABILITIES,
    COMPUTE_CAPABILITY_MAJOR,
    COMPUTE_CAPABILITY_MINOR,
    TARGET_ARCH,
)
from pylink.report.model import (
    Action,
    CollectionScope,
    Filter,
    Importance,
    Scope,
    Section,
    SectionMetric,
)

# The name of a link's target; the group is its number.
LINK_TARGET = re.compile(r"sm_([0-9]+)[a-z]?")


@dataclass(frozen=True, slots=True)
class Target:
    """The architecture and scope with which filters are matched; `arch` is 86 for sm_86."""

    arch: int
    scope: CollectionScope


@dataclass(frozen=True, slots=True)
class ChosenMetric:
    """The metric that a section shows on a target: a `SectionMetric`, or one of its options."""

    name: str
    label: str | None
    importance: Importance


def target_of(action: Action) -> Target:
    """Return the architecture that an action was linked for or ran on, and its scope."""
    scope = CollectionScope.RANGE if action.scope is Scope.RANGE else CollectionScope.LAUNCH
    return Target(_arch_of(action), scope)


def _arch_of(action: Action) -> int:
    """Return the number of a link's target; for other actions the device's compute capability.

    If the action has neither, return the oldest architecture, as the tools assume.
    """
    match = LINK_TARGET.fullmatch(str(action.value(TARGET_ARCH)))
    if match is not None:
        return int(match[1])
    major, minor = action.number(COMPUTE_CAPABILITY_MAJOR), action.number(COMPUTE_CAPABILITY_MINOR)
    return CAPABILITIES[0] if major is None else int(major) * 10 + int(minor or 0)


def matches(inner: Filter | None, outer: Filter | None, target: Target) -> bool:
    """Return whether the filter of a metric or item, and that of its section, accept the target.

    `inner` is the filter of the metric or item, `outer` that of the section. If both set the
    architecture, only that of `inner` counts; likewise the scopes.
    """
    return _arch_matches(_first_with(_has_arch, inner, outer), target.arch) and _scope_matches(
        _first_with(_has_scopes, inner, outer), target.scope
    )


def choose_metric(metric: SectionMetric, section: Section, target: Target) -> ChosenMetric | None:
    """Return the metric to show for `metric` on the target; None if none is to be shown there.

    The first option whose filter matches replaces the metric, even if the metric's own filter does
    not match; an option without a filter only needs that of the section to match. An option without
    a label has the metric's.
    """
    for option in metric.options:
        if matches(option.filter, section.filter, target):
            label = metric.label if option.label is None else option.label
            importance = _importance(option.filter or metric.filter, section.filter)
            return ChosenMetric(option.name, label, importance)
    if not matches(metric.filter, section.filter, target):
        return None
    return ChosenMetric(metric.name, metric.label, _importance(metric.filter, section.filter))


def counts_for(section: Section, target: Target) -> bool:
    """Return whether the filter of a section or of one of its metrics accepts the target."""
    if matches(None, section.filter, target):
        return True
    from pylink.report.sections.text import section_metrics

    return any(
        choose_metric(metric, section, target) is not None for metric in section_metrics(section)
    )


def _first_with(
    has: Callable[[Filter], bool], inner: Filter | None, outer: Filter | None
) -> Filter | None:
    """Return `inner` if `has` is true of it, or else `outer` if `has` is true of that, or None."""
    return next(
        (candidate for candidate in (inner, outer) if candidate is not None and has(candidate)),
        None,
    )


def _has_arch(filter_: Filter) -> bool:
    """Return whether a filter names architectures."""
    return bool(filter_.items) or filter_.min_arch is not None or filter_.max_arch is not None


def _has_scopes(filter_: Filter) -> bool:
    """Return whether a filter names scopes."""
    return filter_.collection_filter is not None and bool(
        filter_.collection_filter.collection_scopes
    )


def _arch_matches(filter_: Filter | None, arch: int) -> bool:
    """Return whether an architecture is in one of a filter's items, or without items, its range."""
    if filter_ is None:
        return True
    if filter_.items:
        return any(_is_between(item.min_arch, arch, item.max_arch) for item in filter_.items)
    return _is_between(filter_.min_arch, arch, filter_.max_arch)


def _is_between(low: int | None, arch: int, high: int | None) -> bool:
    return (low is None or low <= arch) and (high is None or arch <= high)


def _scope_matches(filter_: Filter | None, scope: CollectionScope) -> bool:
    """Return whether a filter names this scope; True without a filter."""
    if filter_ is None or filter_.collection_filter is None:
        return True
    return scope in filter_.collection_filter.collection_scopes


def _importance(inner: Filter | None, outer: Filter | None) -> Importance:
    """Return the importance in `inner`, or else that in `outer`; UNSET if neither has one."""
    for filter_ in (inner, outer):
        importance = (
            filter_.collection_filter.importance if filter_ and filter_.collection_filter else None
        )
        if importance:
            return Importance.REQUIRED if importance == Importance.REQUIRED else Importance.OPTIONAL
    return Importance.UNSET
