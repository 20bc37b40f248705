"""What .nv.callgraph and .nv.prototype have to hold, said plainly.

Rows stand by the function that they begin with, in order of first mention (docs/order.md): a
function's direct calls and candidates newest first, so also the prototypes that it calls through;
of the prototypes of its address and of its own, the first that a file names. Nothing is said of
functions without a symbol. Relocatable outputs have a direct call, and a candidate, once
(docs/format-notes.md, -r).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from struct import pack

DIRECT, TAKEN, INDIRECT, CANDIDATE, PROTOTYPE = -1, -2, -3, -4, -5


@dataclass(frozen=True)
class Call:
    """A row of an input: functions are numbers by first mention, prototypes numbers of strings."""

    block: int
    function: int
    other: int

    @property
    def names_function(self) -> bool:
        return self.block in (DIRECT, CANDIDATE)


@dataclass
class Program:
    """`symbols` are the functions' indices in the output, 0 for none; `strings` offsets."""

    symbols: list[int]
    strings: list[int]
    address_taken: list[bool]
    calls: list[Call]
    relocatable: bool = False


def rows_of(program: Program, block: int) -> list[tuple[int, int]]:
    """The pairs of numbers below one marker."""
    mine = [call for call in program.calls if call.block == block]
    mine = [call for call in mine if program.symbols[call.function]]
    pairs = []
    for function, group in groupby(sorted(mine, key=lambda c: c.function), lambda c: c.function):
        others = [call.other for call in group]
        if block == PROTOTYPE and program.address_taken[function]:
            continue
        if block in (DIRECT, CANDIDATE) and program.relocatable:
            others = list(dict.fromkeys(others))  # the place of the oldest
        if block in (TAKEN, PROTOTYPE):
            others = others[:1]
        for other in reversed(others):
            number = program.symbols[other] if block in (DIRECT, CANDIDATE) else None
            if number != 0:
                number = program.strings[other] if number is None else number
                pairs.append((program.symbols[function], number))
    return pairs


def callgraph_reference(program: Program) -> tuple[bytes, bytes]:
    """Contents of .nv.callgraph and of .nv.prototype."""
    graph = b""
    for block in (DIRECT, TAKEN, INDIRECT, CANDIDATE):
        graph += pack("<Ii", 0, block)
        graph += b"".join(pack("<II", *pair) for pair in rows_of(program, block))
    return graph, b"".join(pack("<II", *pair) for pair in rows_of(program, PROTOTYPE))
