"""Ways along the calls of a link, for passes that explain why a function stays or what it costs."""

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

# Functions of a chain that a message names; of a longer one, those at both ends.
SHOWN = 32

# A function, and whether the call that leads to it goes through a pointer.
Step = tuple[int, bool]


class CallGraph:
    """Callees of every function, in order of the rows; nodes are those of `call_edges`."""

    __slots__ = ("_edges", "_functions")

    def __init__(self, merged: Merged) -> None:
        self._functions = len(merged.entities)
        self._edges = call_edges(merged)

    def callees(self, function: int) -> Iterator[Step]:
        """What a function calls; each function of a prototype for a call through a pointer."""
        for node in self._edges.get(function, ()):
            if node < self._functions:
                yield node, False
            else:
                for target in self._edges.get(node, ()):
                    yield target, True

    def reach(self, roots: Iterable[int]) -> dict[int, int]:
        """Every node that the roots reach, with the one before it on a shortest way; roots: -1."""
        before = dict.fromkeys(roots, -1)
        waiting = deque(before)
        while waiting:
            node = waiting.popleft()
            for to in self._edges.get(node, ()):
                if to not in before:
                    before[to] = node
                    waiting.append(to)
        return before

    def way(self, before: dict[int, int], function: int) -> list[Step]:
        """The steps from a root of `reach` to a function; the first is the root."""
        steps: list[Step] = []
        node = function
        while node >= 0:
            previous = before[node]
            indirect = previous >= self._functions
            steps.append((node, indirect))
            node = before[previous] if indirect else previous
        steps.reverse()
        return steps

    def search(self, start: int, goal: int, leads: list[int]) -> list[Step]:
        """The steps from `start` to `goal` over functions for which `leads` has the goal.

        Empty without any.
        """
        before: dict[int, Step] = {start: (-1, False)}
        waiting = deque((start,))
        while waiting:
            node = waiting.popleft()
            if node == goal:
                return _unwind(before, node)
            for to, indirect in self.callees(node):
                if to not in before and goal in (to, leads[to]):
                    before[to] = (node, indirect)
                    waiting.append(to)
        return []


def _unwind(before: dict[int, Step], node: int) -> list[Step]:
    steps: list[Step] = []
    while node >= 0:
        previous, indirect = before[node]
        steps.append((node, indirect))
        node = previous
    steps.reverse()
    return steps


def chain(steps: list[Step], say: Callable[[int], str]) -> str:
    """Steps as text: what `say` says of each function, arrows between them."""
    texts = [
        (INDIRECT_ARROW if indirect else ARROW) + say(function)
        for function, indirect in _cut(steps)
    ]
    if len(texts) < len(steps):
        texts.insert(SHOWN // 2, f"{ARROW}({len(steps) - len(texts)} more)")
    return "".join(texts)[len(ARROW) :]


def _cut(steps: list[Step]) -> list[Step]:
    if len(steps) <= SHOWN:
        return steps
    return steps[: SHOWN // 2] + steps[-SHOWN // 2 :]
