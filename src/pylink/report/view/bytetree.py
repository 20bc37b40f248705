"""The bytes of an output as a tree: kinds of sections, their inputs, and symbols."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pylink.demangle import demangle
from pylink.report.model import Report
from pylink.size.levels import OTHER_FUNCTIONS, SHARED

# The metric whose instances are the parts, and the separator in their names.
ORIGINS, STEP = "elf__bytes_by_origin.sum", " > "

# The metrics whose instances are parts and functions as in `pylink size`.
PARTS, FUNCTIONS = "elf__bytes_by_part.sum", "elf__bytes_by_function.sum"

# Limit of the parts on each level; the others are combined.
MAX_PARTS = 10
# The level of symbols.
SYMBOL = 2
# Names of parts that a link has combined.
OTHERS = ("other files", "other symbols")
UNNAMED = (OTHER_FUNCTIONS, SHARED)


@dataclass(slots=True)
class Node:
    """A part of the output; its size is the sum of its parts."""

    name: str
    size: int = 0
    parts: dict[str, Node] = field(default_factory=dict)

    def largest(self) -> list[Node]:
        """The parts, largest first; those beyond `MAX_PARTS` are combined, so that sizes add up."""
        single_parts = [node for node in self.parts.values() if node.name not in OTHERS]
        ordered = sorted(single_parts, key=lambda node: -node.size)
        head, others = ordered[:MAX_PARTS], ordered[MAX_PARTS:]
        others += [node for node in self.parts.values() if node.name in OTHERS]
        if len(others) == 1:
            head.append(others.pop())
        if others:
            are_single = all(node.name not in OTHERS for node in others)
            name = f"{len(others):,} others" if are_single else "others"
            head.append(Node(name, sum(node.size for node in others)))
        return head


def instance_sizes(report: Report, metric: str) -> list[tuple[str, int]]:
    """The instances of a metric in bytes, largest first, with demangled names."""
    parts = [
        (demangle(str(instance.id)), int(instance.value))
        for action in report.actions
        if metric in action.metrics
        for instance in action.metrics[metric].instances
        if not isinstance(instance.value, str)
    ]
    return sorted(parts, key=lambda pair: -pair[1])


def byte_tree(report: Report) -> Node | None:
    """The output as a tree; None if the report does not have its parts."""
    for action in report.actions:
        metric = action.metrics.get(ORIGINS)
        if metric is not None and metric.instances:
            return build_tree(
                (str(instance.id), int(instance.value))
                for instance in metric.instances
                if not isinstance(instance.value, str)
            )
    return None


def build_tree(parts: Iterable[tuple[str, int]]) -> Node:
    """Build the tree of parts from their names."""
    root = Node("output")
    for name, size in parts:
        node = root
        node.size += size
        for depth, step in enumerate(name.split(STEP, 2)):
            label = demangle(step) if depth == SYMBOL else step
            node = node.parts.setdefault(step, Node(label))
            node.size += size
    return root
