"""What instructions leave under way: the events of a function, as sets of bits.

An instruction with a write scoreboard counts it up and, when its result is there, down; one with a
read scoreboard does so when its sources are read. Each such count is an event, and so is a result
or a source without a scoreboard that takes its time, and a fence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hazards.flow import Flow, Step
from hazards.operands import FILES
from hazards.tables import Table
from hazards.units import (
    AT_BARRIERS,
    EARLY_RESULTS,
    FENCES,
    RESULT_UNIT,
    SOURCE_UNIT,
    has_early_predicate,
    read_before,
    written_before,
)
from hazards.words import NONE

PREDICATES = FILES["P"]
K = TypeVar("K")


class Events:
    """The events of a function.

    Attributes
    ----------
    of_event
        The instruction of each event.
    starts
        The events of each instruction.
    of_scoreboard
        The events that are through when a scoreboard is zero.
    writers, readers
        By register, the events of who writes it, and of who reads it late.
    guards
        By predicate, the events that it guards; of these `negated` are those whose guard is
        negated.
    own, naked
        Events that have a scoreboard of their own, and those that nothing tells of.
    fences
        Events of what orders memory.
    barred
        Events that end at a barrier of the block.
    units
        By unit, the events without a scoreboard in it: they end in order.
    follows
        For each instruction, the scoreboards that tell of events in front of it, with the unit.
    """

    def __init__(self, flow: Flow, table: Table) -> None:
        self.table = table
        self.of_event: list[int] = []
        self.starts: list[int] = []
        self.of_scoreboard = [0] * 8
        self.writers: dict[int, int] = {}
        self.readers: dict[int, int] = {}
        self.guards: dict[int, int] = {}
        self.negated = self.own = self.naked = self.fences = self.barred = 0
        self.units: dict[str, int] = {}
        self.follows: list[tuple[tuple[int, str], ...]] = []
        self._of_base: dict[tuple[str, str], int] = {}  # kind of access, base name
        for index, step in enumerate(flow.steps):
            self._add(index, step)
        self.of_scoreboard[NONE] = 0

    def _add(self, index: int, step: Step) -> None:
        control, used, base = step.control, step.registers, step.instruction.base
        starts = 0
        if control.write != NONE or (base in self.table.variable and used.written):
            starts |= self._result(index, step)
        if control.read != NONE or base in self.table.late:
            starts |= self._sources(index, step)
        if base in FENCES and (control.write, control.read) != (NONE, NONE):
            event = self._event(index, control.write, control.read)
            self.fences |= event
            starts |= event
        self.starts.append(starts)
        follows = []
        if control.write != NONE:
            follows += [
                (control.write, RESULT_UNIT.get(base)),
                (control.write, SOURCE_UNIT.get(base)),
            ]
        if control.read != NONE:
            follows.append((control.read, SOURCE_UNIT.get(base)))
        self.follows.append(tuple((bit, unit) for bit, unit in follows if unit))
        if starts and used.guard:
            add(self.guards, used.guard[0], starts)
            if step.instruction.guard and step.instruction.guard[2]:
                self.negated |= starts

    def _event(self, index: int, *scoreboards: int) -> int:
        """A new event of an instruction, through when one of the scoreboards is zero."""
        self.of_event.append(index)
        event = 1 << len(self.of_event) - 1
        for scoreboard in scoreboards:
            self.of_scoreboard[scoreboard] |= event
        return event

    def _result(self, index: int, step: Step) -> int:
        control, base = step.control, step.instruction.base
        if has_early_predicate(base, control):
            return self._early_and_late_result(index, step)
        event = self._event(index, control.write)
        for number in step.registers.written:
            add(self.writers, number, event)
        add(self._of_base, ("overwrite", base), event)
        if control.write != NONE:
            self.own |= event
            return event
        self.naked |= event
        add(self.units, RESULT_UNIT.get(base, ""), event)
        if base in EARLY_RESULTS:
            self.of_scoreboard[control.read] |= event
        return event

    def _early_and_late_result(self, index: int, step: Step) -> int:
        """Events of a predicate that is there with the sources, and of a register."""
        control, base = step.control, step.instruction.base
        early = self._event(index, control.write, control.read)
        late = self._event(index, control.write)
        for number in step.registers.written:
            add(self.writers, number, early if number >= PREDICATES else late)
        add(self._of_base, ("overwrite", base), early | late)
        self.own |= early | late
        return early | late

    def _sources(self, index: int, step: Step) -> int:
        control, base = step.control, step.instruction.base
        # A result that is there was computed from sources that had been read.
        event = self._event(index, control.read, control.write)
        # A unit takes what uniform registers hold when it takes the instruction; so does that of
        # mbarriers where no scoreboard tells of it.
        bare = base == "SYNCS" and control.read == NONE == control.write
        end = FILES["UR"] if base in SOURCE_UNIT or bare else PREDICATES
        for number in step.registers.read:
            if number < end:
                add(self.readers, number, event)
        add(self._of_base, ("source", base), event)
        if control.read != NONE:
            self.own |= event
        else:
            add(self.units, SOURCE_UNIT.get(base, ""), event)
        if control.read == NONE and base in AT_BARRIERS:
            self.barred |= event
        if control.read == NONE == control.write:
            self.naked |= event
        return event

    def free(self, kind: str, base: str) -> int:
        """Events after which `base` may come: its unit does what stood before it first."""
        key = (kind, "before " + base)
        found = self._of_base.get(key)
        if found is None:
            firsts = self.table.free.get(kind, {}).get(base, frozenset())
            firsts |= read_before(base) if kind == "source" else written_before(base)
            found = union(self._of_base.get((kind, first), 0) for first in firsts)
            self._of_base[key] = found
        return found

    def opposite(self, predicate: int, negated: bool) -> int:
        """Events that did not start if an instruction with this guard runs."""
        guarded = self.guards.get(predicate, 0)
        return guarded & ~self.negated if negated else guarded & self.negated


def add(sets: dict[K, int], key: K, bits: int) -> None:
    """Add to the set of a key."""
    sets[key] = sets.get(key, 0) | bits


def union(sets: Iterable[int]) -> int:
    """The union of sets of bits."""
    whole = 0
    for part in sets:
        whole |= part
    return whole
