"""Sections: metrics that belong together, how they are shown, and derived metrics.

The classes follow the section file: `section.header.metrics`, `section.body[0].items[0].table`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pylink.report.model.chart import (
    BarChart,
    DisplayProperties,
    HistogramChart,
    LineChart,
    RooflineChart,
    SectionMetric,
    SourceMetricTable,
    Table,
)
from pylink.report.model.filters import Filter
from pylink.report.model.message import Message


@dataclass(slots=True, eq=False, repr=False)
class SectionSet(Message):
    """A named set of a report's sections to which a section belongs, such as `full`."""

    identifier: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Header(Message):
    """The table of a section that is always shown, while bodies may be collapsed."""

    rows: int | None = None
    metrics: list[SectionMetric] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class Metrics(Message):
    """Metrics that are collected and not shown, or shown as columns of the source page.

    The columns of several sections are sorted by `order`.
    """

    metrics: list[SectionMetric] = field(default_factory=list)
    order: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class MetricDefinition(Message):
    """A derived metric: `expression` has two metrics or numbers, and an operator between them."""

    name: str = ""
    expression: str = ""


@dataclass(slots=True, eq=False, repr=False)
class MetricDefinitions(Message):
    """All derived metrics of a section."""

    metric_definitions: list[MetricDefinition] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class MetricGroup(Message):
    """A group of metrics: those whose `SectionMetric.groups` contain its name."""

    name: str | None = None
    label: str | None = None
    display_properties: DisplayProperties | None = None


@dataclass(slots=True, eq=False, repr=False)
class MemoryWidget(Message):
    """A memory or NVLink widget of Nsight Compute; each sort of widget uses some of the fields."""

    label: str | None = None
    show_loads: bool | None = None
    show_stores: bool | None = None
    show_atomics: bool | None = None
    show_reductions: bool | None = None
    show_global: bool | None = None
    show_local: bool | None = None
    show_surface: bool | None = None
    show_texture: bool | None = None
    show_total_loads: bool | None = None
    show_total_stores: bool | None = None
    show_totals: bool | None = None
    show_total_atomics_and_reductions: bool | None = None


@dataclass(slots=True, eq=False, repr=False)
class GfxMetricsWidget(Message):
    """A widget that graphics tools show."""

    type: str = ""
    label: str | None = None
    metrics: list[SectionMetric] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class BodyItem(Message):
    """A table, chart, widget or container: the field that is set; `filter` says where it shows."""

    table: Table | None = None
    bar_chart: BarChart | None = None
    histogram_chart: HistogramChart | None = None
    line_chart: LineChart | None = None
    horizontal_container: HorizontalContainer | None = None
    roofline_chart: RooflineChart | None = None
    source_metric_table: SourceMetricTable | None = None
    memory_shared_table: MemoryWidget | None = None
    memory_first_level_cache_table: MemoryWidget | None = None
    memory_second_level_cache_table: MemoryWidget | None = None
    memory_device_memory_table: MemoryWidget | None = None
    memory_chart: MemoryWidget | None = None
    memory_l1_tex_cache_table: MemoryWidget | None = None
    memory_l2_cache_table: MemoryWidget | None = None
    nvlink_topology: MemoryWidget | None = None
    nvlink_property_table: MemoryWidget | None = None
    nvlink_throughput_table: MemoryWidget | None = None
    memory_l2_cache_evict_policy_table: MemoryWidget | None = None
    gfx_metrics_widget: GfxMetricsWidget | None = None
    filter: Filter | None = None


@dataclass(slots=True, eq=False, repr=False)
class HorizontalContainer(Message):
    """Items side by side."""

    items: list[BodyItem] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class Body(Message):
    """Tables, charts and widgets below the header of a section, under a name of their own."""

    items: list[BodyItem] = field(default_factory=list)
    display_name: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class Section(Message):
    """A titled part of a report, with metrics.

    `identifier` is unique. Sections with the lowest `order` are shown first, those without last.
    `extends` is the identifier of the section at whose end this one is shown, or None.
    """

    identifier: str = ""
    display_name: str = ""
    order: int | None = None
    header: Header | None = None
    body: list[Body] = field(default_factory=list)
    metrics: Metrics | None = None
    description: str | None = None
    sets: list[SectionSet] = field(default_factory=list)
    extends: str | None = None
    metric_definitions: MetricDefinitions | None = None
    filter: Filter | None = None
    group: list[MetricGroup] = field(default_factory=list)

    def definitions(self) -> list[MetricDefinition]:
        """Return the derived metrics, in file order."""
        return self.metric_definitions.metric_definitions if self.metric_definitions else []

    def items(self) -> Iterator[BodyItem]:
        """Yield the items of all bodies; in place of a container, yield the items inside it."""
        for body in self.body:
            yield from _flatten(body.items)


def _flatten(items: list[BodyItem]) -> Iterator[BodyItem]:
    """Yield the items; in place of a container, yield the items inside it."""
    for item in items:
        if item.horizontal_container is None:
            yield item
        else:
            yield from _flatten(item.horizontal_container.items)
