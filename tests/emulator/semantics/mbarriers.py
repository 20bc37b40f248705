"""Barriers in shared memory: how one is held in 64 bits, and what arriving does to it.

The program makes the first value itself, and compares phases itself before sm_90, so both forms are
known from its code. Counts run upward: a count of n is held as the limit less n, and the carry out
of the pending count is the phase.

    before sm_90: expected in bits 0 to 29 (limit 2**30), pending in bits 32 to 62, phase in bit 63
    from sm_90 on: expected in bits 1 to 20 (limit 2**20), bytes of transactions in bits 21 to 42,
                   pending in bits 43 to 62, phase in bit 63
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulator.build import Build, Get
from emulator.errors import Fault
from emulator.lanes import Wide
from emulator.machine import Fragment, Step
from emulator.memory import SHARED_HIGH
from emulator.semantics import addresses

_OLD_LIMIT = 1 << 30
_OLD_PENDING = (1 << 31) - 1
_LIMIT = 1 << 20
_COUNT = _LIMIT - 1
_BYTES = (1 << 22) - 1
PHASE = 1 << 63


def arrive_old(value: int, _count: int, _bits: int) -> int:
    """The value after one arrival, before sm_90."""
    expected = _OLD_LIMIT - (value & _OLD_LIMIT - 1)
    pending = (value >> 32 & _OLD_PENDING) + 1
    phase = value >> 63
    if pending > _OLD_PENDING:
        phase ^= 1
        pending = _OLD_PENDING + 1 - expected
    return phase << 63 | pending << 32 | value & 0xFFFFFFFF


def arrive(value: int, count: int, more_bytes: int, drop: bool) -> int:
    """The value after `count` arrivals that expect `more_bytes`, from sm_90 on."""
    expected = value >> 1 & _COUNT
    pending = value >> 43 & _COUNT
    transactions = (value >> 21) + more_bytes & _BYTES
    phase = value >> 63
    if drop:
        expected += count
    if pending + count > _LIMIT or (count and not pending and not expected):
        raise Fault("more arrivals at an mbarrier than it expects")
    pending += count
    if pending == _LIMIT and not transactions:
        phase ^= 1
        pending = expected
    return phase << 63 | (pending & _COUNT) << 43 | transactions << 21 | (expected & _COUNT) << 1


def _place(f: Fragment, address: Callable[[Fragment], Wide]) -> Wide:
    narrow = addresses.each_active(f, address(f))
    return narrow.astype(np.uint64) + np.uint64(SHARED_HIGH << 32)


def syncs(b: Build) -> Step:
    if b.take("EXCH"):
        return _exchange(b)
    if b.take("ARRIVE"):
        return _arrive(b)
    if b.take("PHASECHK"):
        return _check_phase(b)
    if b.take("CCTL"):
        return _invalidate(b)
    raise b.unsupported("operation")


def _exchange(b: Build) -> Step:
    if not b.take("64"):
        raise b.unsupported("missing modifier")
    target = b.next()
    puts = [b.put(0, target), b.put(1, target)]
    address = addresses.narrow_address(b)
    operand = b.next()
    low, high = b.bits(operand), b.bits(operand, 1)

    def run(f: Fragment) -> None:
        place = _place(f, address)[:1]
        old = f.warp.block.shared.load(place, 8)
        f.warp.block.shared.store(place, 8, [low(f)[:1], high(f)[:1]])
        for put, value in zip(puts, old, strict=True):
            put(f, value)

    return run


# How many arrivals and how many bytes an instruction has: one, none, or what a register says.
_ARRIVALS = {
    "A1T0": (1, 0),
    "ART0": (None, 0),
    "A1TR": (1, None),
    "A0TR": (0, None),
}


def _arrive(b: Build) -> Step:
    if not b.take("TRANS64"):
        raise b.unsupported("missing modifier")
    drop = b.take("OPTOUT")
    arrivals, more_bytes = b.need(_ARRIVALS)
    target = b.next()
    puts = [b.put(0, target), b.put(1, target)]
    address = addresses.narrow_address(b)
    amount: Get = b.bits()

    def run(f: Fragment) -> None:
        places = _place(f, address)
        amounts = addresses.each_active(f, amount(f)).tolist()
        shared = f.warp.block.shared
        old = np.zeros((2, len(places)), np.uint32)
        for index in range(len(places)):
            place = places[index : index + 1]
            words = shared.load(place, 8)
            value = int(words[0][0]) | int(words[1][0]) << 32
            count = amounts[index] if arrivals is None else arrivals
            size = amounts[index] if more_bytes is None else more_bytes
            new = arrive(value, count, size, drop)
            shared.store(place, 8, [np.array([new >> s & 0xFFFFFFFF], np.uint32) for s in (0, 32)])
            old[0, index], old[1, index] = words[0][0], words[1][0]
        for put, value_row in zip(puts, old, strict=True):
            put(f, addresses.to_lanes(f, value_row))

    return run


def _check_phase(b: Build) -> Step:
    """Whether the phase that a token or a parity names has ended."""
    if not b.take("TRANS64"):
        raise b.unsupported("missing modifier")
    b.take("TRYWAIT")
    put, address, token = b.put_flags(), addresses.narrow_address(b), b.bits()

    def run(f: Fragment) -> None:
        places = _place(f, address)
        high = f.warp.block.shared.load(places, 8)[1]
        named = addresses.each_active(f, token(f))
        put(f, addresses.to_lanes(f, high >> 31 ^ named >> 31) != 0)

    return run


def _invalidate(b: Build) -> Step:
    if not b.take("IV"):
        raise b.unsupported("missing modifier")
    addresses.narrow_address(b)
    return lambda f: None


OPCODES: dict[str, Callable[[Build], Step]] = {"SYNCS": syncs}
