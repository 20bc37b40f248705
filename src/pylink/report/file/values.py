"""Values of metrics, and the metrics of an action: what most of a file consists of."""

from __future__ import annotations

from typing import Any

from pylink.report.errors import ReportError
from pylink.report.model import Instance, Metric, Scalar, ValueKind

_KINDS = {
    "StringValue": ValueKind.STRING,
    "FloatValue": ValueKind.FLOAT,
    "DoubleValue": ValueKind.DOUBLE,
    "Uint32Value": ValueKind.UINT32,
    "Uint64Value": ValueKind.UINT64,
}
# By kind: enumerators are slow as keys, and there may be 100,000 values.
_FIELDS = [next((name for name, kind in _KINDS.items() if kind is each), "") for each in ValueKind]


def text(value: Any) -> str:
    """The text of a string field; bytes, as protobuf gives invalid UTF-8, are escaped."""
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def encodable(value: Any) -> Any:
    """A value with escapes for what UTF-8 cannot say, such as bytes of paths that are not text."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def read_value(message: Any) -> tuple[Scalar | None, ValueKind]:
    """The value of a ProfileMetricValue and its kind; None of kind UNKNOWN if none is set."""
    name = message.WhichOneof("Value")
    if name is None:
        return None, ValueKind.UNKNOWN
    value = getattr(message, name)
    return (text(value) if name == "StringValue" else value), _KINDS[name]


def write_value(message: Any, value: Scalar, kind: ValueKind, name: str) -> None:
    """Set a ProfileMetricValue; `name` is whose value it is, for the error."""
    field = _FIELDS[kind]
    if not field:
        raise ReportError(f"metric {name!r}: a value cannot be stored as {kind!r}")
    if isinstance(value, str) and not value.isascii():
        value = encodable(value)
    try:
        setattr(message, field, value)
    except (TypeError, ValueError) as error:
        raise ReportError(
            f"metric {name!r}: {value!r} cannot be stored as {kind.name.lower()}"
        ) from error


def read_metric(message: Any, name: str) -> Metric:
    """A metric from its ProfileMetricResult."""
    value, kind = read_value(message.MetricValue)
    elements = message.MetricValueList
    if not elements:
        return Metric(name, value, kind)
    instances = []
    for element in elements:
        each, each_kind = read_value(element.ElementValue)
        if each is None:
            continue
        if element.HasField("CorrelationId"):
            key, key_kind = read_value(element.CorrelationId)
            instances.append(Instance(each, key, each_kind, key_kind))
        else:
            instances.append(Instance(each, None, each_kind))
    return Metric(name, value, kind, instances)


class Names:
    """The names of the metrics of a file, by number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._fresh: list[str] = []

    def number(self, name: str) -> int:
        """The number of a name, a new one for a name that is new."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._numbers)
            self._fresh.append(encodable(name))
        return number

    def take(self) -> list[str]:
        """The names that are new since this was called last."""
        fresh, self._fresh = self._fresh, []
        return fresh


def write_metrics(metrics: dict[str, Metric], rows: Any, names: Names) -> None:
    """Add a ProfileMetricResult per metric, numbered by `names`.

    A metric that has no value at all is omitted: readers crash on it.
    """
    for name, metric in metrics.items():
        if metric.value is None and not metric.instances:
            continue
        row = rows.add()
        row.NameId = names.number(name)
        if metric.value is not None:
            write_value(row.MetricValue, metric.value, metric.kind, name)
        add = row.MetricValueList.add
        for instance in metric.instances:
            element = add()
            write_value(element.ElementValue, instance.value, instance.kind, name)
            if instance.id is not None:
                write_value(element.CorrelationId, instance.id, instance.id_kind, name)
        if metric.unknown:
            row.MergeFromString(metric.unknown)
