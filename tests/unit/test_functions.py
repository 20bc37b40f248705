"""Dead code, registers and stack: the kernels against plain searches of small graphs."""

from __future__ import annotations

from random import Random

import pytest
from helpers import graph_reference as reference
from helpers.graph_reference import Graph, random_graph

from pylink._native import functions, resolve
from pylink._native.tables import Marks
from pylink.facts.rownumbers import EntityFlag
from pylink.rows import FunctionRow


def find_live(graph: Graph, selected: bytes = b"", keep_all: bool = False) -> set[int]:
    merged = graph.merged()
    resolve.find_live(merged, Marks(selected), keep_all=keep_all)
    return {i for i, flags in enumerate(merged.entities.column("flags")) if flags & EntityFlag.LIVE}


def analyze(graph: Graph) -> list[FunctionRow]:
    merged = graph.merged()
    functions.analyze(merged)
    return list(merged.functions)


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_reference(seed: int) -> None:
    rng = Random(seed)
    for _ in range(30):
        graph = random_graph(rng)
        assert find_live(graph) == reference.live(graph)
        rows = analyze(graph)
        for function in range(graph.count):
            assert rows[function].stack == reference.stack(graph, function), function
        for kernel in graph.kernels:
            assert rows[kernel].regcount == reference.registers(graph, kernel)


def test_no_functions() -> None:
    graph = Graph(set(), [], [])
    assert find_live(graph) == set()
    assert analyze(graph) == []


def test_only_selected_kernels_are_roots() -> None:
    graph = Graph({0, 1}, [8] * 4, [0] * 4, [(0, 2), (1, 3)])
    assert find_live(graph, bytes([0, 1, 0, 0])) == {1, 3}
    assert find_live(graph, keep_all=True) == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="one byte per entity"):
        find_live(graph, bytes(3))


def test_a_long_chain_needs_no_deep_stack() -> None:
    count = 200_000
    graph = Graph({0}, [8] * count, [8] * count, [(i, i + 1) for i in range(count - 1)])
    assert analyze(graph)[0].stack == 8 * count
    assert len(find_live(graph)) == count


def test_recursion_has_no_bound_and_spreads_to_callers_only() -> None:
    graph = Graph({0}, [8, 40, 24, 16], [8] * 4, [(0, 1), (1, 2), (2, 1), (2, 3)])
    rows = analyze(graph)
    assert [row.stack for row in rows] == [reference.NO_BOUND] * 3 + [8]
    assert rows[0].regcount == 40
    assert rows[0].raised_by == 1  # the function whose registers the kernel took
