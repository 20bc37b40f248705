"""Paths in the call graph, for passes that explain why a function is kept or what it needs."""

from __future__ import annotations

from collections import deque

from pylink.locate.calls import call_edges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pylink.phases.results import Merged

ARROW = " -> "
# A call through a pointer.
INDIRECT_ARROW = " ~> "

# Greatest number of functions in the text of a chain; a longer chain shows both ends.
MAX_CHAIN = 32

# A function, and whether the call that leads to it goes through a pointer.
Step = tuple[int, bool]


class CallGraph:
    """The callees of every function, in order of the rows of the link's call graph.

    A node is the number of an entity, or that of a prototype plus the number of entities. A call
    through a pointer leads to its prototype, and from there to all functions that it may call.
    """

    __slots__ = ("_edges", "_functions")

    def __init__(self, merged: Merged) -> None:
        self._functions = len(merged.entities)  # nodes from here on are prototypes
        self._edges = call_edges(merged)  # by node: the nodes that it calls, or may call

    def callees(self, function: int) -> Iterator[Step]:
        """Yield the callees of a function; a call by pointer yields all functions it may call."""
        for node in self._edges.get(function, ()):
            if node < self._functions:
                yield node, False
            else:
                for target in self._edges.get(node, ()):
                    yield target, True

    def reach(self, roots: Iterable[int]) -> dict[int, int]:
        """Map every node that the roots reach to its predecessor on a shortest path.

        A root has the predecessor -1.
        """
        predecessors = dict.fromkeys(roots, -1)
        queue = deque(predecessors)
        while queue:
            node = queue.popleft()
            for callee in self._edges.get(node, ()):
                if callee not in predecessors:
                    predecessors[callee] = node
                    queue.append(callee)
        return predecessors

    def path_to(self, predecessors: dict[int, int], function: int) -> list[Step]:
        """Return the steps of the path from a root to a function; the first step is the root.

        `predecessors` is the result of `reach`.
        """
        steps: list[Step] = []
        node = function
        while node >= 0:
            previous = predecessors[node]
            indirect = previous >= self._functions
            steps.append((node, indirect))
            node = predecessors[previous] if indirect else previous
        steps.reverse()
        return steps

    def find_path_raised_by(self, start: int, source: int, raised_by: list[int]) -> list[Step]:
        """Return the steps from `start` to `source`, all with the register count of `source`.

        `raised_by` has, by entity, the function whose register count it takes over or passes on, or
        -1. The path is a shortest one; the result is empty if there is none.
        """
        predecessors: dict[int, Step] = {start: (-1, False)}
        queue = deque((start,))
        while queue:
            node = queue.popleft()
            if node == source:
                return _unwind(predecessors, node)
            for callee, indirect in self.callees(node):
                if callee not in predecessors and source in (callee, raised_by[callee]):
                    predecessors[callee] = (node, indirect)
                    queue.append(callee)
        return []


def _unwind(predecessors: dict[int, Step], node: int) -> list[Step]:
    """Return the steps from the start of a search to `node`; the start has the predecessor -1."""
    steps: list[Step] = []
    while node >= 0:
        previous, indirect = predecessors[node]
        steps.append((node, indirect))
        node = previous
    steps.reverse()
    return steps


def chain(steps: list[Step], name_of: Callable[[int], str]) -> str:
    """Return steps as text: the result of `name_of` for each function, with arrows between them."""
    texts = [
        (INDIRECT_ARROW if indirect else ARROW) + name_of(function)
        for function, indirect in _shorten(steps)
    ]
    if len(texts) < len(steps):
        texts.insert(MAX_CHAIN // 2, f"{ARROW}({len(steps) - len(texts)} more)")
    return "".join(texts)[len(ARROW) :]


def _shorten(steps: list[Step]) -> list[Step]:
    """Return the first and last MAX_CHAIN / 2 steps of a longer chain, else all."""
    if len(steps) <= MAX_CHAIN:
        return steps
    return steps[: MAX_CHAIN // 2] + steps[-MAX_CHAIN // 2 :]
