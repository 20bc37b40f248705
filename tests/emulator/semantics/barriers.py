"""Barriers of a thread block, and of a cluster that is one block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulator.build import Build, Get
from emulator.decode import SIZE
from emulator.machine import CLUSTER, Fragment, Wait
from emulator.semantics.convergence import End, lanes_taken

_VOTES = ("AND", "OR", "POPC")


def bar(b: Build) -> End:
    """SYNC and RED wait for all threads, or for as many as an operand says; ARV only arrives."""
    arrive, reduction = b.take("ARV"), b.take("RED")
    if not arrive and not reduction and not b.take("SYNC"):
        raise b.unsupported("operation")
    vote = b.need({name: name for name in _VOTES}) if reduction else ""
    b.take("DEFER_BLOCKING")
    number: Get = b.bits()
    count: Get | None = None
    if b.operands and not b.next_is_predicate():
        count = b.bits()
    flags = b.flags() if reduction else None
    taken, following = lanes_taken(b), b.instruction.address + SIZE

    def run(f: Fragment) -> int | None:
        bits = taken(f)
        if not bits:
            return following
        if bits != f.bits:
            f.warp.split(f, f.bits & ~bits, following)
        which = _first(f, number)
        wanted = _first(f, count) if count else 0
        block = f.warp.block
        block.grid.usage.barriers = max(block.grid.usage.barriers, which + 1)
        if arrive:
            block.arrive(which, f.count, wanted)
            return following
        f.pc = following
        value = flags(f) & f.mask if flags else None
        f.wait = Wait("BAR", which, wanted, vote, value)
        block.settle()
        return None if f.wait is not None else following

    return run


def _first(f: Fragment, get: Get) -> int:
    value = get(f)
    return int(value[0] if len(value) == 1 else value[int(f.mask.argmax())])


def cluster_arrive(b: Build) -> End:
    """UCGABAR_ARV: one half of a barrier of all threads of a cluster."""
    taken, following = lanes_taken(b), b.instruction.address + SIZE

    def run(f: Fragment) -> int:
        f.warp.cluster_phase = np.where(
            np.array([bool(taken(f) >> lane & 1) for lane in range(f.warp.size)]),
            f.warp.block.cluster_phase,
            f.warp.cluster_phase,
        )
        f.warp.block.arrive(CLUSTER, taken(f).bit_count(), 0)
        return following

    return run


def cluster_wait(b: Build) -> End:
    """UCGABAR_WAIT: waits until all threads have arrived."""
    following = b.instruction.address + SIZE
    if b.instruction.guard is not None:
        raise b.unsupported("guard")

    def run(f: Fragment) -> int | None:
        block = f.warp.block
        if (f.warp.cluster_phase[f.mask] < block.cluster_phase).all():
            return following
        f.pc = following
        f.wait = Wait("CLUSTER")
        return None

    return run


OPCODES: dict[str, Callable[[Build], Callable[[Fragment], None]]] = {}
ENDS: dict[str, Callable[[Build], End]] = {
    "BAR": bar,
    "UCGABAR_ARV": cluster_arrive,
    "UCGABAR_WAIT": cluster_wait,
}
