"""The bytes of an output as a tree: kinds of sections, their inputs, and symbols."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pylink.demangle import demangle
from pylink.report.model import Report
from pylink.size.levels import OTHER_FUNCTIONS, SHARED

# The metric whose instances are the parts of the output, and the separator of kind, input and
# symbol in their names.
ORIGINS, PATH_SEPARATOR = "elf__bytes_by_origin.sum", " > "

# The metrics whose instances are the parts and the functions of `pylink size`.
PARTS, FUNCTIONS = "elf__bytes_by_part.sum", "elf__bytes_by_function.sum"

# Limit of the parts of a node that are shown; the smaller ones are combined.
MAX_PARTS = 10
# Index of the symbol in a path: kind, input, symbol.
SYMBOL_DEPTH = 2
# OTHERS are parts in the metric ORIGINS that stand for several smaller ones. UNNAMED are names in
# the metric FUNCTIONS that are not names of functions.
OTHERS = ("other files", "other symbols")
UNNAMED = (OTHER_FUNCTIONS, SHARED)


@dataclass(slots=True)
class Node:
    """The output, or a part of it; `size` is the sum of the sizes of `parts`, if it has any."""

    name: str
    size: int = 0
    parts: dict[str, Node] = field(default_factory=dict)

    def largest(self) -> list[Node]:
        """Return the `MAX_PARTS` largest parts, then one part for all others if there are any."""
        single_parts = [node for node in self.parts.values() if node.name not in OTHERS]
        ordered = sorted(single_parts, key=lambda node: -node.size)
        largest_nodes, others = ordered[:MAX_PARTS], ordered[MAX_PARTS:]
        others += [node for node in self.parts.values() if node.name in OTHERS]
        if len(others) == 1:
            largest_nodes.append(others.pop())
        if others:
            are_single = all(node.name not in OTHERS for node in others)
            name = f"{len(others):,} others" if are_single else "others"
            largest_nodes.append(Node(name, sum(node.size for node in others)))
        return largest_nodes


def instance_sizes(report: Report, metric: str) -> list[tuple[str, int]]:
    """Return pairs (demangled name, bytes) of the instances of a metric, largest first."""
    parts = [
        (demangle(str(instance.id)), int(instance.value))
        for action in report.actions
        if metric in action.metrics
        for instance in action.metrics[metric].instances
        if not isinstance(instance.value, str)
    ]
    return sorted(parts, key=lambda pair: -pair[1])


def byte_tree(report: Report) -> Node | None:
    """Return the bytes of the output as a tree; None if the report does not contain its parts."""
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
    """Return the tree of pairs (name, bytes); a name is a path, such as `.text > a.cubin > f`."""
    root = Node("output")
    for name, size in parts:
        node = root
        node.size += size
        for depth, part_name in enumerate(name.split(PATH_SEPARATOR, SYMBOL_DEPTH)):
            label = demangle(part_name) if depth == SYMBOL_DEPTH else part_name
            node = node.parts.setdefault(part_name, Node(label))
            node.size += size
    return root
