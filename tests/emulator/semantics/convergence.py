"""How lanes of a warp that parted come together again: convergence barriers and WARPSYNC.

`End` is what ends a block of instructions: a function that returns the address at which the
fragment goes on, or None when it does not go on now, since it has ended or waits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulator.build import Build, Get, GetFlags, flags_of
from emulator.decode import SIZE
from emulator.lanes import row, spread, to_bits, to_mask
from emulator.machine import Fragment, Step, Wait, Warp
from emulator.operands import Immediate, Register

End = Callable[[Fragment], "int | None"]


def guard_of(b: Build) -> GetFlags | None:
    guard = b.instruction.guard
    return None if guard is None else flags_of(guard)


def lanes_taken(b: Build, *more: GetFlags) -> Callable[[Fragment], int]:
    """The lanes for which the guard and further predicates hold, as bits."""
    guard = guard_of(b)
    conditions = [*([guard] if guard else []), *more]
    if not conditions:
        return lambda f: f.bits
    if len(conditions) == 1:
        condition = conditions[0]
        return lambda f: to_bits(condition(f) & f.mask)

    def bits(f: Fragment) -> int:
        mask = f.mask
        for condition in conditions:
            mask = condition(f) & mask
        return to_bits(mask)

    return bits


def next_address(b: Build) -> int:
    return b.instruction.address + SIZE


def fixed_target(b: Build) -> int:
    operand = b.next()
    if not isinstance(operand, Immediate):
        raise b.unsupported(f"operand {operand}")
    return (next_address(b) if operand.relative else 0) + operand.value & 0xFFFFFFFFFFFFFFFF


def _barrier(b: Build) -> int:
    operand = b.next()
    if not isinstance(operand, Register) or operand.file != "B":
        raise b.unsupported(f"operand {operand}")
    return operand.number


def bssy(b: Build) -> Step:
    """The lanes of the fragment will meet at the BSYNC of this barrier."""
    b.take("RECONVERGENT", "RELIABLE")
    number = _barrier(b)
    operand = b.next()
    if not isinstance(operand, Immediate):
        raise b.unsupported(f"operand {operand}")

    def run(f: Fragment) -> None:
        f.B[number] = np.where(f.mask, np.uint32(f.bits), f.B[number])

    return run


def expected(f: Fragment, number: int) -> int:
    """The lanes that those of the fragment wait for at a barrier."""
    masks = spread(f.B[number], f.warp.size)[f.mask].tolist()
    total = 0
    for mask in set(masks):
        total |= mask
    return total & f.warp.alive


def bsync(b: Build) -> End:
    b.take("RECONVERGENT", "RELIABLE")
    number, taken, following = _barrier(b), lanes_taken(b), next_address(b)

    def run(f: Fragment) -> int | None:
        bits = taken(f)
        if not bits:
            return following
        if bits != f.bits:
            f.warp.split(f, f.bits & ~bits, following)
        if not expected(f, number) & ~f.bits:
            return following
        return _wait(f, Wait("BSYNC", number), following)

    return run


def _wait(f: Fragment, wait: Wait, following: int) -> int | None:
    f.pc = following
    f.wait = wait
    settle(f.warp)
    return None


def settle(warp: Warp) -> None:
    """Let those fragments of a warp go on whose others have come, exited or left the barrier."""
    again = True
    while again:
        again = False
        for f in warp.fragments:
            if f.wait is None or f.wait.kind not in ("BSYNC", "WARPSYNC"):
                continue
            kind, key = f.wait.kind, f.wait.key
            group = [
                o for o in warp.fragments if o.wait and (o.wait.kind, o.wait.key) == (kind, key)
            ]
            if kind == "BSYNC":
                needed = expected(f, key)
                # Functions save and restore barriers: some may wait at another use of this one.
                group = [o for o in group if expected(o, key) == needed]
            else:
                needed = key & warp.alive
            came = [o for o in group if o is f or not o.bits & ~needed]
            if needed & ~union(came):
                continue
            merge(warp, came)
            again = True
            break


def union(fragments: list[Fragment]) -> int:
    total = 0
    for f in fragments:
        total |= f.bits
    return total


def merge(warp: Warp, fragments: list[Fragment]) -> None:
    """Make one fragment of those that go on at the same address."""
    by_address: dict[int, list[Fragment]] = {}
    for f in fragments:
        f.wait = None
        by_address.setdefault(f.pc, []).append(f)
    for group in by_address.values():
        group[0].set_lanes(union(group))
        for f in group[1:]:
            warp.fragments.remove(f)


def leave_barrier(b: Build) -> End:
    """BREAK: the lanes will not come to the BSYNC of a barrier."""
    b.take("RELIABLE")
    conditions = [b.flags()] if b.next_is_predicate() else []
    number, taken, following = _barrier(b), lanes_taken(b, *conditions), next_address(b)

    def run(f: Fragment) -> int:
        bits = taken(f)
        if bits:
            named = to_mask(expected(f, number), f.warp.size)
            left = f.B[number] & np.uint32(~bits & 0xFFFFFFFF)
            f.B[number] = np.where(named, left, f.B[number])
            settle(f.warp)
        return following

    return run


def bmov(b: Build) -> Step:
    """A barrier to a register, which CLEAR then empties, or back."""
    if not b.take("32"):
        raise b.unsupported("missing modifier")
    clear = b.take("CLEAR")
    b.take("PQUAD")
    if isinstance(b.operands[0], Register) and b.operands[0].file == "B":
        number, get = _barrier(b), b.bits()

        def restore(f: Fragment) -> None:
            f.B[number] = np.where(f.mask, get(f), f.B[number])

        return restore
    put, number = b.put(), _barrier(b)

    def save(f: Fragment) -> None:
        put(f, f.B[number])
        if clear:
            f.B[number] = np.where(f.mask, np.uint32(0), f.B[number])

    return save


def warpsync(b: Build) -> End:
    """Lanes wait for all that their mask names, and go on together.

    With COLLECTIVE they come from different places, run what follows together and go their own
    ways after ENDCOLLECTIVE. Here they stay together: what follows joins them anyway.
    """
    every = b.take("ALL")
    collective = b.take("COLLECTIVE")
    b.take("EXCLUSIVE")
    get: Get = (lambda f: row(0xFFFFFFFF)) if every else b.bits()
    if collective:
        fixed_target(b)
    taken, following = lanes_taken(b), next_address(b)

    def run(f: Fragment) -> int | None:
        bits = taken(f)
        if not bits:
            return following
        if bits != f.bits:
            f.warp.split(f, f.bits & ~bits, following)
        masks = spread(get(f), f.warp.size)
        groups: dict[int, int] = {}
        for lane in range(f.warp.size):
            if f.bits >> lane & 1:
                mask = int(masks[lane])
                groups[mask] = groups.get(mask, 0) | 1 << lane
        first, *others = groups
        for mask in others:
            other = f.warp.split(f, groups[mask], following)
            other.wait = Wait("WARPSYNC", mask)
        if not others and not first & f.warp.alive & ~f.bits:
            return following
        return _wait(f, Wait("WARPSYNC", first), following)

    return run


# How often lanes give way in a loop before others that wait for them go on without them.
_PATIENCE = 64


def give_way(b: Build) -> End:
    """YIELD: another fragment has its turn.

    A loop may wait for what lanes will do that wait at BSYNC for the end of the loop. The hardware
    then lets these go on, and so does this, after a while: they leave the barrier.
    """
    following = next_address(b)

    def run(f: Fragment) -> None:
        f.pc = following
        waiting = [o for o in f.warp.fragments if o.wait and o.wait.kind == "BSYNC"]
        f.warp.yields = f.warp.yields + 1 if waiting else 0
        if f.warp.yields <= _PATIENCE:
            return
        f.warp.yields = 0
        for number in {o.wait.key for o in waiting if o.wait}:
            gone = union([o for o in waiting if o.wait and o.wait.key == number])
            f.B[number] = f.B[number] & np.uint32(~gone & 0xFFFFFFFF)
        merge(f.warp, waiting)

    return run


OPCODES: dict[str, Callable[[Build], Step]] = {"BSSY": bssy, "BMOV": bmov}
ENDS: dict[str, Callable[[Build], End]] = {
    "BSYNC": bsync,
    "BREAK": leave_barrier,
    "YIELD": give_way,
    "WARPSYNC": warpsync,
}
