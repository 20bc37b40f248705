"""A naive reference of dead-code removal and of the analysis of functions, for small graphs."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from helpers.tables import merged, table

from pylink._native.results import MergedTables, ObjectTables
from pylink._native.tables import Calls, Entities
from pylink.facts.rownumbers import EntityFlag

NO_BOUND = 0xFFFFFFFF  # the stack of a kernel that may recurse


@dataclass
class Graph:
    """A call graph: functions and prototypes are numbers, calls pairs of numbers.

    `registers` and `frames` are by function, in registers and bytes. `indirect` are calls through
    pointers, and `pointers` the functions whose addresses are taken.
    """

    kernels: set[int]
    registers: list[int]
    frames: list[int]
    calls: list[tuple[int, int]] = field(default_factory=list)
    indirect: list[tuple[int, int]] = field(default_factory=list)  # function, prototype
    pointers: list[tuple[int, int]] = field(default_factory=list)  # function, prototype
    prototypes: int = 0

    @property
    def count(self) -> int:
        """The number of functions."""
        return len(self.registers)

    def entities(self) -> Entities:
        """Return the table of entities for these functions."""
        taken_functions = {function for function, _ in self.pointers}
        return table(
            Entities,
            (
                {
                    "first": i,
                    "winner": i,
                    "flags": EntityFlag.DEFINED
                    | (EntityFlag.KERNEL if i in self.kernels else 0)
                    | (EntityFlag.TAKEN if i in taken_functions else 0),
                    "regcount": self.registers[i],
                    "frame": self.frames[i],
                }
                for i in range(self.count)
            ),
        )

    def call_rows(self) -> Calls:
        """Return the table of calls."""
        rows = [(a, b, -1) for a, b in self.calls] + [(a, p, -3) for a, p in self.indirect]
        rows += [(a, p, -2) for a, p in self.pointers]
        return table(
            Calls,
            (
                {"caller": a, "callee": b, "block": block, "of_linked_copy": 1}
                for a, b, block in rows
            ),
        )

    def merged(self, inputs: ObjectTables | None = None) -> MergedTables:
        """Return the tables of merge for this graph, before it finds which functions are alive."""
        return merged(
            inputs,
            entities=self.entities(),
            calls=self.call_rows(),
            prototypes=bytes(8 * self.prototypes),
        )

    def callees(self, function: int) -> set[int]:
        """Return the functions that `function` may call, directly or through a pointer."""
        reached_functions = {b for a, b in self.calls if a == function}
        for a, prototype in self.indirect:
            if a == function:
                reached_functions |= {
                    b for b, taken_prototype in self.pointers if taken_prototype == prototype
                }
        return reached_functions

    def reached(self, function: int) -> set[int]:
        """Return functions that a call of `function` may run; itself only if it is recursive."""
        reached_functions: set[int] = set()
        rest = self.callees(function)
        while rest:
            reached_functions |= rest
            rest = {c for b in rest for c in self.callees(b)} - reached_functions
        return reached_functions


def live(graph: Graph) -> set[int]:
    """Return the live functions: kernels, all that they reach, and those whose address is taken."""
    reached_functions = set(graph.kernels) | {function for function, _ in graph.pointers}
    return reached_functions.union(*(graph.reached(kernel) for kernel in graph.kernels))


def registers(graph: Graph, kernel: int) -> int:
    """Return the register count of a kernel: the largest of all functions that it may run."""
    return max(graph.registers[i] for i in graph.reached(kernel) | {kernel})


def stack(graph: Graph, function: int) -> int:
    """Return the bytes of stack on the deepest path; NO_BOUND if it can reach a recursion."""
    below = graph.reached(function)
    if any(i in graph.reached(i) for i in below | {function}):
        return NO_BOUND
    deepest = max((stack(graph, i) for i in graph.callees(function)), default=0)
    return graph.frames[function] + deepest


def random_graph(rng: Random) -> Graph:
    """Return a random graph of few functions: recursion and indirect calls are common."""
    count = rng.randrange(1, 12)
    prototypes = rng.randrange(3)

    def pick() -> int:
        """Return a random function."""
        return rng.randrange(count)

    graph = Graph(
        {i for i in range(count) if rng.random() < 0.3},
        [rng.randrange(8, 64) for _ in range(count)],
        [8 * rng.randrange(6) for _ in range(count)],
        [(pick(), pick()) for _ in range(rng.randrange(2 * count))],
        prototypes=prototypes,
    )
    graph.calls = [(a, b) for a, b in graph.calls if b not in graph.kernels]
    if prototypes:
        functions = [i for i in range(count) if i not in graph.kernels]
        graph.indirect = [(pick(), rng.randrange(prototypes)) for _ in range(rng.randrange(4))]
        graph.pointers = [(f, rng.randrange(prototypes)) for f in functions if rng.random() < 0.3]
    return graph
