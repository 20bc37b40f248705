"""The calls of a link as edges, for messages that list a chain of calls.

The edges are found only if such a message is shown; the phases have native graphs.
"""

from __future__ import annotations

from pylink.facts.rownumbers import CallBlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged


def call_edges(merged: Merged) -> dict[int, list[int]]:
    """Return, by node, the nodes to which it has edges, in order of the call rows.

    Nodes are numbers: first of entities (symbols of the link), then, from `len(merged.entities)`
    on, of prototypes. An indirect call has an edge to its prototype, and a prototype has one to
    every function of this prototype whose address is taken.
    """
    first_prototype = len(merged.entities)
    edges: dict[int, list[int]] = {}
    for call in merged.calls:
        caller, callee, block = call.caller, call.callee, call.block
        if block == CallBlock.DIRECT:
            edges.setdefault(caller, []).append(callee)
        elif block == CallBlock.INDIRECT:
            edges.setdefault(caller, []).append(first_prototype + callee)
        elif block == CallBlock.TAKEN:
            edges.setdefault(first_prototype + callee, []).append(caller)
    return edges


def shortest_chain(edges: dict[int, list[int]], start: int, end: int) -> list[int]:
    """Return the nodes of a shortest path between two nodes, both included.

    It is empty if there is no path.
    """
    previous = {start: start}  # by node: the one before it on a shortest path from `start`
    queue = [start]
    for node in queue:  # grows during the loop
        if node == end:
            break
        for successor in edges.get(node, ()):
            if successor not in previous:
                previous[successor] = node
                queue.append(successor)
    if end not in previous:
        return []
    chain = [end]
    while chain[-1] != start:
        chain.append(previous[chain[-1]])
    return chain[::-1]
