"""Literal pools of device functions: the kernel that places them against a plain search."""

from __future__ import annotations

from random import Random
from struct import Struct

import pytest
from helpers import graph_reference as reference
from helpers.graph_reference import Graph, random_graph

from pylink._native import pools, resolve
from pylink.sections import rules
from pylink.tables import SECTION

POOL = Struct("<iiQII")
BANK = 2
ROLE_WON = 3

# Bytes and alignment of the pool of a function; function, kernel and offset of a placed one, and
# whether the kernel had none before.
Own = dict[int, tuple[int, int]]
Placed = list[tuple[int, int, int, bool]]


def section(kind: int, target: int, size: int = 0, align: int = 1, bank: int = 0) -> bytes:
    return SECTION.pack(0, 0, size, 0, 0, 0, 0, 0, align, 0, 0, target, kind, bank)


def place(graph: Graph, own: Own) -> Placed:
    """What the kernel says; the code of function i is section i."""
    sections = [section(rules.TEXT, i) for i in range(graph.count)]
    sections += [
        section(rules.CONSTANT_FUNC, function, size, align, BANK)
        for function, (size, align) in own.items()
    ]
    calls, prototypes = graph.call_rows(), bytes(8 * graph.prototypes)
    table = pools.place_pools(
        b"".join(sections),
        resolve.find_live(graph.entities(), calls, prototypes, b"", False),
        b"".join(i.to_bytes(4, "little") for i in range(graph.count)),
        bytes([ROLE_WON]) * graph.count,
        calls,
        prototypes,
    )
    placed: Placed = []
    for at, kernel, offset, function, born in POOL.iter_unpack(table):
        assert sections[at] == section(rules.CONSTANT_FUNC, function, *own[function], BANK)
        placed.append((function, kernel, offset, bool(born)))
    return placed


def expected(graph: Graph, own: Own) -> Placed:
    """Last-born function first, each behind the longest pool of the kernels that reach it."""
    size = {kernel: own.get(kernel, (0, 1))[0] for kernel in graph.kernels}
    has = graph.kernels & set(own)
    live = reference.live(graph)
    rows: Placed = []
    for function in sorted(set(own) - graph.kernels, reverse=True):
        users = sorted((k for k in graph.kernels if function in graph.reached(k)), reverse=True)
        if function not in live or not users:
            continue
        align = own[function][1]
        offset = max(-(-size[kernel] // align) * align for kernel in users)
        for kernel in users:
            rows.append((function, kernel, offset, kernel not in has))
            size[kernel] = offset + own[function][0]
        has |= set(users)
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_reference(seed: int) -> None:
    rng = Random(seed)
    placed = 0
    for _ in range(30):
        graph = random_graph(rng)
        own = {
            i: (4 * rng.randrange(1, 9), rng.choice([1, 4, 8, 16]))
            for i in range(graph.count)
            if rng.random() < 0.6
        }
        rows = place(graph, own)
        assert rows == expected(graph, own)
        placed += len(rows)
    assert placed


def test_a_pool_follows_those_of_its_own_kernels_alone() -> None:
    graph = Graph({0, 1}, [8] * 4, [0] * 4, [(0, 2), (1, 3)])
    assert place(graph, {0: (12, 4), 2: (8, 8), 3: (8, 8)}) == [
        (3, 1, 0, True),
        (2, 0, 16, False),
    ]


def test_born_kernels_are_those_without_a_pool_of_their_own() -> None:
    rows = [(9, 4, 0, 7, 1), (9, 3, 0, 7, 0), (8, 2, 0, 6, 1)]
    assert pools.born_kernels(b"".join(POOL.pack(*row) for row in rows)) == (
        (4).to_bytes(4, "little") + (2).to_bytes(4, "little")
    )
    assert pools.born_kernels(b"") == b""
