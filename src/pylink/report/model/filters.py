"""Filters of sections and metrics by architecture and scope."""

from __future__ import annotations

from dataclasses import dataclass, field

from pylink.report.model.message import Message


@dataclass(slots=True, eq=False, repr=False)
class ArchRange(Message):
    """Architectures from `min_arch` to `max_arch`, both included; 86 is sm_86."""

    min_arch: int | None = None
    max_arch: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class CollectionFilter(Message):
    """The scopes for which a metric is collected (`CollectionScope`), and its `Importance`."""

    collection_scopes: list[int] = field(default_factory=list)
    importance: int | None = None


@dataclass(slots=True, eq=False, repr=False)
class Filter(Message):
    """The filter of a metric or section; with `items`, `min_arch` and `max_arch` are ignored."""

    min_arch: int | None = None
    max_arch: int | None = None
    items: list[ArchRange] = field(default_factory=list)
    collection_filter: CollectionFilter | None = None
