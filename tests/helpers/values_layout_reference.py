"""A naive reference of variables that the link itself places: common and reserved shared ones.

Common variables are at the end of `.nv.global`. The one for which an input makes room last is
placed first. The reserve of shared memory and its order are in docs/format-notes.md
(`.nv.shared.reserved.0`).
"""

from __future__ import annotations

from typing import NamedTuple

RESERVE = 0x40


class Variable(NamedTuple):
    """The size and alignment of a variable in bytes."""

    size: int
    align: int


def round_up(offset: int, align: int) -> int:
    """Return the next multiple of an alignment."""
    return -(-offset // align) * align


def place_all(variables: list[Variable], order: list[int], end: int) -> tuple[list[int], int]:
    """Return the offset of each variable, placed in this order, and the end of the last one."""
    offsets = [0] * len(variables)
    for number in order:
        offsets[number] = round_up(end, variables[number].align)
        end = offsets[number] + variables[number].size
    return offsets, end


def place_common(variables: list[Variable], mentions: list[int], end: int) -> tuple[list[int], int]:
    """Place common variables after the `end` of the inputs' data.

    `mentions` are the numbers of variables in the order in which inputs make room for them.
    """
    return place_all(variables, list(dict.fromkeys(mentions))[::-1], end)


def place_reserved(variables: list[Variable], *, executable: bool) -> tuple[list[int], int]:
    """Place reserved variables by falling alignment, of equal ones the last created first.

    With -r their values are their alignments.
    """
    order = sorted(range(len(variables)), key=lambda n: (-variables[n].align, -n))
    offsets, end = place_all(variables, order, RESERVE if executable else 0)
    return (offsets if executable else [v.align for v in variables]), end
