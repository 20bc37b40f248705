"""Metrics: a name, a value, and instances, i.e. further values, usually with ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

Scalar: TypeAlias = int | float | str


class ValueKind(IntEnum):
    """The type of a stored value; the numbers are those of `ncu_report.IMetric`."""

    UNKNOWN = 0
    ANY = 1
    STRING = 2
    FLOAT = 3
    DOUBLE = 4
    UINT32 = 5
    UINT64 = 6


def kind_of(value: Scalar | None) -> ValueKind:
    """Return the kind of `value`: STRING for str, DOUBLE for float, UINT64 for int.

    Reports have no signed kind, so a negative int is a DOUBLE. None is UNKNOWN.
    """
    if value is None:
        return ValueKind.UNKNOWN
    if isinstance(value, str):
        return ValueKind.STRING
    if isinstance(value, float) or value < 0:
        return ValueKind.DOUBLE
    return ValueKind.UINT64


@dataclass(slots=True, init=False)
class Instance:
    """One element of a metric: a value and its id (an address, an index, a name)."""

    value: Scalar
    id: Scalar | None
    kind: ValueKind
    id_kind: ValueKind

    # A generated `__init__` would need a `__post_init__`, a second call. A link with many inputs
    # has tens of thousands of instances, so this would take noticeably longer.
    def __init__(
        self,
        value: Scalar,
        id: Scalar | None = None,
        kind: ValueKind = ValueKind.UNKNOWN,
        id_kind: ValueKind = ValueKind.UNKNOWN,
    ) -> None:
        self.value = value
        self.id = id
        self.kind = kind or kind_of(value)
        self.id_kind = id_kind or kind_of(id)


@dataclass(slots=True)
class Metric:
    """A named measurement of an action.

    `value` is None if the metric only has instances. `kind` says how the value is stored (default:
    what `kind_of` finds). The value of a metric with instances is usually their total. A metric
    with neither a value nor instances is not written to a file, since tools crash on it.
    """

    name: str
    value: Scalar | None = None
    kind: ValueKind = ValueKind.UNKNOWN
    instances: list[Instance] = field(default_factory=list)
    unknown: bytes = field(default=b"", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.kind is ValueKind.UNKNOWN and self.value is not None:
            self.kind = kind_of(self.value)

    @classmethod
    def of_instances(
        cls,
        name: str,
        instances: Mapping[str, Scalar] | Mapping[int, Scalar] | Iterable[Scalar],
        value: Scalar | None = None,
    ) -> Metric:
        """Return a metric with one instance per entry: {id: value}, or values without ids."""
        if isinstance(instances, Mapping):
            rows = [Instance(item, key) for key, item in instances.items()]
        else:
            rows = [Instance(instance) for instance in instances]
        return cls(name, value, instances=rows)

    @property
    def has_ids(self) -> bool:
        """Whether there are instances and each has an id."""
        return bool(self.instances) and all(instance.id is not None for instance in self.instances)

    def by_id(self) -> dict[Scalar, Scalar]:
        """Return {id: value} of the instances with an id; the last instance of each id counts."""
        return {
            instance.id: instance.value for instance in self.instances if instance.id is not None
        }
