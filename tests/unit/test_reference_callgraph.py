"""Call graph and prototypes of the output: the kernel against plain lists."""

from __future__ import annotations

from random import Random

import pytest
from helpers.callgraph_reference import (
    CANDIDATE,
    DIRECT,
    INDIRECT,
    PROTOTYPE,
    TAKEN,
    Call,
    Program,
    callgraph_reference,
)
from helpers.tables import merged, objects, table

from pylink._native import callgraph
from pylink._native.results import PlacedTables
from pylink._native.tables import Calls, Entities, Indices
from pylink.facts.rownumbers import EntityFlag, LinkMode


def emit(program: Program) -> tuple[bytes, bytes]:
    whole = merged(
        objects(mode=LinkMode.RELOCATABLE * program.relocatable),
        entities=table(
            Entities, [{"flags": EntityFlag.TAKEN * taken} for taken in program.address_taken]
        ),
        calls=table(
            Calls,
            [{"caller": c.function, "callee": c.other, "block": c.block} for c in program.calls],
        ),
        prototype_offsets=table(Indices, program.strings),
    )
    return callgraph.emit_callgraph(
        PlacedTables(whole, symbol_index=table(Indices, program.symbols))
    )


def draw(rng: Random) -> Program:
    """Few functions and strings, so that rows repeat; a quarter of the functions has no symbol."""
    functions, strings = rng.randrange(1, 9), rng.randrange(1, 5)
    symbols = rng.sample(range(1, 100), functions)  # locals come first: no order of mention
    calls = []
    for _ in range(rng.randrange(60)):
        block = rng.choice((DIRECT, DIRECT, TAKEN, INDIRECT, CANDIDATE, PROTOTYPE))
        others = functions if block in (DIRECT, CANDIDATE) else strings
        calls.append(Call(block, rng.randrange(functions), rng.randrange(others)))
    return Program(
        [0 if rng.random() < 0.25 else index for index in symbols],
        rng.sample(range(1, 1000), strings),
        [rng.random() < 0.5 for _ in range(functions)],
        calls,
        relocatable=rng.random() < 0.5,
    )


@pytest.mark.parametrize("seed", range(300))
def test_callgraph_agrees_with_reference(seed: int) -> None:
    program = draw(Random(seed))
    assert emit(program) == callgraph_reference(program)


@pytest.mark.parametrize("relocatable", [False, True])
def test_no_calls_leave_the_four_markers(relocatable: bool) -> None:
    program = Program([1], [], [False], [], relocatable)
    assert emit(program) == callgraph_reference(program)
    assert emit(program)[0] == b"".join(
        bytes(4) + block.to_bytes(4, "little", signed=True) for block in (-1, -2, -3, -4)
    )
