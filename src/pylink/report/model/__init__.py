"""A report in memory: plain dataclasses that programs can build, read and change.

A `Report` has a `Session` (who, where, with which settings), a `Process` and `actions`. An `Action`
is one piece of work, such as a phase of a link or a comparison of two inputs; with `Scope.RANGE`,
it is a span of them, such as the whole link. It holds

* `metrics`, {name: `Metric`}; `Metric.value` is a plain int, float or str, and `Metric.instances`
  are its parts; the id of an instance names what the part belongs to: a path, section or address;
* `sections`, the `Section` definitions that say how the metrics are shown;
* `rule_results`, what rules said, and `nvtx`, the named ranges that were open when the action ran;
* `source`, the code that ran; some metrics have a value for each address in it.

    report = Report(Process(os.getpid(), "host", "pylink"))
    action = Action("merge", thread_id=1)
    action.set("link__time_duration.sum", 1_200_000)
    action.set("sect__merged.sum", 7, instances={".text.a": 3, ".text.b": 4})
    action.nvtx = NvtxState()
    action.nvtx.push(1, ["link", "merge"], domain="pylink")
    report.actions.append(action)

Nothing here needs protobuf: `pylink.report.file` reads and writes files. In `unknown`, objects keep
the encoded fields that this version does not know, so that a file of a newer tool loses nothing
when it is read and written. Fields with a value of an enumeration (`enums`) are ints for the same
reason.
"""

from __future__ import annotations

from pylink.report.model.action import Action as Action
from pylink.report.model.action import ClockStatus as ClockStatus
from pylink.report.model.action import Dim3 as Dim3
from pylink.report.model.action import Scope as Scope
from pylink.report.model.action import SectionComment as SectionComment
from pylink.report.model.action import SeriesInfo as SeriesInfo
from pylink.report.model.chart import AchievedValue as AchievedValue
from pylink.report.model.chart import BarChart as BarChart
from pylink.report.model.chart import CategoryAxis as CategoryAxis
from pylink.report.model.chart import Color as Color
from pylink.report.model.chart import CyclesPerSecond as CyclesPerSecond
from pylink.report.model.chart import DisplayProperties as DisplayProperties
from pylink.report.model.chart import HistogramAxis as HistogramAxis
from pylink.report.model.chart import HistogramChart as HistogramChart
from pylink.report.model.chart import LineChart as LineChart
from pylink.report.model.chart import MetricList as MetricList
from pylink.report.model.chart import MetricOption as MetricOption
from pylink.report.model.chart import Roofline as Roofline
from pylink.report.model.chart import RooflineAxis as RooflineAxis
from pylink.report.model.chart import RooflineChart as RooflineChart
from pylink.report.model.chart import RooflineChartOptions as RooflineChartOptions
from pylink.report.model.chart import RooflineOptions as RooflineOptions
from pylink.report.model.chart import RooflineValue as RooflineValue
from pylink.report.model.chart import SectionMetric as SectionMetric
from pylink.report.model.chart import SourceCorrelation as SourceCorrelation
from pylink.report.model.chart import SourceMetricTable as SourceMetricTable
from pylink.report.model.chart import SourceView as SourceView
from pylink.report.model.chart import Table as Table
from pylink.report.model.chart import ValueAxis as ValueAxis
from pylink.report.model.chart import ValueRange as ValueRange
from pylink.report.model.chart import Wall as Wall
from pylink.report.model.enums import Alignment as Alignment
from pylink.report.model.enums import CollectionScope as CollectionScope
from pylink.report.model.enums import ColorType as ColorType
from pylink.report.model.enums import Direction as Direction
from pylink.report.model.enums import Importance as Importance
from pylink.report.model.enums import MessageType as MessageType
from pylink.report.model.enums import NvtxMessageType as NvtxMessageType
from pylink.report.model.enums import NvtxPayloadType as NvtxPayloadType
from pylink.report.model.enums import Order as Order
from pylink.report.model.enums import Platform as Platform
from pylink.report.model.enums import Severity as Severity
from pylink.report.model.enums import SortDirection as SortDirection
from pylink.report.model.enums import SortKey as SortKey
from pylink.report.model.filters import ArchRange as ArchRange
from pylink.report.model.filters import CollectionFilter as CollectionFilter
from pylink.report.model.filters import Filter as Filter
from pylink.report.model.message import Message as Message
from pylink.report.model.metric import Instance as Instance
from pylink.report.model.metric import Metric as Metric
from pylink.report.model.metric import Scalar as Scalar
from pylink.report.model.metric import ValueKind as ValueKind
from pylink.report.model.metric import kind_of as kind_of
from pylink.report.model.nvtx import DEFAULT_DOMAIN as DEFAULT_DOMAIN
from pylink.report.model.nvtx import NvtxColor as NvtxColor
from pylink.report.model.nvtx import NvtxDomainInfo as NvtxDomainInfo
from pylink.report.model.nvtx import NvtxEventAttributes as NvtxEventAttributes
from pylink.report.model.nvtx import NvtxMessage as NvtxMessage
from pylink.report.model.nvtx import NvtxNameTable as NvtxNameTable
from pylink.report.model.nvtx import NvtxPayload as NvtxPayload
from pylink.report.model.nvtx import NvtxPushPopDomain as NvtxPushPopDomain
from pylink.report.model.nvtx import NvtxPushPopRange as NvtxPushPopRange
from pylink.report.model.nvtx import NvtxRegisteredString as NvtxRegisteredString
from pylink.report.model.nvtx import NvtxStartEndDomain as NvtxStartEndDomain
from pylink.report.model.nvtx import NvtxStartEndRange as NvtxStartEndRange
from pylink.report.model.nvtx import NvtxState as NvtxState
from pylink.report.model.nvtx import NvtxThread as NvtxThread
from pylink.report.model.report import VERSION as VERSION
from pylink.report.model.report import Report as Report
from pylink.report.model.rule import FocusMetric as FocusMetric
from pylink.report.model.rule import Proposal as Proposal
from pylink.report.model.rule import RuleBody as RuleBody
from pylink.report.model.rule import RuleItem as RuleItem
from pylink.report.model.rule import RuleMessage as RuleMessage
from pylink.report.model.rule import RuleResult as RuleResult
from pylink.report.model.section import Body as Body
from pylink.report.model.section import BodyItem as BodyItem
from pylink.report.model.section import GfxMetricsWidget as GfxMetricsWidget
from pylink.report.model.section import Header as Header
from pylink.report.model.section import HorizontalContainer as HorizontalContainer
from pylink.report.model.section import MemoryWidget as MemoryWidget
from pylink.report.model.section import MetricDefinition as MetricDefinition
from pylink.report.model.section import MetricDefinitions as MetricDefinitions
from pylink.report.model.section import MetricGroup as MetricGroup
from pylink.report.model.section import Metrics as Metrics
from pylink.report.model.section import Section as Section
from pylink.report.model.section import SectionSet as SectionSet
from pylink.report.model.session import DeviceAttribute as DeviceAttribute
from pylink.report.model.session import DeviceAttributes as DeviceAttributes
from pylink.report.model.session import DeviceProperties as DeviceProperties
from pylink.report.model.session import DeviceProperty as DeviceProperty
from pylink.report.model.session import ExecutableSettings as ExecutableSettings
from pylink.report.model.session import FilterOptions as FilterOptions
from pylink.report.model.session import IPAddress as IPAddress
from pylink.report.model.session import OtherOptions as OtherOptions
from pylink.report.model.session import Process as Process
from pylink.report.model.session import ProfilerSettings as ProfilerSettings
from pylink.report.model.session import SamplingOptions as SamplingOptions
from pylink.report.model.session import Session as Session
from pylink.report.model.session import SystemInfo as SystemInfo
from pylink.report.model.session import VersionInfo as VersionInfo
from pylink.report.model.source import CpuFrame as CpuFrame
from pylink.report.model.source import CpuStack as CpuStack
from pylink.report.model.source import RelocationData as RelocationData
from pylink.report.model.source import RelocationSymbol as RelocationSymbol
from pylink.report.model.source import Source as Source
from pylink.report.model.source import SourceFile as SourceFile
from pylink.report.model.source import SourceFiles as SourceFiles
