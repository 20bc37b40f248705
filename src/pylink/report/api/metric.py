"""IMetric and IMutableMetric: a value, and instances with their ids."""

from __future__ import annotations

from typing import ClassVar

from pylink.report.api.descriptions import describe
from pylink.report.api.metricname import MetricType, Rollup, Subtype, parse, unit
from pylink.report.model import Instance, Metric, Scalar, ValueKind

UINT64_MAX = (1 << 64) - 1

_NUMERIC = {ValueKind.FLOAT, ValueKind.DOUBLE, ValueKind.UINT32, ValueKind.UINT64}


class IMetric:
    """A single, named metric. It can contain a value, instances, or both.

    `instance` is the index of an instance, from 0, or None for the value of the metric itself. An
    instance that does not exist has the kind UNKNOWN and the value None.
    """

    ValueKind_UNKNOWN: ClassVar[int] = ValueKind.UNKNOWN
    ValueKind_ANY: ClassVar[int] = ValueKind.ANY
    ValueKind_STRING: ClassVar[int] = ValueKind.STRING
    ValueKind_FLOAT: ClassVar[int] = ValueKind.FLOAT
    ValueKind_DOUBLE: ClassVar[int] = ValueKind.DOUBLE
    ValueKind_UINT32: ClassVar[int] = ValueKind.UINT32
    ValueKind_UINT64: ClassVar[int] = ValueKind.UINT64

    MetricType_OTHER: ClassVar[int] = MetricType.OTHER
    MetricType_COUNTER: ClassVar[int] = MetricType.COUNTER
    MetricType_RATIO: ClassVar[int] = MetricType.RATIO
    MetricType_THROUGHPUT: ClassVar[int] = MetricType.THROUGHPUT

    RollupOperation_AVG: ClassVar[int] = Rollup.AVG
    RollupOperation_MAX: ClassVar[int] = Rollup.MAX
    RollupOperation_MIN: ClassVar[int] = Rollup.MIN
    RollupOperation_SUM: ClassVar[int] = Rollup.SUM

    MetricSubtype_PEAK_SUSTAINED: ClassVar[int] = Subtype.PEAK_SUSTAINED
    MetricSubtype_PEAK_SUSTAINED_ACTIVE: ClassVar[int] = Subtype.PEAK_SUSTAINED_ACTIVE
    MetricSubtype_PEAK_SUSTAINED_ACTIVE_PER_SECOND: ClassVar[int] = (
        Subtype.PEAK_SUSTAINED_ACTIVE_PER_SECOND
    )
    MetricSubtype_PEAK_SUSTAINED_ELAPSED: ClassVar[int] = Subtype.PEAK_SUSTAINED_ELAPSED
    MetricSubtype_PEAK_SUSTAINED_ELAPSED_PER_SECOND: ClassVar[int] = (
        Subtype.PEAK_SUSTAINED_ELAPSED_PER_SECOND
    )
    MetricSubtype_PEAK_SUSTAINED_FRAME: ClassVar[int] = Subtype.PEAK_SUSTAINED_FRAME
    MetricSubtype_PEAK_SUSTAINED_FRAME_PER_SECOND: ClassVar[int] = (
        Subtype.PEAK_SUSTAINED_FRAME_PER_SECOND
    )
    MetricSubtype_PEAK_SUSTAINED_REGION: ClassVar[int] = Subtype.PEAK_SUSTAINED_REGION
    MetricSubtype_PEAK_SUSTAINED_REGION_PER_SECOND: ClassVar[int] = (
        Subtype.PEAK_SUSTAINED_REGION_PER_SECOND
    )
    MetricSubtype_PER_CYCLE_ACTIVE: ClassVar[int] = Subtype.PER_CYCLE_ACTIVE
    MetricSubtype_PER_CYCLE_ELAPSED: ClassVar[int] = Subtype.PER_CYCLE_ELAPSED
    MetricSubtype_PER_CYCLE_IN_FRAME: ClassVar[int] = Subtype.PER_CYCLE_IN_FRAME
    MetricSubtype_PER_CYCLE_IN_REGION: ClassVar[int] = Subtype.PER_CYCLE_IN_REGION
    MetricSubtype_PER_SECOND: ClassVar[int] = Subtype.PER_SECOND
    MetricSubtype_PCT_OF_PEAK_SUSTAINED_ACTIVE: ClassVar[int] = Subtype.PCT_OF_PEAK_SUSTAINED_ACTIVE
    MetricSubtype_PCT_OF_PEAK_SUSTAINED_ELAPSED: ClassVar[int] = (
        Subtype.PCT_OF_PEAK_SUSTAINED_ELAPSED
    )
    MetricSubtype_PCT_OF_PEAK_SUSTAINED_FRAME: ClassVar[int] = Subtype.PCT_OF_PEAK_SUSTAINED_FRAME
    MetricSubtype_PCT_OF_PEAK_SUSTAINED_REGION: ClassVar[int] = Subtype.PCT_OF_PEAK_SUSTAINED_REGION
    MetricSubtype_MAX_RATE: ClassVar[int] = Subtype.MAX_RATE
    MetricSubtype_PCT: ClassVar[int] = Subtype.PCT
    MetricSubtype_RATIO: ClassVar[int] = Subtype.RATIO

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def __str__(self) -> str:
        """Return the name of the metric."""
        return self._metric.name

    def name(self) -> str:
        """Return the name of the metric."""
        return self._metric.name

    def kind(self, instance: int | None = None) -> int:
        """Return the kind of the value, or of an instance's value: one of ValueKind_*.

        If the metric itself has no value, but instances, the kind is that of the first instance.
        """
        return int(self._value(instance)[1])

    def value(self, instance: int | None = None) -> Scalar | None:
        """Return the value, or that of an instance: int, float or str by its kind, or None.

        A missing value is 0 or 0.0 if its kind is numeric, else None.
        """
        value, kind = self._value(instance)
        if value is None and kind in _NUMERIC:
            return 0.0 if kind in (ValueKind.FLOAT, ValueKind.DOUBLE) else 0
        return value

    def as_uint64(self, instance: int | None = None) -> int:
        """Return the value, or that of an instance, as an int without its fraction.

        0 for a string and without a value; a value below 0 is read as 64 bits without a sign.
        """
        value = self._value(instance)[0]
        if value is None or isinstance(value, str):
            return 0
        try:
            return int(value) & UINT64_MAX if value < 0 else int(value)
        except (OverflowError, ValueError):  # infinite, or not a number
            return 0

    def as_double(self, instance: int | None = None) -> float:
        """Return the value, or that of an instance, as a float; 0.0 for a string or no value."""
        value = self._value(instance)[0]
        return 0.0 if value is None or isinstance(value, str) else float(value)

    def as_string(self, instance: int | None = None) -> str | None:
        """Return the value, or that of an instance, if it is a string; None otherwise."""
        value = self._value(instance)[0]
        return value if isinstance(value, str) else None

    def has_value(self, value_kind: int | None = None) -> bool:
        """Return whether the metric itself has a value; with a kind, whether `kind()` returns it.

        True also for ANY. If the metric has only instances, `kind()` is that of the first instance.
        """
        if value_kind is None:
            return self._metric.value is not None
        return value_kind in (self.kind(), self.ValueKind_ANY)

    def num_instances(self) -> int:
        """Return the number of instances."""
        return len(self._metric.instances)

    def has_correlation_ids(self) -> bool:
        """Return whether any instance has an id."""
        return any(instance.id is not None for instance in self._metric.instances)

    def correlation_ids(self) -> IMetric | None:
        """Return a metric whose instances are the ids of this metric's instances; None without ids.

        Instances without an id have 0 there.
        """
        if not self.has_correlation_ids():
            return None
        return IMetric(_metric_of_ids(self._metric))

    def metric_type(self) -> int:
        """Return the type that the name shows, one of MetricType_*."""
        return int(parse(self._metric.name).type)

    def metric_subtype(self) -> int | None:
        """Return the subtype that the name shows, one of MetricSubtype_*; None without one."""
        subtype = parse(self._metric.name).subtype
        return None if subtype is None else int(subtype)

    def rollup_operation(self) -> int | None:
        """Return the rollup that the name shows, one of RollupOperation_*; None without one."""
        rollup = parse(self._metric.name).rollup
        return None if rollup is None else int(rollup)

    def unit(self) -> str:
        """Return the unit that the name shows, such as "byte" or "nsecond"; "" without one."""
        return unit(self._metric.name)

    def description(self) -> str:
        """Return the description of a metric that pylink records of links.

        "" for other metrics, since report files contain no descriptions.
        """
        return describe(self._metric.name)

    def _value(self, instance: int | None) -> tuple[Scalar | None, ValueKind]:
        """Return the value and its kind, of the metric or of an instance."""
        rows = self._metric.instances
        if instance is None:
            kind = self._metric.kind
            if self._metric.value is None and rows:
                kind = rows[0].kind
            return self._metric.value, kind
        if not 0 <= instance < len(rows):
            return None, ValueKind.UNKNOWN
        return rows[instance].value, rows[instance].kind


class IMutableMetric(IMetric):
    """A metric that can be changed.

    Each setter takes (kind, value), or (instance, kind, value). `instance` is an index; one that
    equals the number of instances adds an instance. Kind ANY stands for UINT64, DOUBLE or STRING,
    by the setter. Setters return whether the value was set.
    """

    def set_uint64(self, *args: int) -> bool:
        """Set an unsigned value, of kind UINT32, UINT64 or ANY."""
        return self._set(args, {ValueKind.UINT32, ValueKind.UINT64}, ValueKind.UINT64)

    def set_double(self, *args: float) -> bool:
        """Set a number, of kind FLOAT, DOUBLE or ANY."""
        return self._set(args, {ValueKind.FLOAT, ValueKind.DOUBLE}, ValueKind.DOUBLE)

    def set_string(self, *args: int | str) -> bool:
        """Set a text, of kind STRING or ANY."""
        return self._set(args, {ValueKind.STRING}, ValueKind.STRING)

    def mutable_correlation_ids(self) -> IMutableMetric:
        """Return a metric whose instances are the ids; setting one of them sets an id."""
        return _MutableIds(self._metric)

    def _set(self, args: tuple[Scalar, ...], kinds: set[ValueKind], default: ValueKind) -> bool:
        """Set a value; return False if its kind is not one of `kinds` or cannot hold it.

        `args` are those of the setter, `default` is the kind for ANY.
        """
        if len(args) not in (2, 3):
            raise TypeError("a value is set with (kind, value) or (instance, kind, value)")
        *index, requested, value = args
        kind = default if requested == ValueKind.ANY else ValueKind(int(requested))
        if kind not in kinds or not _can_hold(kind, value):
            return False
        if kind in (ValueKind.FLOAT, ValueKind.DOUBLE):
            value = float(value)
        if index:
            return self._set_instance(int(index[0]), value, kind)
        return self._set_value(value, kind)

    def _set_value(self, value: Scalar, kind: ValueKind) -> bool:
        """Set the value of the metric itself; return True."""
        self._metric.value, self._metric.kind = value, kind
        return True

    def _set_instance(self, index: int, value: Scalar, kind: ValueKind) -> bool:
        """Set the value of an instance, or add one after the last; False for any other index."""
        rows = self._metric.instances
        if not 0 <= index <= len(rows):
            return False
        if index == len(rows):
            rows.append(Instance(value, None, kind))
        else:
            rows[index].value, rows[index].kind = value, kind
        return True


class _MutableIds(IMutableMetric):
    """The ids of a metric's instances; changes are written to that metric."""

    def __init__(self, owner: Metric) -> None:
        super().__init__(_metric_of_ids(owner))
        self._owner = owner

    def _set_value(self, value: Scalar, kind: ValueKind) -> bool:
        """Return False: only instances have ids."""
        return False

    def _set_instance(self, index: int, value: Scalar, kind: ValueKind) -> bool:
        """Set the id of an instance; return False if the instance does not exist."""
        rows = self._owner.instances
        if not 0 <= index < len(rows):
            return False
        rows[index].id, rows[index].id_kind = value, kind
        self._metric.instances[index] = Instance(value, None, kind)
        return True


def _metric_of_ids(metric: Metric) -> Metric:
    """Return a metric of the same name whose instances are the ids; 0 for a missing id."""
    rows = [
        Instance(0, None, ValueKind.UINT64)
        if instance.id is None
        else Instance(instance.id, None, instance.id_kind)
        for instance in metric.instances
    ]
    return Metric(metric.name, None, ValueKind.UINT64, rows)


def _can_hold(kind: ValueKind, value: Scalar) -> bool:
    """Return whether a value can be stored as this kind."""
    if isinstance(value, str) or kind is ValueKind.STRING:
        return isinstance(value, str) and kind is ValueKind.STRING
    if kind in (ValueKind.FLOAT, ValueKind.DOUBLE):
        return True
    limit = 1 << (32 if kind is ValueKind.UINT32 else 64)
    return isinstance(value, int) and 0 <= value < limit
