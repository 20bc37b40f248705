"""A naive reference of the contents of .nv.callgraph and .nv.prototype.

Rows are sorted by the function that they begin with, in order of first mention (docs/order.md). The
direct calls of a function, its candidates and the prototypes that it calls through are listed
newest first. Only the first prototype that the inputs give a function counts, both in the block of
taken addresses and in .nv.prototype.
Functions without a symbol have no rows. Relocatable outputs have each direct call and candidate
only once (docs/format-notes.md, -r).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from struct import pack

# Numbers of the blocks of a section.
DIRECT, TAKEN, INDIRECT, CANDIDATE, PROTOTYPE = -1, -2, -3, -4, -5


@dataclass(frozen=True)
class Call:
    """A row of an input: functions are numbered by first mention, prototypes by their string.

    `block` is a kind such as DIRECT; `other` is the function or prototype that is called.
    """

    block: int
    function: int
    other: int


@dataclass
class Program:
    """The functions and call graph rows of a link.

    By function, `symbols` are indices in the output, 0 for none. `strings` are the offsets of the
    prototypes' strings.
    """

    symbols: list[int]
    strings: list[int]
    address_taken: list[bool]
    calls: list[Call]
    relocatable: bool = False


def rows_of(program: Program, block: int) -> list[tuple[int, int]]:
    """Return the rows of one block, which follow its marker in the section."""
    rows = [call for call in program.calls if call.block == block]
    rows = [call for call in rows if program.symbols[call.function]]
    pairs = []
    for function, group in groupby(sorted(rows, key=lambda c: c.function), lambda c: c.function):
        others = [call.other for call in group]
        if block == PROTOTYPE and program.address_taken[function]:
            continue
        if block in (DIRECT, CANDIDATE) and program.relocatable:
            others = list(dict.fromkeys(others))  # at the position of the first
        if block in (TAKEN, PROTOTYPE):
            others = others[:1]
        for other in reversed(others):
            number = program.symbols[other] if block in (DIRECT, CANDIDATE) else None
            if number != 0:
                number = program.strings[other] if number is None else number
                pairs.append((program.symbols[function], number))
    return pairs


def callgraph_reference(program: Program) -> tuple[bytes, bytes]:
    """Return contents of .nv.callgraph and of .nv.prototype."""
    graph = b""
    for block in (DIRECT, TAKEN, INDIRECT, CANDIDATE):
        graph += pack("<Ii", 0, block)
        graph += b"".join(pack("<II", *pair) for pair in rows_of(program, block))
    return graph, b"".join(pack("<II", *pair) for pair in rows_of(program, PROTOTYPE))
