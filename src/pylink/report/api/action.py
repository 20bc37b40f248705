"""IAction: the metrics, names, code and NVTX state of one action."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pylink.report.api.metric import IMetric, IMutableMetric
from pylink.report.api.nvtx import INvtxState
from pylink.report.api.ruleresult import rule_dicts
from pylink.report.model import Action, Metric, Scalar, Scope, Source, ValueKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.report.source.lines import SourceMap
    from pylink.report.source.maps import SourceMaps


class ISourceInfo:
    """A location in a source file."""

    def __init__(self, file_name: str, line: int) -> None:
        self._file_name = file_name
        self._line = line

    def file_name(self) -> str:
        """Return the path of the file."""
        return self._file_name

    def line(self) -> int:
        """Return the line, from 1."""
        return self._line


class IAction:
    """One result: a kernel of a program, a phase of a link, or a range of them.

    Iterating gives the names of its metrics, `action[name]` a metric.
    """

    NameBase_FUNCTION: ClassVar[int] = 0
    NameBase_DEMANGLED: ClassVar[int] = 1
    NameBase_MANGLED: ClassVar[int] = 2

    # Newer releases of Nsight Compute list these in this order; the numbers follow the order.
    WorkloadType_KERNEL: ClassVar[int] = 0
    WorkloadType_RANGE: ClassVar[int] = 1
    WorkloadType_CMDLIST: ClassVar[int] = 2
    WorkloadType_GRAPH: ClassVar[int] = 3
    WorkloadType_SUBGRID_SCHEDULE: ClassVar[int] = 4

    def __init__(self, action: Action, sources: SourceMaps) -> None:
        self._action = action
        self._sources = sources

    def __str__(self) -> str:
        """Return the function name; "range" for a range."""
        return self._action.function_name if self._action.scope is Scope.LAUNCH else "range"

    def __len__(self) -> int:
        """Return the number of metrics."""
        return len(self._action.metrics)

    def __iter__(self) -> Iterator[str]:
        """Return the names of the metrics, sorted."""
        return iter(self.metric_names())

    def __contains__(self, name: object) -> bool:
        """Return whether there is a metric of this name."""
        return name in self._action.metrics

    def __getitem__(self, key: str) -> IMetric:
        """Return the metric of this name. Raises KeyError if it does not exist."""
        if not isinstance(key, str):
            raise TypeError(f"IAction metric keys must be strings, not {type(key).__name__}")
        metric = self.metric_by_name(key)
        if metric is None:
            raise KeyError(f"no metric named '{key}'")
        return metric

    def name(self, name_base: int = NameBase_FUNCTION) -> str | None:
        """Return the name in the form of one of NameBase_* ("range" for a range).

        None if `name_base` is not one of these numbers.
        """
        action = self._action
        names = (action.function_name, action.demangled_name, action.mangled_name)
        if not 0 <= name_base < len(names):
            return None
        return names[name_base] if action.scope is Scope.LAUNCH else "range"

    def metric_names(self) -> tuple[str, ...]:
        """Return the names of all metrics, sorted."""
        return tuple(sorted(self._action.metrics))

    def metric_by_name(self, metric_name: str) -> IMetric | None:
        """Return the metric of this name; None if it does not exist."""
        if not isinstance(metric_name, str):
            raise TypeError(f"metric names are strings, not {type(metric_name).__name__}")
        metric = self._action.metrics.get(metric_name)
        return None if metric is None else IMetric(metric)

    def add_metric(self, metric_name: str) -> IMutableMetric:
        """Return the metric of this name, to be changed; if it does not exist, a new one."""
        metric = self._action.metrics.get(metric_name)
        return IMutableMetric(metric or self._action.add(Metric(metric_name)))

    def add_integer_metric(self, value_name: str, value_kind: int, value: int) -> IMetric | None:
        """Add and return a metric of kind UINT32 or UINT64; add none and return None for others."""
        return self._add(value_name, value_kind, value, {ValueKind.UINT32, ValueKind.UINT64})

    def add_double_metric(self, value_name: str, value_kind: int, value: float) -> IMetric | None:
        """Add and return a metric of kind FLOAT or DOUBLE; add none and return None for others."""
        return self._add(value_name, value_kind, float(value), {ValueKind.FLOAT, ValueKind.DOUBLE})

    def add_string_metric(self, value_name: str, value_kind: int, value: str) -> IMetric | None:
        """Add and return a metric of kind STRING; add none and return None for other kinds."""
        return self._add(value_name, value_kind, value, {ValueKind.STRING})

    def _add(self, name: str, kind: int, value: Scalar, kinds: set[ValueKind]) -> IMetric | None:
        """Add and return a metric; add none and return None if `kind` is not one of `kinds`."""
        stored_kind = next((member for member in kinds if member == kind), None)
        if stored_kind is None:
            return None
        return IMetric(self._action.add(Metric(name, value, stored_kind)))

    def nvtx_state(self) -> INvtxState | None:
        """Return the NVTX ranges that were open; None if none were recorded."""
        state = self._action.nvtx
        return None if state is None else INvtxState(state, self._action.thread_id)

    def workload_type(self) -> int:
        """Return WorkloadType_RANGE or WorkloadType_KERNEL."""
        in_range = self._action.scope is Scope.RANGE
        return self.WorkloadType_RANGE if in_range else self.WorkloadType_KERNEL

    def rule_results_as_dicts(self) -> list[dict[str, object]]:
        """Return a dict for each message of a rule, and one for each rule without messages."""
        return rule_dicts(self._action.rule_results)

    def source_files(self) -> dict[str, str]:
        """Return {path: contents} of the source files; "" for one whose contents are missing."""
        source = self._source()
        files = source.source_files.files if source and source.source_files else []
        return {file.file_name: file.content or "" for file in files}

    def source_info(self, address: int) -> ISourceInfo | None:
        """Return the source line of an instruction; None without a line table that knows it.

        Addresses are the correlation ids of source-correlated metrics.
        """
        line = self._map().line(address)
        return None if line is None else ISourceInfo(*line)

    def ptx_by_pc(self, address: int) -> str:
        """Return the line of PTX that an instruction came from; "" if unknown."""
        return self._map().ptx(address)

    def sass_by_pc(self, address: int) -> str:
        """Return the instruction at an address; "" if not available.

        A report contains the cubin but not its disassembly, so this needs `nvdisasm` from NVIDIA's
        wheels, from a toolkit in CUDA_HOME or CUDA_PATH, or from PATH.
        """
        return self._map().sass(address)

    def _source(self) -> Source | None:
        """Return the code of the action; None if the report does not contain it."""
        return self._sources.source(self._action)

    def _map(self) -> SourceMap:
        """Return the map from addresses to source lines."""
        return self._sources.of(self._action)
