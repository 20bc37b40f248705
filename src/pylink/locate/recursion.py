"""Finds the cycle of calls that makes a kernel's stack unbounded."""

from __future__ import annotations

from pylink.facts.rownumbers import NO_STACK_BOUND
from pylink.locate.calls import call_edges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged


def find_cycle(merged: Merged, kernel: int, unbounded_index: int) -> list[int]:
    """Return the nodes of a cycle that a kernel reaches, in order of the calls.

    Nodes are those of `call_edges`. The search starts at one of the kernel's callees with unbounded
    stack: at number `unbounded_index` of them, from 0, or at the kernel if there are fewer. The
    result is empty if there is no cycle.
    """
    entity_count = len(merged.entities)  # further nodes are prototypes of indirect calls
    edges = call_edges(merged)
    callees: list[int] = []
    for callee in edges.get(kernel, []):
        callees += [callee] if callee < entity_count else edges.get(callee, [])
    unbounded = [callee for callee in callees if _is_unbounded(merged, callee)]
    start = unbounded[unbounded_index] if unbounded_index < len(unbounded) else kernel
    return _first_cycle(edges, start)


def _is_unbounded(merged: Merged, entity: int) -> bool:
    return merged.functions[entity].stack == NO_STACK_BOUND


def _first_cycle(edges: dict[int, list[int]], start: int) -> list[int]:
    """Return the first cycle that a depth-first search finds; empty if not found."""
    path = [start]
    position = {start: 0}  # by node of the path: its index there
    iterators = [iter(edges.get(start, ()))]
    visited: set[int] = set()
    while path:
        successor = next(iterators[-1], None)
        if successor is None:
            node = path.pop()
            iterators.pop()
            del position[node]
            visited.add(node)
        elif successor in position:
            return path[position[successor] :]
        elif successor not in visited:
            position[successor] = len(path)
            path.append(successor)
            iterators.append(iter(edges.get(successor, ())))
    return []
