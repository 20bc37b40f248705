"""Actions: the pieces of work that a report has measurements of, such as phases or kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from pylink.report.model.message import Message
from pylink.report.model.metric import Metric, Scalar, ValueKind
from pylink.report.model.nvtx import NvtxState
from pylink.report.model.rule import RuleResult
from pylink.report.model.section import Section
from pylink.report.model.session import Process
from pylink.report.model.source import CpuStack, Source


class Scope(Enum):
    """The extent of an action: one kernel or phase, or a range of them (which has no name)."""

    LAUNCH = "launch"
    RANGE = "range"


@dataclass(slots=True, eq=False, repr=False)
class Dim3(Message):
    """Sizes in three dimensions, such as those of a grid."""

    x: int | None = None
    y: int | None = None
    z: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class SectionComment(Message):
    """A user's comment on a section."""

    section_id: str = ""
    display_name: str = ""
    text: str = ""


@dataclass(slots=True, eq=False, repr=False)
class SeriesInfo(Message):
    """The series of runs that the action belongs to, and its combination of settings."""

    series_id: int = 0
    combination_str: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class ClockStatus(Message):
    """Whether locking the clocks was requested, and whether it worked."""

    requested_lock: bool = False
    executed_locked: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Action(Message):
    """One measured piece of work, with all that is known about it.

    `thread_id` is the thread whose NVTX ranges are the action's. `source` refers to an entry of
    `Report.sources`. `stream_name` and `context_name` are shown in place of the numbers of stream
    and context. `creation_time` is in Unix seconds. Files do not store the names, sizes and source
    of a range, and only pylink shows the messages of rules about a range.
    """

    function_name: str = ""
    demangled_name: str = ""
    mangled_name: str = ""
    metrics: dict[str, Metric] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)
    rule_results: list[RuleResult] = field(default_factory=list)
    nvtx: NvtxState | None = None
    source: Source = field(default_factory=Source)
    scope: Scope = Scope.LAUNCH
    # The process that ran the action; None stands for `Report.process`.
    process: Process | None = None
    thread_id: int = 0
    api_call_id: int = 0
    program_handle: int = 0
    kernel_id: int = 0
    work_dimensions: int = 1
    global_work_offset: Dim3 = field(default_factory=Dim3)
    grid_size: Dim3 = field(default_factory=Dim3)
    block_size: Dim3 = field(default_factory=Dim3)
    comments: str | None = None
    creation_time: int | None = None
    api: int | None = None
    section_comments: list[SectionComment] = field(default_factory=list)
    unsupported_device: bool | None = None
    context_id: int | None = None
    stream_id: int | None = None
    series_info: SeriesInfo | None = None
    clock_status: ClockStatus | None = None
    context_name: str | None = None
    stream_name: str | None = None
    cpu_stack: CpuStack | None = None
    # Values of `Source.reference` for all code that ran in a range; empty for a kernel.
    references: list[int] = field(default_factory=list)

    def add(self, metric: Metric) -> Metric:
        """Add a metric; one of the same name is replaced."""
        self.metrics[metric.name] = metric
        return metric

    def set(
        self,
        name: str,
        value: Scalar | None = None,
        instances: Mapping[str, Scalar] | Mapping[int, Scalar] | Iterable[Scalar] = (),
        kind: ValueKind = ValueKind.UNKNOWN,
    ) -> Metric:
        """Add a metric; `instances` are {id: value}, or values without ids.

        With `kind` UNKNOWN, `kind_of` finds the kind of the value.
        """
        metric = Metric.of_instances(name, instances, value)
        if kind is not ValueKind.UNKNOWN:
            metric.kind = kind
        return self.add(metric)

    def value(self, name: str) -> Scalar | None:
        """Return a metric's value, not those of instances; None if it or the metric is missing."""
        metric = self.metrics.get(name)
        return None if metric is None else metric.value

    def number(self, name: str) -> int | float | None:
        """Return a metric's value, not those of instances, if it is a number, else None."""
        value = self.value(name)
        return None if isinstance(value, str) else value

    def section(self, identifier: str) -> Section | None:
        """Return the section with this identifier, or None."""
        return next(
            (section for section in self.sections if section.identifier == identifier), None
        )
