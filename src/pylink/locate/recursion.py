"""Why a kernel has no bound on its stack: the calls that lead back to where they came from."""

from __future__ import annotations

from pylink.locate.calls import call_edges
from pylink.tables import NO_STACK_BOUND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged


def find_cycle(merged: Merged, kernel: int, turn: int) -> list[int]:
    """The nodes of a recursion that a kernel reaches, in order of the calls.

    Nodes are those of `call_edges`. `turn` counts the callees of the kernel that have no bound.
    Empty when there is no recursion.
    """
    entities = len(merged.entities)
    edges = call_edges(merged)
    callees: list[int] = []
    for callee in edges.get(kernel, []):
        callees += [callee] if callee < entities else edges.get(callee, [])
    unbounded = [callee for callee in callees if _is_unbounded(merged, callee)]
    start = unbounded[turn] if turn < len(unbounded) else kernel
    return _first_cycle(edges, start)


def _is_unbounded(merged: Merged, entity: int) -> bool:
    return merged.functions[entity].stack == NO_STACK_BOUND


def _first_cycle(edges: dict[int, list[int]], start: int) -> list[int]:
    """The first cycle that a depth-first search meets."""
    path = [start]
    position = {start: 0}
    waiting = [iter(edges.get(start, ()))]
    done: set[int] = set()
    while path:
        following = next(waiting[-1], None)
        if following is None:
            node = path.pop()
            waiting.pop()
            del position[node]
            done.add(node)
        elif following in position:
            return path[position[following] :]
        elif following not in done:
            position[following] = len(path)
            path.append(following)
            waiting.append(iter(edges.get(following, ())))
    return []
