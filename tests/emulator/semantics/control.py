"""Control flow: jumps, calls, exits, and how lanes of a warp part; `convergence` has the way back.

The functions here end a block of instructions. They return the address at which the fragment
goes on, or None when it does not go on now: it has ended, or it waits, and then its `pc` says where
it goes on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from emulator.build import Build
from emulator.errors import Fault
from emulator.lanes import Wide, row, spread, wide
from emulator.machine import Fragment, Step
from emulator.operands import Immediate, Operand, Register, Target
from emulator.semantics.convergence import End, fixed_target, lanes_taken, next_address, settle


def _go(f: Fragment, bits: int, target: int, following: int) -> int:
    """Some lanes go to `target`, the others on."""
    if bits == f.bits:
        return target
    if bits:
        f.warp.split(f, bits, target)
    return following


def bra(b: Build) -> End:
    """BRA.DIV jumps unless all lanes of a mask are here and have its guard, BRA.CONV if they are.

    ptxas guards them by whether lanes have the mask of the others (R2UR with a predicate).
    """
    diverged, converged = b.take("DIV"), b.take("CONV")
    b.take("U")
    following = next_address(b)
    if diverged or converged:
        operand = b.next()
        if not isinstance(operand, Register):
            raise b.unsupported(f"operand {operand}")
        get, inverted = b.bits(operand), operand.signs == "~"
        taken, target = lanes_taken(b), fixed_target(b)

        def run_diverged(f: Fragment) -> int:
            mask = int(get(f)[0]) ^ (0xFFFFFFFF if inverted else 0)
            apart = bool(mask & f.warp.alive & ~taken(f))
            return target if apart == diverged else following

        return run_diverged
    conditions = []
    while b.next_is_predicate():
        conditions.append(b.flags())
    taken, target = lanes_taken(b, *conditions), fixed_target(b)
    if not conditions and b.instruction.guard is None:
        return lambda f: target
    return lambda f: _go(f, taken(f), target, following)


def jump(b: Build) -> End:
    """JMP to a fixed address; CALL and RET to a fixed one or one in registers."""
    b.take("REL", "ABS")
    b.take("NOINC", "NODEC")
    taken, following = lanes_taken(b), next_address(b)
    if isinstance(b.operands[0], Immediate):
        target = fixed_target(b)
        return lambda f: _go(f, taken(f), target, following)
    address = _target_address(b)
    return lambda f: go_apart(f, taken(f), address(f), following)


def indirect(b: Build) -> End:
    """BRX and BRXU: to a distance in registers from the next instruction."""
    taken, following = lanes_taken(b), next_address(b)
    address = _target_address(b)
    here = np.uint64(following)
    return lambda f: go_apart(f, taken(f), address(f) + here, following)


def absolute(b: Build) -> End:
    """JMX and JMXU: to an address in registers."""
    taken, following, address = lanes_taken(b), next_address(b), _target_address(b)
    return lambda f: go_apart(f, taken(f), address(f), following)


def _target_address(b: Build) -> Callable[[Fragment], Wide]:
    operand: Operand = b.next()
    offset = 0
    if isinstance(operand, Target):
        offset = operand.offset + (next_address(b) if operand.relative else 0)
        operand = operand.register
    if not isinstance(operand, Register) or operand.signs or operand.suffixes:
        raise b.unsupported(f"operand {operand}")
    low, high = b.bits(operand), b.bits(operand, 1)
    more = np.uint64(offset & 0xFFFFFFFFFFFFFFFF)
    return lambda f: wide(low(f), high(f)) + more


def go_apart(f: Fragment, bits: int, addresses: Wide, following: int) -> int | None:
    """Each of the lanes goes to its own address, the others on."""
    if not bits:
        return following
    targets = spread(addresses, f.warp.size)
    ways: dict[int, int] = {}
    for lane in range(f.warp.size):
        if bits >> lane & 1:
            target = int(targets[lane])
            ways[target] = ways.get(target, 0) | 1 << lane
    if bits != f.bits:
        ways[following] = ways.get(following, 0) | f.bits & ~bits
    first, *others = ways
    for target in others:
        f.warp.split(f, ways[target], target)
    return first


def leave(b: Build) -> End:
    b.take("KEEPREFCOUNT")
    taken, following = lanes_taken(b), next_address(b)

    def run(f: Fragment) -> int | None:
        bits = taken(f)
        if not bits:
            return following
        f.warp.exit(f, bits)
        settle(f.warp)
        f.warp.block.settle()
        return following if f.bits else None

    return run


def trap(b: Build) -> End:
    b.take("TRAP")
    if b.operands:
        b.next()
    taken, following = lanes_taken(b), next_address(b)

    def run(f: Fragment) -> int:
        if taken(f):
            raise Fault("trap")
        return following

    return run


def nop(b: Build) -> Step:
    """What orders memory, sleeps or gives way: execution here is in order."""
    b.modifiers.clear()
    b.operands.clear()
    return lambda f: None


def lepc(b: Build) -> Step:
    """The address of the instruction, or one at a distance from it."""
    target = b.next()
    low, high = b.put(0, target), b.put(1, target)
    address = fixed_target(b) if b.operands else b.instruction.address

    def run(f: Fragment) -> None:
        low(f, row(address))
        high(f, row(address >> 32))

    return run


_NOTHING = (
    "NOP",
    "DEPBAR",
    "MEMBAR",
    "ERRBAR",
    "CGAERRBAR",
    "CCTL",
    "CCTLL",
    "LDGDEPBAR",
    "NANOSLEEP",
    "FENCE",
    "ACQBULK",
    "PREEXIT",
    "ENDCOLLECTIVE",
)
OPCODES: dict[str, Callable[[Build], Step]] = {
    "LEPC": lepc,
    **dict.fromkeys(_NOTHING, nop),
}
ENDS: dict[str, Callable[[Build], End]] = {
    "BRA": bra,
    "JMP": jump,
    "CALL": jump,
    "RET": jump,
    "BRX": indirect,
    "BRXU": indirect,
    "JMX": absolute,
    "JMXU": absolute,
    "EXIT": leave,
    "BPT": trap,
    "KILL": trap,
}
