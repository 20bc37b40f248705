"""Votes, shuffles, matches and reductions over the lanes of a fragment."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from emulator.build import Build, Get
from emulator.lanes import ALL, Flags, Row, row, spread, to_bits, to_mask
from emulator.machine import Fragment, Step

# What a shuffle gives that reads a lane which does not take part.
_NOBODY = 0xBADBAD00


def vote(b: Build) -> Step:
    """ANY, ALL or EQ of a predicate; with a register also the lanes where it is true."""
    mode = b.need({name: name for name in ("ANY", "ALL", "EQ")})
    put = None if b.next_is_predicate() else b.put()
    put_flag = b.put_flags()
    flags = b.flags()

    def run(f: Fragment) -> None:
        bits = to_bits(flags(f) & f.mask)
        found = {"ANY": bits != 0, "ALL": bits == f.bits, "EQ": bits in (0, f.bits)}[mode]
        if put:
            put(f, row(bits))
        put_flag(f, np.array([found]))

    return run


def shfl(b: Build) -> Step:
    """A value of another lane; the predicate says whether that is in the same segment."""
    mode = b.need({name: name for name in ("IDX", "UP", "DOWN", "BFLY")})
    put_flag, put = b.put_flags(), b.put()
    value, distance, control = b.bits(), b.bits(), b.bits()

    def run(f: Fragment) -> None:
        lane = f.warp.lane.astype(np.int64)
        by = spread(distance(f) & 31, len(lane)).astype(np.int64)
        c = control(f).astype(np.int64)
        clamp, segment = c & 31, c >> 8 & 31
        most = lane & segment | clamp & ~segment & 31
        least = lane & segment
        if mode == "UP":
            source = lane - by
            inside = source >= most
        elif mode == "DOWN":
            source = lane + by
            inside = source <= most
        elif mode == "BFLY":
            source = lane ^ by
            inside = source <= most
        else:
            source = least | by & ~segment & 31
            inside = source <= most
        source = np.where(inside, source, lane)
        there = source < len(lane)
        at = np.where(there, source, 0)
        values: Row = spread(value(f), len(lane))
        taking_part = there & f.mask[at]
        put(f, np.where(taking_part, values[at], np.uint32(_NOBODY)))
        put_flag(f, inside)

    return run


def match(b: Build) -> Step:
    """The lanes that have the same value: as this one, or all of them or none."""
    everywhere = b.take("ALL")
    if not everywhere and not b.take("ANY"):
        raise b.unsupported("missing modifier")
    pair = b.take("U64")
    b.take("U32")
    put_flag = b.put_flags() if b.next_is_predicate() else None
    put = b.put()
    operand = b.next()
    gets: list[Get] = [b.bits(operand, part) for part in range(2 if pair else 1)]

    def run(f: Fragment) -> None:
        values = [
            tuple(lane) for lane in zip(*(spread(get(f), f.warp.size) for get in gets), strict=True)
        ]
        active = [lane for lane in range(f.warp.size) if f.bits >> lane & 1]
        if everywhere:
            same = len({values[lane] for lane in active}) == 1
            put(f, row(f.bits if same else 0))
            if put_flag:
                put_flag(f, np.array([same]))
            return
        found = np.zeros(f.warp.size, np.uint32)
        for lane in active:
            found[lane] = sum(1 << other for other in active if values[other] == values[lane])
        put(f, found)

    return run


_REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "SUM": lambda x, y: x + y,
    "MIN": min,
    "MAX": max,
    "OR": lambda x, y: x | y,
    "AND": lambda x, y: x & y,
    "XOR": lambda x, y: x ^ y,
}


def redux(b: Build) -> Step:
    """One value of all lanes; without an operation, and with AND, all bits that they share."""
    apply = b.choose(_REDUCTIONS, _REDUCTIONS["AND"])
    sign = b.take("S32")
    b.take("U32")
    put, get = b.put(), b.bits()

    def run(f: Fragment) -> None:
        values = spread(get(f), f.warp.size)[f.mask]
        numbers = (values.view(np.int32) if sign else values).tolist()
        put(f, row(reduce(apply, numbers) & ALL))

    return run


def elect(b: Build) -> Step:
    """True for the first lane of the fragment; the register has the number of that lane."""
    put_flag, put = b.put_flags(), b.put()
    more = b.flags()

    def run(f: Fragment) -> None:
        bits = to_bits(more(f) & f.mask) or f.bits
        first = (bits & -bits).bit_length() - 1
        chosen: Flags = to_mask(1 << first, f.warp.size)
        put_flag(f, chosen)
        put(f, row(first))

    return run


def b2r(b: Build) -> Step:
    """What the last BAR.RED found: the count in a register, or whether it is not zero."""
    if not b.take("RESULT"):
        raise b.unsupported("missing modifier")
    put = b.put()
    put_flag = b.put_flags() if b.operands else None

    def run(f: Fragment) -> None:
        put(f, f.warp.result)
        if put_flag:
            put_flag(f, f.warp.result != 0)

    return run


OPCODES: dict[str, Callable[[Build], Step]] = {
    "VOTE": vote,
    "VOTEU": vote,
    "SHFL": shfl,
    "MATCH": match,
    "REDUX": redux,
    "CREDUX": redux,
    "ELECT": elect,
    "B2R": b2r,
}
