"""The calls of a link as edges, for messages that explain by which calls something came about.

Built only where somebody looks; the phases have native graphs.
"""

from __future__ import annotations

from pylink.tables import ADDRESS_TAKEN, DIRECT_CALL, INDIRECT_CALL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pylink.phases.results import Merged


def call_edges(merged: Merged) -> dict[int, list[int]]:
    """Where each node leads, in order of the call rows.

    Nodes are entities, then prototypes: an indirect call leads to its prototype, a prototype to
    every function of it whose address is taken.
    """
    entities = len(merged.entities)
    edges: dict[int, list[int]] = {}
    for call in merged.calls:
        caller, callee, block = call.caller, call.callee, call.block
        if block == DIRECT_CALL:
            edges.setdefault(caller, []).append(callee)
        elif block == INDIRECT_CALL:
            edges.setdefault(caller, []).append(entities + callee)
        elif block == ADDRESS_TAKEN:
            edges.setdefault(entities + callee, []).append(caller)
    return edges


def shortest_chain(edges: dict[int, list[int]], start: int, end: int) -> list[int]:
    """The nodes of a shortest way from one node to another, both included; empty without any."""
    before = {start: start}
    waiting = [start]
    for node in waiting:  # grows on the way
        if node == end:
            break
        for following in edges.get(node, ()):
            if following not in before:
                before[following] = node
                waiting.append(following)
    if end not in before:
        return []
    chain = [end]
    while chain[-1] != start:
        chain.append(before[chain[-1]])
    return chain[::-1]
