"""Common variables and those of reserved shared memory: the kernel against plain placement."""

from __future__ import annotations

from random import Random

import pytest
from helpers.tables import merged, objects, table
from helpers.values_layout_reference import Variable, place_common, place_reserved

from pylink._native import layout
from pylink._native.results import PlacedTables
from pylink._native.tables import Entities, Numbers, Outs, OutSymbols, Values
from pylink.facts import sectionkinds
from pylink.facts.rownumbers import EntityFlag, EntityKind, LinkMode

SHN_COMMON = 0xFFF2


def draw(rng: Random) -> list[Variable]:
    sizes = (0, 1, 3, 8, 100, rng.randrange(5000))
    aligns = (1, 2, 8, 16, 256, 0x10000)
    return [Variable(rng.choice(sizes), rng.choice(aligns)) for _ in range(rng.randrange(1, 12))]


@pytest.mark.parametrize("executable", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_places_agree_with_reference(seed: int, *, executable: bool) -> None:
    rng = Random(seed)
    common, reserved = draw(rng), draw(rng)
    start = rng.randrange(100)
    symbols = [{"section": -1}, *({"section": 0, "value": v.align} for v in reserved)]
    entity_of = [-1, *range(len(common), len(common) + len(reserved))]
    mentions = [number for number in range(len(common)) for _ in range(rng.randrange(1, 4))]
    rng.shuffle(mentions)
    for number in mentions:
        if rng.random() < 0.3:  # declared, before or behind
            symbols.append({"section": -1})
            entity_of.append(rng.randrange(len(common)))
        symbols.append({"section": -1, "shndx": SHN_COMMON})
        entity_of.append(number)
    entities = [{"size": v.size, "align": v.align, "flags": EntityFlag.COMMON} for v in common]
    entities += [
        {"size": v.size, "kind": EntityKind.SYSTEM_SHARED, "winner": number, "flags": 2}
        for number, v in enumerate(reserved, 1)
    ]
    whole = merged(
        objects(
            sections=[{"kind": sectionkinds.SYSTEM_SHARED}],
            symbols=symbols,
            mode=LinkMode.RELOCATABLE * (not executable),
        ),
        entities=table(Entities, entities),
        outs=table(
            Outs,
            [
                {"kind": sectionkinds.GLOBAL, "size": start, "align": 4},
                {"kind": sectionkinds.SYSTEM_SHARED, "align": 1},
            ],
        ),
        symbol_entity=table(Numbers, entity_of),
        section_function=table(Numbers, [-1]),
        out_of=table(Numbers, [1]),
        base=table(Values, [0]),
        out_symbols=table(OutSymbols, [{"entity": n, "section": -1} for n in range(len(entities))]),
    )
    placed = PlacedTables(whole)
    layout.assign_values(placed)
    offsets, end = place_common(common, mentions, start)
    places, reserved_end = place_reserved(reserved, executable=executable)
    assert list(placed.values) == offsets + places
    assert list(placed.homes) == [0] * len(common) + [1] * len(reserved)
    assert placed.outs.column("size") == [end, reserved_end]
    assert placed.outs.column("align") == [
        max(4, *(v.align for v in common)),
        max(1, *(v.align for v in reserved)),
    ]
