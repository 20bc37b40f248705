"""Pools of functions: the kernel that places them against a plain search."""

from __future__ import annotations

from random import Random

import pytest
from helpers import graph_reference as reference
from helpers.graph_reference import Graph, random_graph
from helpers.tables import merged, objects, table

from pylink._native import pools, resolve
from pylink._native.tables import Marks, Numbers
from pylink.facts import sectionkinds
from pylink.facts.rownumbers import LinkMode, Resolution

BANK = 2
POOL_NEW, POOL_LOST, POOL_ALONE = 1, 2, 4  # as in poolrows.pxd, which Python cannot import
OBJECT = 1

# A pool of the input: its function, its size and alignment in bytes, and whether the copy of the
# function that has it stays. A placed one: its number, kernel, offset, where the pool of the kernel
# ends, its alignment there, and flags.
Pool = tuple[int, int, int, bool]
Placed = list[tuple[int, int, int, int, int, int]]


Row = dict[str, int]


def section(kind: int, target: int, size: int = 0, align: int = 1, bank: int = 0) -> Row:
    return {"kind": kind, "target": target, "size": size, "align": align, "bank": bank}


def symbol(section: int, value: int = 0, size: int = 0) -> Row:
    return {"section": section, "value": value, "size": size, "info": OBJECT}


def place(
    graph: Graph, own: list[Pool], *, stay: bool = False, unnamed: tuple[int, ...] = ()
) -> Placed:
    """What the kernel says; section and symbol i are the code of function i that stays.

    Behind these are a symbol and its code for each pool of a copy that lost, and a constant in each
    pool but `unnamed`.
    """
    entities = list(range(graph.count)) + [pool[0] for pool in own if not pool[3]]
    resolutions = [Resolution.WON] * graph.count
    for number, (function, *_, stays) in enumerate(own):
        if not stays:
            early = (function, True) in [(pool[0], pool[3]) for pool in own[number:]]
            resolutions.append(Resolution.LOST_EARLY if early else Resolution.LOST)
    sections = [section(sectionkinds.TEXT, i) for i in range(len(entities))]
    copy = graph.count
    for function, size, align, stays in own:
        sections.append(
            section(sectionkinds.CONSTANT_FUNC, function if stays else copy, size, align, BANK)
        )
        copy += not stays
    symbols = [symbol(i) for i in range(len(entities))]
    symbols += [symbol(len(entities) + i) for i in range(len(own)) if i not in unnamed]
    merged = graph.merged(
        objects(sections=sections, symbols=symbols, mode=LinkMode.RELOCATABLE if stay else 0)
    )
    resolve.find_live(merged, Marks(), keep_all=False)
    owners = [section["target"] for section in sections[len(entities) :]]
    merged.section_function = table(Numbers, entities + [entities[i] for i in owners])
    merged.section_resolution = table(Marks, resolutions + [resolutions[i] for i in owners])
    pools.place_pools(merged)
    placed: Placed = []
    for row in merged.pools:
        at = row.section - len(entities)
        assert own[at][0] == row.function
        placed.append((at, row.kernel, row.offset, row.end, row.align, row.flags))
    return placed


def rounded(size: int, align: int) -> int:
    return -(-size // align) * align


class Kernels:
    """The pools of the kernels as they grow."""

    def __init__(self, graph: Graph, own: list[Pool]) -> None:
        self.size = dict.fromkeys(range(graph.count), 0)
        self.align = dict.fromkeys(range(graph.count), 1)
        self.has = {function for function, *_, stays in own if stays}
        for function, size, align, stays in own:
            if stays:
                self.size[function], self.align[function] = size, align

    def append(self, numbers: list[int], own: list[Pool], users: list[int]) -> Placed:
        """Pools of one function behind the longest of its kernels, at one place in all of them."""
        align = max(own[number][2] for number in numbers)
        shared = max([align, *(self.align[kernel] for kernel in users)])
        start = rounded(max(self.size[kernel] for kernel in users), shared)
        rows, at = [], start
        for number in numbers:
            at = rounded(at - start, own[number][2]) + start
            rows += [(number, kernel, at) for kernel in users]
            at += own[number][1]
        end = rounded(at, shared)
        placed: Placed = []
        for number, kernel, offset in rows:
            flags = (kernel not in self.has) * POOL_NEW | (not own[number][3]) * POOL_LOST
            self.has.add(kernel)
            placed.append((number, kernel, offset, end, shared, flags))
        for kernel in users:
            self.size[kernel], self.align[kernel] = end, shared
        return placed


def expected(graph: Graph, own: list[Pool]) -> Placed:
    """The last section first, each behind the longest pool of the kernels that reach it."""
    live = reference.live(graph)
    kernels = Kernels(graph, own)
    copies: dict[int, list[int]] = {}
    for number, (function, *_, stays) in enumerate(own):
        if function in live and (stays or function in copies):
            copies.setdefault(function, []).append(number)
    rows: Placed = []
    for kernel in sorted(graph.kernels & set(copies)):
        for number in copies[kernel][1:]:
            _, size, align, _ = own[number]
            start = rounded(kernels.size[kernel], align)
            kernels.size[kernel] = start + size
            kernels.align[kernel] = max(kernels.align[kernel], align)
            rows.append(
                (number, kernel, start, start + size, kernels.align[kernel], POOL_LOST),
            )
    for function in sorted(set(copies) - graph.kernels, key=lambda f: -copies[f][0]):
        users = sorted((k for k in graph.kernels if function in graph.reached(k)), reverse=True)
        if users:
            rows += kernels.append(copies[function], own, users)
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_reference(seed: int) -> None:
    rng = Random(seed)
    placed = lost = 0
    for _ in range(30):
        graph = random_graph(rng)
        functions = [i for i in range(graph.count) if rng.random() < 0.6]
        rng.shuffle(functions)
        later = [i for i in functions for _ in range(rng.randrange(3))]
        own = [
            (function, 4 * rng.randrange(1, 9), rng.choice([1, 4, 8, 16]), number < len(functions))
            for number, function in enumerate([*functions, *later])
        ]
        rows = place(graph, own)
        assert rows == expected(graph, own)
        placed += len(rows)
        lost += sum(row[5] & POOL_LOST for row in rows)
    assert placed
    assert lost


def test_a_pool_follows_those_of_its_own_kernels_alone() -> None:
    graph = Graph({0, 1}, [8] * 4, [0] * 4, [(0, 2), (1, 3)])
    assert place(graph, [(0, 12, 4, True), (2, 8, 8, True), (3, 8, 8, True)]) == [
        (2, 1, 0, 8, 8, POOL_NEW),
        (1, 0, 16, 24, 8, 0),
    ]


def test_order_is_that_of_the_sections() -> None:
    graph = Graph({0}, [8] * 3, [0] * 3, [(0, 1), (0, 2)])
    assert [row[:3] for row in place(graph, [(2, 8, 4, True), (1, 4, 4, True)])] == [
        (1, 0, 0),
        (0, 0, 4),
    ]


def test_copies_that_lost_follow_the_one_that_stays() -> None:
    graph = Graph({0}, [8] * 2, [0] * 2, [(0, 1)])
    own = [(1, 8, 4, True), (1, 4, 4, False), (0, 4, 4, True), (0, 12, 4, False)]
    assert place(graph, own) == [
        (3, 0, 4, 16, 4, POOL_LOST),
        (0, 0, 16, 28, 4, 0),
        (1, 0, 24, 28, 4, POOL_LOST),
    ]


def test_an_earlier_copy_that_was_replaced_adds_nothing() -> None:
    graph = Graph({0}, [8] * 2, [0] * 2, [(0, 1)])
    assert place(graph, [(1, 4, 4, False), (1, 8, 4, True)]) == [(1, 0, 0, 8, 4, POOL_NEW)]


def test_copies_that_lost_make_a_pool_for_one_that_has_none() -> None:
    graph = Graph({0}, [8] * 2, [0] * 2, [(0, 1)])
    own = [(1, 8, 4, False), (1, 12, 8, False)]
    first = POOL_NEW | POOL_LOST | POOL_ALONE
    assert place(graph, own) == [(0, 1, 0, 8, 4, first), (1, 1, 8, 20, 8, POOL_LOST | POOL_ALONE)]
    assert place(graph, own) == place(graph, own, stay=True)


def test_a_pool_without_constants_stays_with_its_function() -> None:
    graph = Graph({0}, [8] * 2, [0] * 2, [(0, 1)])
    own = [(1, 8, 4, True), (1, 4, 4, False)]
    assert place(graph, own, unnamed=(0,)) == [
        (0, 1, 0, 8, 4, POOL_NEW),
        (1, 1, 8, 12, 4, POOL_LOST),
    ]


def test_a_pool_ends_with_its_constants() -> None:
    sections = [section(sectionkinds.TEXT, 0), section(sectionkinds.TEXT, 1)]
    sections += [section(sectionkinds.CONSTANT_FUNC, i, 32, 4, BANK) for i in (0, 1)]
    symbols = [symbol(0), symbol(1), symbol(2, 4, 8), symbol(3, 4, 8)]
    inputs = objects(sections=sections, symbols=symbols)
    sizes = [
        pools.cut_pools(merged(inputs, section_resolution=bytes(2 * resolutions)))[at].size
        for resolutions in ((Resolution.WON, Resolution.LOST), (Resolution.LOST, Resolution.WON))
        for at in (2, 3)
    ]
    assert sizes == [12, 32, 32, 12]
    unnamed = objects(sections=sections, symbols=symbols[:2])
    both = merged(unnamed, section_resolution=bytes(4 * (Resolution.WON,)))
    assert pools.cut_pools(both) is unnamed.sections


def test_relocatable_output_leaves_the_pools_of_functions_where_they_are() -> None:
    graph = Graph({0}, [8] * 2, [0] * 2, [(0, 1)])
    assert place(graph, [(1, 8, 4, True), (0, 4, 4, True)], stay=True) == []
    assert place(graph, [(1, 8, 4, True), (1, 4, 4, False)], stay=True) == [
        (1, 1, 8, 12, 4, POOL_LOST)
    ]
