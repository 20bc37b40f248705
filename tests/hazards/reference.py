"""The checks of scoreboards once more, event by event and path by path, in the plainest way.

`touched` follows one result, or the sources of one instruction, along all paths of a function until
something waits for it, and returns who touches it first. It shares with `waits` what instructions
read and write and which units work in order (`units`), not how accesses are found.
"""

from __future__ import annotations

from dataclasses import dataclass

from hazards.flow import Flow, Step
from hazards.operands import FILES
from hazards.tables import Table
from hazards.units import (
    AT_BARRIERS,
    BARRIER,
    EARLY_RESULTS,
    FENCES,
    MEMORY,
    RESULT_UNIT,
    SOURCE_UNIT,
    TEXTURE,
    has_early_predicate,
)
from hazards.waits import leaves
from hazards.words import NONE

State = tuple[int, int, bool]


@dataclass(frozen=True)
class Under:
    """What is under way of instruction `first`.

    `part` is "result", "predicate" (alone, where it has a scoreboard of its own), "sources" or
    "fence".
    """

    part: str
    first: int


def under_way(flow: Flow, table: Table) -> list[Under]:
    """All that instructions of a function leave under way."""
    found = []
    for index, step in enumerate(flow.steps):
        base, control = step.instruction.base, step.control
        if control.write != NONE or (base in table.variable and step.registers.written):
            found.append(Under("result", index))
            if has_early_predicate(base, control):
                found.append(Under("predicate", index))
        if control.read != NONE or base in table.late:
            found.append(Under("sources", index))
        if base in FENCES and (control.write, control.read) != (NONE, NONE):
            found.append(Under("fence", index))
    return found


def touched(flow: Flow, what: Under, table: Table) -> set[tuple[str, int]]:
    """Kind and instruction of each access to `what` that some path reaches before a wait for it."""
    steps = flow.steps
    first = steps[what.first]
    own = (
        {first.control.write}
        if what.part == "result"
        else {first.control.write, first.control.read}
    )
    if first.control.write == NONE and first.instruction.base in EARLY_RESULTS:
        own.add(first.control.read)
    own.discard(NONE)
    found: set[tuple[str, int]] = set()
    # Where a path is; the scoreboards of later ones of the unit; whether its guard is what it was.
    seen = set()
    work = _after(flow, what, (what.first, 0, True), own)
    while work:
        state = work.pop()
        if state in seen:
            continue
        seen.add(state)
        at, passed, intact = state
        step = steps[at]
        if step.instruction.base == BARRIER and _ends_at_barriers(first, what.part):
            continue
        for scoreboard, spared in _waits(flow, at):
            if spared <= what.first < at:
                continue
            if scoreboard in own or passed >> scoreboard & 1:
                break
        else:
            for kind in _kinds(first, step, what.part, intact, table):
                found.add((kind, at))
            number = next(n for n, b in enumerate(flow.blocks) if b.first <= at < b.last)
            scoreboard = first.control.read if what.part == "sources" else first.control.write
            if what.part != "fence" and scoreboard != NONE and leaves(flow, number, at):
                found.add(("call", at))
            if at == what.first:
                continue  # from here on it is the walk that was begun
            passed |= _passed(first, step, what.part)
            if first.registers.guard and first.registers.guard[0] in step.registers.written:
                intact = False
            work += _after(flow, what, (at, passed, intact), own)
    return found


def _ends_at_barriers(first: Step, part: str) -> bool:
    base, control = first.instruction.base, first.control
    return part == "sources" and control.read == NONE and base in AT_BARRIERS


def _waits(flow: Flow, at: int) -> list[tuple[int, int]]:
    """Scoreboards that an instruction waits for, and the first one that it does not wait for."""
    step = flow.steps[at]
    found = [(bit, at) for bit in range(6) if step.control.wait >> bit & 1]
    if step.instruction.base != "DEPBAR":
        return found
    for operand in step.instruction.operands:
        if operand.startswith("{"):
            found += [(int(digit), at) for digit in operand.strip("{}").split(",")]
        elif operand.startswith("SB"):
            last = step.instruction.operands[-1]
            left = int(last, 16) if last.startswith("0x") else 0
            begin = max(block.first for block in flow.blocks if block.first <= at)
            spared = at
            while left and spared > begin:
                spared -= 1
                control = flow.steps[spared].control
                left -= int(operand[2:]) in (control.write, control.read)
            if not left:
                found.append((int(operand[2:]), spared))
    return found


def _kinds(first: Step, step: Step, part: str, intact: bool, table: Table) -> list[str]:
    """What an instruction does to what is under way."""
    left, right = first.instruction.guard, step.instruction.guard
    if intact and left and right and left[:2] == right[:2] and left[2] != right[2]:
        return []
    base, used = step.instruction.base, step.registers
    mine = set(first.registers.written)
    if has_early_predicate(first.instruction.base, first.control):
        mine = {number for number in mine if (number >= FILES["P"]) == (part == "predicate")}
    kinds = []
    if part in ("result", "predicate"):
        if mine & set(used.read):
            kinds.append("read")
        if mine & set(used.written) and not _free(table, "overwrite", first, step):
            kinds.append("overwrite")
    elif part == "sources":
        unit = SOURCE_UNIT.get(first.instruction.base)
        counts = {first.control.write, first.control.read} != {NONE}
        early = unit is not None or (first.instruction.base == "SYNCS" and not counts)
        end = FILES["UR"] if early else FILES["P"]
        sources = {number for number in first.registers.read if number < end}
        if sources & set(used.written) and not _free(table, "source", first, step):
            kinds.append("source")
    elif base in MEMORY:
        kinds.append("fence")
    return kinds


def _free(table: Table, kind: str, first: Step, step: Step) -> bool:
    left, right = first.instruction.base, step.instruction.base
    if kind == "source" and (left in TEXTURE) == (right in TEXTURE):
        unit = SOURCE_UNIT.get(left)
        if unit is not None and unit == SOURCE_UNIT.get(right):
            return True
    if kind == "overwrite" and left == right == "LDS":
        return True
    return left in table.free.get(kind, {}).get(right, frozenset())


def _passed(first: Step, step: Step, part: str) -> int:
    """Scoreboards of an instruction whose count tells that what is under way is through."""
    base, control = step.instruction.base, step.control
    units = RESULT_UNIT if part == "result" else SOURCE_UNIT
    unit = units.get(first.instruction.base)
    if part in ("fence", "predicate") or unit is None or units.get(base) != unit:
        return 0
    if (first.control.write if part == "result" else first.control.read) != NONE:
        return 0  # it has a scoreboard of its own
    scoreboards = {control.write} if part == "result" else {control.write, control.read}
    return sum(1 << scoreboard for scoreboard in scoreboards - {NONE})


def _after(flow: Flow, what: Under, state: State, own: set[int]) -> list[State]:
    """Where the walk goes on behind an instruction."""
    at, passed, intact = state
    first = flow.steps[what.first]
    block = next(block for block in flow.blocks if block.first <= at < block.last)
    if at + 1 < block.last:
        return [(at + 1, passed, intact)]
    after = [flow.blocks[number].first for number in block.next]
    instruction = flow.steps[at].instruction
    guard, held = instruction.guard, first.instruction.guard
    plain = instruction.base == "BRA" and len(instruction.operands) == 1 and len(after) == 2
    if intact and plain and guard and held and guard[:2] == held[:2]:
        # The branch is taken exactly if its guard is the one that held.
        after = after[:1] if guard == held else after[1:]
    if block.over:
        # Past the callee, if it does not wait for what is under way.
        number, waits = block.over
        if not any(bit in own or passed >> bit & 1 for bit in waits):
            after.append(flow.blocks[number].first)
    for number, callee in block.back:
        # Out of the callee goes what began in it; the rest went past it.
        blocks = [flow.blocks[inner] for inner in flow.callees[callee]]
        if any(inner.first <= what.first < inner.last for inner in blocks):
            after.append(flow.blocks[number].first)
    return [(number, passed, intact) for number in after]
