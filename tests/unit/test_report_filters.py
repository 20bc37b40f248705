"""Filters of sections and metrics."""

from __future__ import annotations

import pytest

from pylink.report.model import (
    Action,
    ArchRange,
    CollectionFilter,
    CollectionScope,
    Filter,
    Importance,
    MetricOption,
    Scope,
    Section,
    SectionMetric,
)
from pylink.report.sections.filters import Target, choose_metric, matches, target_of

LAUNCH = CollectionScope.LAUNCH


def on(arch: int, scope: CollectionScope = LAUNCH) -> Target:
    return Target(arch, scope)


@pytest.mark.parametrize(
    ("arch", "name"),
    [(70, "m"), (72, None), (75, "m2"), (80, "m2"), (86, "m2"), (89, None)],
)
def test_the_first_option_that_matches_replaces_the_metric(arch: int, name: str | None) -> None:
    option = MetricOption("m2", filter=Filter(min_arch=75, max_arch=86))
    metric = SectionMetric("m", "Label", filter=Filter(max_arch=70), options=[option])
    chosen = choose_metric(metric, Section(), on(arch))
    assert (chosen and chosen.name) == name
    assert chosen is None or chosen.label == "Label"


def test_an_option_without_a_filter_always_matches() -> None:
    options = [
        MetricOption("never", filter=Filter(min_arch=90, max_arch=80)),
        MetricOption("m2", "L2"),
    ]
    chosen = choose_metric(SectionMetric("m", "L", options=options), Section(), on(80))
    assert (chosen and (chosen.name, chosen.label)) == ("m2", "L2")


def test_ranges_replace_the_bounds_beside_them() -> None:
    ranges = Filter(min_arch=40, max_arch=120, items=[ArchRange(70, 72), ArchRange(min_arch=90)])
    assert [arch for arch in (69, 70, 72, 75, 90, 120) if matches(ranges, None, on(arch))] == [
        70,
        72,
        90,
        120,
    ]


def test_the_metric_decides_what_both_filters_set() -> None:
    section = Filter(min_arch=90, collection_filter=CollectionFilter([LAUNCH]))
    metric = Filter(min_arch=80)
    assert matches(metric, section, on(80))
    assert not matches(None, section, on(80))
    assert not matches(metric, section, on(80, CollectionScope.RANGE))
    both = Filter(min_arch=80, collection_filter=CollectionFilter([CollectionScope.RANGE]))
    assert matches(both, section, on(80, CollectionScope.RANGE))


def test_a_filter_without_scopes_lets_all_through() -> None:
    empty = Filter(collection_filter=CollectionFilter([], Importance.REQUIRED))
    assert matches(empty, None, on(80, CollectionScope.RANGE))
    chosen = choose_metric(SectionMetric("m", filter=empty), Section(), on(80))
    assert chosen is not None
    assert chosen.importance is Importance.REQUIRED


def test_importance_comes_from_the_section_unless_the_metric_sets_it() -> None:
    section = Section(filter=Filter(collection_filter=CollectionFilter([], Importance.REQUIRED)))
    inner = Filter(collection_filter=CollectionFilter([], Importance.OPTIONAL))
    for filter_, importance in ((None, Importance.REQUIRED), (inner, Importance.OPTIONAL)):
        chosen = choose_metric(SectionMetric("m", filter=filter_), section, on(80))
        assert chosen is not None
        assert chosen.importance is importance


def test_an_option_decides_on_its_importance_where_its_filter_sets_one() -> None:
    required = Filter(collection_filter=CollectionFilter([], Importance.REQUIRED))
    optional = Filter(collection_filter=CollectionFilter([], Importance.OPTIONAL))
    for own, of_option, importance in (
        (optional, required, Importance.REQUIRED),
        (required, optional, Importance.OPTIONAL),
        (required, None, Importance.REQUIRED),
    ):
        option = MetricOption("m2", filter=of_option)
        chosen = choose_metric(SectionMetric("m", filter=own, options=[option]), Section(), on(80))
        assert chosen is not None
        assert (chosen.name, chosen.importance) == ("m2", importance)


def test_the_target_of_an_action() -> None:
    action = Action(scope=Scope.RANGE)
    assert target_of(action) == Target(40, CollectionScope.RANGE)
    action = Action()
    action.set("device__attribute_compute_capability_major", 12)
    action.set("device__attribute_compute_capability_minor", 1)
    assert target_of(action) == Target(121, LAUNCH)
    # Tools are told a capability that they know; the target of the link is what counts.
    action.set("link__target_arch", "sm_103a")
    assert target_of(action) == Target(103, LAUNCH)
