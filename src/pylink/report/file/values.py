"""Converts metrics and their values from and to messages; they are the largest part of a file."""

from __future__ import annotations

from typing import Any

from pylink.report.errors import ReportError
from pylink.report.model import Instance, Metric, Scalar, ValueKind

# Kinds by the field of a ProfileMetricValue that holds the value.
_KINDS_BY_FIELD = {
    "StringValue": ValueKind.STRING,
    "FloatValue": ValueKind.FLOAT,
    "DoubleValue": ValueKind.DOUBLE,
    "Uint32Value": ValueKind.UINT32,
    "Uint64Value": ValueKind.UINT64,
}
# The names of the fields of a ProfileMetricValue, indexed by kind; "" for a kind without a field.
# It is a list, since enumerators are slow as keys of a dict, and there may be 100,000 values.
_FIELDS_BY_KIND = [
    next((name for name, kind in _KINDS_BY_FIELD.items() if kind is member), "")
    for member in ValueKind
]


def decode_text(value: Any) -> str:
    """Return the text of a string field, with escapes if it is bytes, i.e. invalid UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")


def encodable(value: Any) -> Any:
    """Return a value that a field can hold: in a str, surrogates (as in paths) are escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def read_value(message: Any) -> tuple[Scalar | None, ValueKind]:
    """Return the value of a ProfileMetricValue and its kind; None and UNKNOWN without a value."""
    name = message.WhichOneof("Value")
    if name is None:
        return None, ValueKind.UNKNOWN
    value = getattr(message, name)
    return (decode_text(value) if name == "StringValue" else value), _KINDS_BY_FIELD[name]


def write_value(message: Any, value: Scalar, kind: ValueKind, name: str) -> None:
    """Set a ProfileMetricValue; `name` is the metric's name, for the ReportError if it fails."""
    field = _FIELDS_BY_KIND[kind]
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
    """Read the metric `name` from its ProfileMetricResult, without instances that have no value."""
    value, kind = read_value(message.MetricValue)
    elements = message.MetricValueList
    if not elements:
        return Metric(name, value, kind)
    instances = []
    for element in elements:
        element_value, element_kind = read_value(element.ElementValue)
        if element_value is None:
            continue
        if element.HasField("CorrelationId"):
            element_id, id_kind = read_value(element.CorrelationId)
            instances.append(Instance(element_value, element_id, element_kind, id_kind))
        else:
            instances.append(Instance(element_value, None, element_kind))
    return Metric(name, value, kind, instances)


class NameNumbers:
    """Gives each name of a metric a number, from 0; a file stores the names in this order."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._new_names: list[str] = []  # since the last call of `drain_new`

    def number(self, name: str) -> int:
        """Return the number of a name, assigned at its first use."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._numbers)
            self._new_names.append(encodable(name))
        return number

    def drain_new(self) -> list[str]:
        """Return the names that were added since the last call."""
        new_names, self._new_names = self._new_names, []
        return new_names


def write_metrics(metrics: dict[str, Metric], rows: Any, names: NameNumbers) -> None:
    """Add a ProfileMetricResult to `rows` for each metric; `names` numbers the metrics' names.

    A metric with neither a value nor instances is omitted, since readers crash on it.
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
