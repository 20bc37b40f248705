"""Stall counts: how many cycles lie between an instruction and who touches its result.

The result of an instruction of fixed latency has no scoreboard: the compiler counts cycles. A
forward data flow finds, for each register, who wrote it in the last cycles and the fewest cycles
since, over all paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hazards.flow import Block, Flow
from hazards.operands import FILES
from hazards.words import NONE

Recent = dict[
    int, dict[int, int]
]  # register -> instruction that wrote it -> cycles since it was issued


@dataclass(frozen=True)
class Distance:
    """Instruction `second` reads or overwrites `register`, `cycles` after `first` was issued.

    `kind`: "read", "guard" (it is the guard of `second`), or "overwrite".
    """

    kind: str
    first: int
    second: int
    register: int
    cycles: int


class Stalls:
    """The distances in a function.

    Parameters
    ----------
    flow
        The function.
    variable
        Base names of instructions whose results scoreboards guard: they are left out.
    window
        Cycles after which nobody looks at a result any more.
    """

    def __init__(self, flow: Flow, variable: frozenset[str], window: int) -> None:
        self.flow = flow
        self.window = window
        self.fixed = [
            step.control.write == NONE
            and step.instruction.base not in variable
            and bool(step.registers.written)
            for step in flow.steps
        ]
        self.entry = self._solve()

    def _solve(self) -> list[Recent]:
        blocks = self.flow.blocks
        entry: list[Recent | None] = [None] * len(blocks)
        work = list(reversed(self.flow.entries))
        for at in work:
            entry[at] = {}
        while work:
            at = work.pop()
            state = entry[at]
            assert state is not None
            out = self._through(blocks[at], state)
            for after in (*blocks[at].next, *(number for number, _ in blocks[at].back)):
                old = entry[after]
                if old is None:
                    entry[after] = {register: dict(who) for register, who in out.items()}
                elif not _join(old, out):
                    continue
                work.append(after)
        return [state or {} for state in entry]

    def _through(self, block: Block, before: Recent) -> Recent:
        """The state behind a block; only its last instructions matter if it is long."""
        first = block.last
        cycles = 0
        while first > block.first and cycles < self.window:
            first -= 1
            cycles += max(1, self.flow.steps[first].control.stall)
        state = _copy(before) if first == block.first else {}
        clock = 0
        for index in range(first, block.last):
            clock = self._issue(index, state, clock)
        return {
            register: near
            for register, who in state.items()
            if (near := {w: clock - at for w, at in who.items() if clock - at < self.window})
        }

    def _issue(self, index: int, state: Recent, clock: int) -> int:
        """Note what an instruction writes; returns the time when the next may be issued.

        Within a block a state has the times of writers, not the cycles since.
        """
        step = self.flow.steps[index]
        guarded = bool(step.registers.guard)
        for register in step.registers.written:
            if self.fixed[index]:
                if guarded and register in state:
                    state[register][index] = clock
                else:
                    state[register] = {index: clock}
            elif not guarded:
                state.pop(register, None)
        return clock + max(1, step.control.stall)

    def distances(self) -> Iterator[Distance]:
        """All accesses to results of fixed latency within the window, in the order of the code."""
        for block, entry in zip(self.flow.blocks, self.entry, strict=True):
            state, clock = _copy(entry), 0
            for index in range(block.first, block.last):
                yield from self._touched(index, state, clock)
                clock = self._issue(index, state, clock)

    def _touched(self, index: int, state: Recent, clock: int) -> Iterator[Distance]:
        step = self.flow.steps[index]
        used = step.registers
        for kind, registers in (("read", used.read), ("overwrite", used.written)):
            for register in registers:
                if register not in state:
                    continue
                for writer, since in state[register].items():
                    cycles = clock - since
                    if cycles >= self.window or self._excluded(writer, index, state, since):
                        continue
                    how = "guard" if kind == "read" and register in used.guard else kind
                    yield Distance(how, writer, index, register, cycles)

    def _excluded(self, writer: int, index: int, state: Recent, since: int) -> bool:
        """Whether the guards of both say that never both run."""
        guard = self.flow.steps[writer].instruction.guard
        other = self.flow.steps[index].instruction.guard
        if guard is None or other is None or guard[:2] != other[:2] or guard[2] == other[2]:
            return False
        predicate = FILES[guard[0]] + guard[1]
        return all(at < since for at in state.get(predicate, {}).values())


def _copy(entry: Recent) -> Recent:
    """The state at the begin of a block, as times before it."""
    return {
        register: {writer: -cycles for writer, cycles in who.items()}
        for register, who in entry.items()
    }


def _join(into: Recent, other: Recent) -> bool:
    """Add the other path; whether that changed anything."""
    changed = False
    for register, who in other.items():
        mine = into.setdefault(register, {})
        for writer, cycles in who.items():
            if mine.get(writer, 1 << 30) > cycles:
                mine[writer] = cycles
                changed = True
    return changed


def own_waits(flow: Flow, limit: int = 4) -> Iterator[tuple[int, int, int]]:
    """Waits for a scoreboard soon after it was set: who set it, who waits, and cycles between.

    A scoreboard counts up some cycles after the instruction was issued; a wait before that does
    nothing.
    """
    steps = flow.steps
    for block in flow.blocks:
        for index in range(block.first, block.last):
            control = steps[index].control
            scoreboards = {control.write, control.read} - {NONE}
            if not scoreboards:
                continue
            mask = sum(1 << scoreboard for scoreboard in scoreboards)
            cycles = 0
            at, end, after = index, block.last, block.next
            while True:
                cycles += max(1, steps[at].control.stall)
                if cycles >= limit:
                    break
                at += 1
                if at == end:
                    if len(after) != 1:
                        break
                    at, end, after = (
                        flow.blocks[after[0]].first,
                        flow.blocks[after[0]].last,
                        flow.blocks[after[0]].next,
                    )
                if steps[at].control.wait & mask:
                    yield index, at, cycles
                    break
                if {steps[at].control.write, steps[at].control.read} & scoreboards:
                    break
