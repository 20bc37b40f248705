"""Scoreboards: what is under way at each instruction, and who touches it before waiting.

A forward data flow over the events of a function (`events`) finds those that may be under way at
each instruction, the union over all paths. A wait ends those of its scoreboards; and since units
work in order, it ends those without a scoreboard that stand in front of one that counts there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hazards.events import PREDICATES, Events, union
from hazards.flow import Block, Flow
from hazards.tables import Table
from hazards.units import BARRIER, MEMORY

State = tuple[int, ...]


@dataclass(frozen=True)
class Access:
    """Instruction `second` touches `register` while `first` may still read or write it.

    `kind`: "read" of a result, "overwrite" of a result, or "source" that is overwritten. `naked`:
    no scoreboard tells when `first` is through.
    """

    kind: str
    first: int
    second: int
    register: int
    naked: bool


class Waits:
    """The data flow over the events of a function.

    Parameters
    ----------
    flow
        The function.
    table
        What is known of the architecture.
    """

    def __init__(self, flow: Flow, table: Table) -> None:
        self.flow = flow
        self.events = Events(flow, table)
        self.waits: list[tuple[int, ...]] = []  # the scoreboards that each instruction waits for
        self.later: dict[int, int] = {}  # DEPBAR that leaves some under way -> their events
        self._inner: dict[int, int] = {}  # callee -> its events
        masks = {mask: tuple(bit for bit in range(6) if mask >> bit & 1) for mask in range(64)}
        for block in flow.blocks:
            for index in range(block.first, block.last):
                step = flow.steps[index]
                waits = masks[step.control.wait]
                if step.instruction.base == "DEPBAR":
                    waits += self._barrier(index, block.first)
                self.waits.append(waits)
        self.entry = self._solve()

    def _barrier(self, index: int, first: int) -> tuple[int, ...]:
        """The scoreboards that `DEPBAR.LE SB0, 0x0` and `DEPBAR {5,4}` wait for.

        `DEPBAR.LE SB0, 0x2` leaves the last two under way that count there. They are looked for in
        the block, which begins with instruction `first`; where they are not, nothing is known to be
        through.
        """
        steps, operands = self.flow.steps, self.flow.steps[index].instruction.operands
        found: list[int] = []
        for operand in operands:
            if operand.startswith("{"):
                found += [int(digit) for digit in operand.strip("{}").split(",")]
            elif operand.startswith("SB"):
                scoreboard, left = int(operand[2:]), 0
                if operands[-1].startswith("0x"):
                    left = int(operands[-1], 16)
                at = index
                while left and at > first:
                    at -= 1
                    left -= scoreboard in (steps[at].control.write, steps[at].control.read)
                if not left:
                    found.append(scoreboard)
                    self.later[index] = union(self.events.starts[at:index])
        return tuple(found)

    def _step(self, index: int, state: list[int]) -> None:
        """Change the state as the wait of an instruction does."""
        if self.flow.steps[index].instruction.base == BARRIER:
            state[0] &= ~self.events.barred
        for scoreboard in self.waits[index]:
            through = self.events.of_scoreboard[scoreboard] | state[2 + scoreboard]
            later = self.later.get(index, 0)
            state[0] &= ~through | later
            state[2 + scoreboard] &= later

    def _issue(self, index: int, state: list[int]) -> None:
        """Change the state as the instruction itself does."""
        step = self.flow.steps[index]
        for number in step.registers.written:
            if number >= PREDICATES and number in self.events.guards:
                state[1] &= ~self.events.guards[number]
        starts = self.events.starts[index]
        if not starts:
            return
        if self.events.follows[index]:
            for scoreboard, unit in self.events.follows[index]:
                before = state[0] & self.events.units.get(unit, 0)
                state[2 + scoreboard] |= before
        for at in range(2, 8):
            if state[at]:
                state[at] &= ~starts
        state[0] |= starts
        state[1] |= starts

    def _solve(self) -> list[State]:
        """For each block, the state where it begins.

        A state has the events that may be under way; those whose guard has the value that it had
        then; and for each scoreboard the events that are through when it is zero, since they are in
        front of one that counts there.
        """
        blocks = self.flow.blocks
        entry: list[State | None] = [None] * len(blocks)
        work = list(reversed(self.flow.entries))
        for at in work:
            entry[at] = (0,) * 8
        queued = set(work)
        while work:
            at = work.pop()
            queued.discard(at)
            state = entry[at]
            assert state is not None
            out = self._through(blocks[at], state)
            for after, new in self._leaving(blocks[at], out):
                old = entry[after]
                joined = new if old is None else join(old, new)
                if joined != old:
                    entry[after] = joined
                    if after not in queued:
                        queued.add(after)
                        work.append(after)
        return [state if state is not None else (0,) * 8 for state in entry]

    def _through(self, block: Block, before: State) -> State:
        state = list(before)
        for index in range(block.first, block.last):
            self._step(index, state)
            self._issue(index, state)
        active = state[0]
        return (active, *(part & active for part in state[1:]))

    def _leaving(self, block: Block, out: State) -> Iterator[tuple[int, State]]:
        """The blocks that may be next, and the state on the way there."""
        for place, after in enumerate(block.next):
            yield after, self._along(block, place, out)
        if block.over:
            # What was under way in front of a call; the callee has waited for some of it.
            after, waits = block.over
            state = list(out)
            for scoreboard in waits:
                state[0] &= ~(self.events.of_scoreboard[scoreboard] | state[2 + scoreboard])
            yield after, tuple(part & state[0] for part in state)
        for after, callee in block.back:
            inner = self._events_of(callee)
            yield after, tuple(part & inner for part in out)

    def _events_of(self, callee: int) -> int:
        """The events of a function that is called within the code."""
        found = self._inner.get(callee)
        if found is None:
            blocks = [self.flow.blocks[number] for number in self.flow.callees[callee]]
            found = union(
                starts
                for block in blocks
                for starts in self.events.starts[block.first : block.last]
            )
            self._inner[callee] = found
        return found

    def _along(self, block: Block, place: int, state: State) -> State:
        """The state on the way to the `place`th successor: a branch tells what its guard is."""
        instruction = self.flow.steps[block.last - 1].instruction
        if instruction.base != "BRA" or instruction.guard is None or len(instruction.operands) > 1:
            return state
        if len(block.next) != 2:
            return state
        negated = instruction.guard[2] ^ (place == 1)
        impossible = self.events.opposite(
            self.flow.steps[block.last - 1].registers.guard[0], negated
        )
        impossible &= state[1]
        return tuple(part & ~impossible for part in state)

    def accesses(self) -> Iterator[Access]:
        """All accesses to what may be under way, in the order of the code."""
        blocks = self.flow.blocks
        for number, (block, entry) in enumerate(zip(blocks, self.entry, strict=True)):
            state = list(entry)
            for index in range(block.first, block.last):
                self._step(index, state)
                if state[0]:
                    yield from self._touched(index, state[0], state[1])
                    if leaves(self.flow, number, index):
                        # The other function counts on all that it may touch.
                        yield from self._each("call", state[0] & self.events.own, index, -1)
                self._issue(index, state)

    def _touched(self, index: int, active: int, intact: int) -> Iterator[Access]:
        step = self.flow.steps[index]
        used = step.registers
        if used.guard and step.instruction.guard:
            active &= ~(self.events.opposite(used.guard[0], step.instruction.guard[2]) & intact)
        base = step.instruction.base
        if active & self.events.fences and base in MEMORY:
            yield from self._each("fence", active & self.events.fences, index, -1)
        for kind, numbers, table in (
            ("read", used.read, self.events.writers),
            ("overwrite", used.written, self.events.writers),
            ("source", used.written, self.events.readers),
        ):
            for number in numbers:
                found = active & table.get(number, 0)
                if found and kind != "read":
                    found &= ~self.events.free(kind, base)
                yield from self._each(kind, found, index, number)

    def _each(self, kind: str, events: int, index: int, number: int) -> Iterator[Access]:
        while events:
            bit = events & -events
            events ^= bit
            first = self.events.of_event[bit.bit_length() - 1]
            yield Access(kind, first, index, number, bool(bit & self.events.naked))


def leaves(flow: Flow, number: int, index: int) -> bool:
    """Whether an instruction of a block goes to a function of another section, or back to one."""
    base = flow.steps[index].instruction.base
    if base == "CALL":
        return flow.blocks[number].over is None or index != flow.blocks[number].last - 1
    return base == "RET" and number in flow.outer


def join(state: State, other: State) -> State:
    """The state where two paths meet: under way on either, the rest where it holds on both."""
    active = state[0] | other[0]
    return (
        active,
        *(
            (a | ~state[0]) & (b | ~other[0]) & active
            for a, b in zip(state[1:], other[1:], strict=True)
        ),
    )
