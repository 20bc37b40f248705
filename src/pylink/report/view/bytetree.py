"""Where the bytes of an output are: kinds of sections, their inputs, the symbols of these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pylink.demangle import demangle
from pylink.report.model import Report
from pylink.size.levels import OTHER_FUNCTIONS, SHARED

# The metric whose instances are the parts, and what stands between the steps of their names.
ORIGINS, STEP = "elf__bytes_by_origin.sum", " > "

# Those whose instances are parts and functions as `pylink size` counts them.
PARTS, FUNCTIONS = "elf__bytes_by_part.sum", "elf__bytes_by_function.sum"

# Parts that are shown on each level; the rest is one more.
MOST_PARTS = 10
# The level of symbols.
SYMBOL = 2
# What a link calls the parts that it did not tell apart.
OTHERS = ("other files", "other symbols")
UNNAMED = (OTHER_FUNCTIONS, SHARED)


@dataclass(slots=True)
class Node:
    """A part of the output: its bytes are those of its parts together."""

    name: str
    size: int = 0
    parts: dict[str, Node] = field(default_factory=dict)

    def largest(self) -> list[Node]:
        """The parts, the largest first; those beyond `MOST_PARTS` as one, so that they add up."""
        named = [node for node in self.parts.values() if node.name not in OTHERS]
        ordered = sorted(named, key=lambda node: -node.size)
        head, rest = ordered[:MOST_PARTS], ordered[MOST_PARTS:]
        rest += [node for node in self.parts.values() if node.name in OTHERS]
        if len(rest) == 1:
            head.append(rest.pop())
        if rest:
            counted = all(node.name not in OTHERS for node in rest)
            name = f"{len(rest):,} others" if counted else "others"
            head.append(Node(name, sum(node.size for node in rest)))
        return head


def counted(report: Report, metric: str) -> list[tuple[str, int]]:
    """The instances of a metric of the output's bytes, the largest first; functions readable."""
    parts = [
        (demangle(str(each.id)), int(each.value))
        for action in report.actions
        if metric in action.metrics
        for each in action.metrics[metric].instances
        if not isinstance(each.value, str)
    ]
    return sorted(parts, key=lambda pair: -pair[1])


def byte_tree(report: Report) -> Node | None:
    """The whole output as a tree; None where the report does not have its parts."""
    for action in report.actions:
        metric = action.metrics.get(ORIGINS)
        if metric is not None and metric.instances:
            return grow(
                (str(each.id), int(each.value))
                for each in metric.instances
                if not isinstance(each.value, str)
            )
    return None


def grow(parts: Iterable[tuple[str, int]]) -> Node:
    """The tree of parts by name."""
    root = Node("output")
    for name, size in parts:
        node = root
        node.size += size
        for depth, step in enumerate(name.split(STEP, 2)):
            shown = demangle(step) if depth == SYMBOL else step
            node = node.parts.setdefault(step, Node(shown))
            node.size += size
    return root
