"""Tables and charts, as section files define them and rules add them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pylink.report.model.filters import Filter
from pylink.report.model.message import Message


@dataclass(slots=True, eq=False, repr=False)
class MetricOption(Message):
    """A metric that a section shows in place of another one, if `filter` matches."""

    name: str = ""
    label: str | None = None
    filter: Filter | None = None


@dataclass(slots=True, eq=False, repr=False)
class SourceCorrelation(Message):
    """Settings for a metric that is shown beside source lines."""

    disabled: bool | None = None
    divide_by_correlated_line_count: bool | None = None


@dataclass(slots=True, eq=False, repr=False)
class SourceView(Message):
    """Whether a metric's column of the source page is shown at first."""

    default_visible: bool | None = None


@dataclass(slots=True, eq=False, repr=False)
class DisplayProperties(Message):
    """Settings for a metric on the source page."""

    source_correlation: SourceCorrelation | None = None
    source_view: SourceView | None = None


@dataclass(slots=True, eq=False, repr=False)
class SectionMetric(Message):
    """A metric in a section; `name` is its name, or a pattern: `regex:`, `group:`, `breakdown:`."""

    name: str = ""
    label: str | None = None
    hw_unit: int | None = None
    show_instances: bool | None = None
    unit: str | None = None
    filter: Filter | None = None
    options: list[MetricOption] = field(default_factory=list)
    display_properties: DisplayProperties | None = None
    groups: list[str] = field(default_factory=list)
    ctr_domains: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class Table(Message):
    """A grid of metrics; `order` is an `Order`, `sort_key` a `SortKey`, both as plain numbers.

    `sort_direction` is a `SortDirection`.
    """

    label: str | None = None
    rows: int | None = None
    columns: int = 1
    order: int | None = None
    metrics: list[SectionMetric] = field(default_factory=list)
    sort_key: int | None = None
    sort_direction: int | None = None
    description: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class ValueRange(Message):
    """The ends of an axis."""

    min: int | None = None
    max: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class ValueAxis(Message):
    """An axis of values."""

    label: str | None = None
    range: ValueRange | None = None
    tick_count: int | None = None
    size: int | None = None
    precision: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class CategoryAxis(Message):
    """An axis of names."""

    label: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class BarChart(Message):
    """A bar per metric; `value_axis_alignment` is a value of `Alignment`.

    `direction` is a `Direction`, `sort_key` a `SortKey`, `sort_direction` a `SortDirection`.
    """

    label: str | None = None
    direction: int | None = None
    category_axis: CategoryAxis | None = None
    value_axis: ValueAxis | None = None
    metrics: list[SectionMetric] = field(default_factory=list)
    sort_key: int | None = None
    sort_direction: int | None = None
    value_axis_alignment: int | None = None
    description: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class HistogramAxis(Message):
    """The axis of the bins of a histogram."""

    label: str | None = None
    bin_count: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class HistogramChart(Message):
    """The distribution of the instances of a metric."""

    label: str | None = None
    histogram_axis: HistogramAxis | None = None
    value_axis: ValueAxis | None = None
    metric: SectionMetric = field(default_factory=SectionMetric)
    description: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class MetricList(Message):
    """A list of metrics, such as the values that a line chart highlights."""

    metrics: list[SectionMetric] = field(default_factory=list)


@dataclass(slots=True, eq=False, repr=False)
class LineChart(Message):
    """A line per metric through its instances."""

    label: str | None = None
    axis_x: ValueAxis | None = None
    axis_y: ValueAxis | None = None
    metrics: list[SectionMetric] = field(default_factory=list)
    highlight_x: MetricList | None = None
    description: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class Color(Message):
    """A color; if `color_type` is 1, the value is 0xAARRGGBB."""

    color_type: int = 0
    color_value: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class RooflineAxis(Message):
    """A logarithmic axis."""

    label: str | None = None
    base: float | None = None
    min: float | None = None
    max: float | None = None


@dataclass(slots=True, eq=False, repr=False)
class CyclesPerSecond(Message):
    """A value per second: the sum of the metrics per cycle, times the cycles per second."""

    value_per_cycle_metrics: list[SectionMetric] = field(default_factory=list)
    cycles_per_second_metric: SectionMetric | None = None


@dataclass(slots=True, eq=False, repr=False)
class RooflineValue(Message):
    """A number: one of a constant, a metric and a value per second; the other two are None."""

    constant: float | None = None
    metric: SectionMetric | None = None
    value_cycles_per_second_expression: CyclesPerSecond | None = None


@dataclass(slots=True, eq=False, repr=False)
class RooflineOptions(Message):
    """The style of a line, point or wall (vertical line) of a roofline chart."""

    label: str | None = None
    color: Color | None = None
    show_roofline_extensions: bool | None = None
    show_roofline_points: bool | None = None


@dataclass(slots=True, eq=False, repr=False)
class Roofline(Message):
    """A line of a roofline chart: the lower of peak work, and peak traffic times intensity."""

    peak_work: RooflineValue = field(default_factory=RooflineValue)
    peak_traffic: RooflineValue = field(default_factory=RooflineValue)
    options: RooflineOptions | None = None


@dataclass(slots=True, eq=False, repr=False)
class AchievedValue(Message):
    """A point of a roofline chart: the work and the traffic that an action achieved."""

    achieved_work: RooflineValue = field(default_factory=RooflineValue)
    achieved_traffic: RooflineValue = field(default_factory=RooflineValue)
    options: RooflineOptions | None = None


@dataclass(slots=True, eq=False, repr=False)
class Wall(Message):
    """A vertical line of a roofline chart, at `value` on the axis of intensity."""

    value: RooflineValue = field(default_factory=RooflineValue)
    options: RooflineOptions | None = None


@dataclass(slots=True, eq=False, repr=False)
class RooflineChartOptions(Message):
    """The style of a whole roofline chart."""

    aspect_ratio: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class RooflineChart(Message):
    """A chart of work against intensity (work divided by traffic), with the limits of the work."""

    label: str | None = None
    axis_intensity: RooflineAxis | None = None
    axis_work: RooflineAxis | None = None
    rooflines: list[Roofline] = field(default_factory=list)
    achieved_values: list[AchievedValue] = field(default_factory=list)
    walls: list[Wall] = field(default_factory=list)
    description: str | None = None
    options: RooflineChartOptions | None = None


@dataclass(slots=True, eq=False, repr=False)
class SourceMetricTable(Message):
    """The source lines where metrics are highest."""

    label: str | None = None
    rows: int | None = None
    metrics: list[SectionMetric] = field(default_factory=list)
    sort_direction: int | None = None
    description: str | None = None
