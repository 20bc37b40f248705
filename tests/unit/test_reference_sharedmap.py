"""From references of code to users of shared variables, and back to symbols: against plain sets."""

from __future__ import annotations

from random import Random

import pytest
from helpers.graph_reference import random_graph
from helpers.sharedmap_reference import Program, Variable, symbols
from helpers.tables import merged, objects, table

from pylink._native import shared, sharedmap
from pylink._native.results import MergedTables, PlacedTables
from pylink._native.tables import Entities, Fixups, Marks, Numbers, Outs, Values
from pylink.facts import sectionkinds
from pylink.facts.rownumbers import EntityFlag, EntityKind, LinkMode, Resolution

REFERENCED, EXTERN = 1, 2  # flags of a variable


def draw(rng: Random) -> Program:
    graph = random_graph(rng)
    linked = sorted(kernel for kernel in graph.kernels if rng.random() < 0.8)
    homes = [None, None, *graph.kernels]
    variables = [
        Variable(rng.choice((0, 1, 8, 100)), rng.choice((1, 4, 16)), rng.choice(homes))
        for _ in range(rng.randrange(1, 8))
    ]
    variables += [Variable(0, 4, is_array=True) for _ in range(rng.randrange(3))]
    pairs = [
        (function, number)
        for function in range(graph.count)
        for number, variable in enumerate(variables)
        if variable.home in (None, function) and rng.random() < 0.3
    ]
    rng.shuffle(pairs)
    return Program(graph, linked, variables, pairs)


class Link:
    """The program as tables: functions are the first entities, sections 2F and 2F + 1 theirs."""

    def __init__(self, program: Program, family: int = 0, mode: int = 0) -> None:
        graph = program.graph
        self.program, self.count = program, graph.count
        self.mode, self.family = mode, family
        self.common = 2 * self.count

    def inputs(self) -> tuple[list[dict[str, int]], list[dict[str, int]]]:
        sections: list[dict[str, int]] = []
        for function in range(self.count):
            sections.append({"kind": sectionkinds.TEXT, "target": function})
            sections.append({"kind": sectionkinds.SHARED, "target": 2 * function})
        sections.append({"kind": sectionkinds.DEBUG_SHARED})
        names: list[dict[str, int]] = [{"section": 2 * at} for at in range(self.count)]
        for variable in self.program.variables:
            home = self.common if variable.home is None else 2 * variable.home + 1
            names.append({"section": -1 if variable.is_array else home})
        return sections, names

    def merged(self) -> MergedTables:
        graph, variables = self.program.graph, self.program.variables
        sections, names = self.inputs()
        functions = [
            {
                "flags": EntityFlag.DEFINED
                | EntityFlag.KERNEL * (at in graph.kernels)
                | EntityFlag.LIVE * (at in self.program.linked)
            }
            for at in range(self.count)
        ]
        held = [
            {
                "kind": EntityKind.SHARED,
                "winner": self.count + at,
                "size": variable.size,
                "align": variable.align,
                "flags": EntityFlag.UNSIZED if variable.is_array else EntityFlag.DEFINED,
            }
            for at, variable in enumerate(variables)
        ]
        fixes = [
            {"out": 2 * function, "entity": self.count + variable, "function": function}
            for function, variable in self.program.references
        ]
        # Debug data that names a variable is not a user, nor is code that names a function.
        fixes += [
            {"out": self.common + 1, "entity": self.count + at, "function": function}
            for function in range(self.count)
            for at in range(len(variables))
            if (function, at) not in self.program.references
        ]
        fixes += [{**fix, "entity": 0} for fix in fixes[:2]]
        named = {variable for _, variable in self.program.references}
        return merged(
            objects(sections=sections, symbols=names, mode=self.mode, family=self.family),
            entities=table(Entities, functions + held),
            symbol_entity=table(Numbers, range(self.count + len(variables))),
            section_function=table(Numbers, [*(at // 2 for at in range(2 * self.count)), -1]),
            section_resolution=table(Marks, [*[Resolution.WON] * 2 * self.count, 0]),
            calls=graph.call_rows(),
            prototypes=bytes(8 * graph.prototypes),
            fixups=table(Fixups, fixes),
            outs=self.outs(),
            referenced=table(
                Marks, [0] * self.count + [at in named for at in range(len(variables))]
            ),
            array_align=table(Values, [0] * (self.count + len(variables))),
        )

    def outs(self) -> Outs:
        rows: list[dict[str, int]] = []
        for function in range(self.count):
            rows.append({"kind": sectionkinds.TEXT, "entity": function})
            rows.append({"kind": sectionkinds.SHARED, "entity": function})
        return table(
            Outs, [*rows, {"kind": sectionkinds.DEBUG_SHARED}, {"kind": sectionkinds.DEBUG}]
        )


@pytest.mark.parametrize(
    "mode", [0, LinkMode.DEBUG, LinkMode.RELOCATABLE, LinkMode.RELOCATABLE | LinkMode.DEBUG]
)
@pytest.mark.parametrize("seed", range(60))
def test_users_agree_with_the_page(seed: int, mode: int) -> None:
    program = draw(Random(seed))
    shares = sharedmap.gather(Link(program, mode=mode).merged())
    deep = not mode & LinkMode.RELOCATABLE
    assert list(shares.kernel_entities) == program.linked
    assert list(shares.variable_entities) == [
        program.graph.count + at for at in range(len(program.variables))
    ]
    assert shares.variables.column("owner") == program.owners()
    named = {variable for _, variable in program.references}
    assert [(row.size, row.align, row.flags) for row in shares.variables] == [
        (variable.size, variable.align, REFERENCED * (at in named) | EXTERN * variable.is_array)
        for at, variable in enumerate(program.variables)
    ]
    assert {(row.variable, row.kernel) for row in shares.uses} == program.uses(deep=deep)
    ties = program.ties(by_name=bool(mode & LinkMode.DEBUG), deep=deep)
    assert {(row.kernel, row.tie) for row in shares.extern_uses} == ties


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("family", [0, 1, 2])
@pytest.mark.parametrize("seed", range(30))
def test_symbols_agree_with_the_page(seed: int, family: int, *, keeps: bool) -> None:
    program = draw(Random(seed))
    link = Link(program, family, LinkMode.DEBUG * keeps)
    whole = link.merged()
    shares = sharedmap.gather(whole)
    shared.layout_shared(shares, family, keeps_common=keeps, aligns_arrays=False, ties_arrays=False)
    offsets = list(shares.offsets)
    entities = link.count + len(program.variables)
    placed = PlacedTables(
        whole,
        outs=link.outs(),
        values=table(Values, [7] * entities),
        homes=table(Numbers, [0] * entities),
    )
    sharedmap.apply_layout(placed, shares.seal(), keep_symbols=keeps)
    for number, symbol in enumerate(symbols(program, offsets, family, keeps=keeps)):
        if program.variables[number].is_array:
            continue
        at = link.count + number
        home = link.common if symbol.kernel is None else 2 * symbol.kernel + 1
        assert placed.homes[at] == home
        assert placed.symbol_values[at] == symbol.value
        assert placed.merc_values[at] == placed.values[at] == symbol.mercury_value
        assert bool(placed.lost[at]) == symbol.lost
    assert list(placed.values)[: link.count] == [7] * link.count
