"""The control flow of a function: basic blocks and who follows whom."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from hazards.cubins import Function
from hazards.errors import Unfollowed
from hazards.operands import Registers, registers
from hazards.sass import Decoder, Instruction
from hazards.words import NONE, SCOREBOARDS, SIZE, Control, control, encodings

# After these, when they are not guarded, the next instruction does not run.
ENDS = frozenset({"EXIT", "RET", "BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "KILL", "RTT"})
INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})


@dataclass(frozen=True)
class Step:
    """One instruction of a function, with all that the checks ask of it."""

    at: int  # bytes
    instruction: Instruction
    registers: Registers
    control: Control


@dataclass
class Block:
    """Instructions `first` to `last` - 1, which run one after the other."""

    first: int
    last: int
    next: list[int] = field(default_factory=list)
    over: tuple[int, frozenset[int]] | None = (
        None  # behind a call: block, what the callee waits for
    )
    back: list[tuple[int, int]] = field(
        default_factory=list
    )  # from a return: block, number of callee


@dataclass
class Flow:
    """A function: its instructions, its blocks, and for each instruction the block that it
    begins."""

    name: str
    steps: list[Step]
    blocks: list[Block]
    entries: list[int]
    callees: dict[int, set[int]]  # entry of a function that is called here -> its blocks
    outer: set[int]  # blocks of functions that others may call, or the driver


class UnknownTargets(Unfollowed):
    """An indirect branch whose targets no attribute names."""


_registers: dict[Instruction, Registers] = {}


def _of(instruction: Instruction) -> Registers:
    found = _registers.get(instruction)
    if found is None:
        found = _registers[instruction] = registers(instruction)
    return found


def conditional(instruction: Instruction) -> bool:
    """Whether the instruction behind a branch may run next."""
    if instruction.guard is not None:
        return True
    if instruction.base == "BRA":
        return len(instruction.operands) > 1
    return False


def build(function: Function, decoder: Decoder) -> Flow:
    """The flow of a function; the decoder has to know its instructions.

    Raises Unfollowed for code of which nothing can be said.
    """
    steps = []
    for index, encoding in enumerate(encodings(function.code)):
        instruction = decoder[encoding]
        word = control(encoding)
        if not {word.write, word.read} <= {*SCOREBOARDS, NONE}:
            text = f"{function.name}+{index * SIZE:#x}: scoreboard of '{instruction.text}'"
            raise Unfollowed(text)
        steps.append(Step(index * SIZE, instruction, _of(instruction), word))
    count = len(steps)
    targets: dict[int, list[int]] = {}  # of jumps
    leaders = {at // SIZE for at in function.entries if at // SIZE < count}
    entries = set(leaders)
    calls: dict[int, int] = {}  # instruction -> the callee, if it is in this section
    for index, step in enumerate(steps):
        instruction = step.instruction
        base = instruction.base
        if base in INDIRECT:
            known = function.indirect.get(step.at)
            if known is None:
                raise UnknownTargets(f"{function.name}+{step.at:#x}: {instruction.text}")
            targets[index] = sorted({at // SIZE for at in known})
        elif base in ("BRA", "JMP") and instruction.distance is not None:
            targets[index] = [index + instruction.distance // SIZE]
        elif base == "CALL" and instruction.distance is not None:
            callee = index + instruction.distance // SIZE
            if 0 <= callee < count and instruction.distance:
                leaders.add(callee)
                calls[index] = callee
        if index in targets:
            targets[index] = [at for at in targets[index] if 0 <= at < count]
            leaders.update(targets[index])
        if base in ENDS or index in targets or index in calls:
            leaders.add(index + 1)
    order = sorted(at for at in leaders if at < count)
    blocks = [Block(a, b) for a, b in itertools.pairwise([*order, count])]
    number = {block.first: at for at, block in enumerate(blocks)}
    for block in blocks:
        last = block.last - 1
        instruction = steps[last].instruction
        block.next = [number[target] for target in targets.get(last, ())]
        ends = instruction.base in ENDS and not conditional(instruction)
        after = number.get(block.last)
        if last in calls:
            block.next.append(number[calls[last]])
            if after is not None:
                block.over = (after, frozenset())
            ends = instruction.guard is None
        if not ends and after is not None:
            block.next.append(after)
    found = Flow(function.name, steps, blocks, sorted(number[at] for at in entries), {}, set())
    _connect(found, {number[callee] for callee in calls.values()})
    return found


def _inside(flow: Flow, entry: int) -> set[int]:
    """Blocks of the function that begins with a block; those of functions that it calls are not."""
    found, work = {entry}, [entry]
    while work:
        block = flow.blocks[work.pop()]
        after = [block.over[0], *block.next[1:]] if block.over else block.next
        for number in after:
            if number not in found:
                found.add(number)
                work.append(number)
    return found


def _connect(flow: Flow, callees: set[int]) -> None:
    """Lead returns back to where their function is called; say for what calls wait."""
    flow.callees = {entry: _inside(flow, entry) for entry in callees}
    for entry in flow.entries:
        if entry not in callees or entry == 0:
            flow.outer |= _inside(flow, entry)
    for block in flow.blocks:
        if block.over is None:
            continue
        callee = block.next[0]
        after = block.over[0]
        block.over = (after, _always(flow, callee))
        for number in flow.callees[callee]:
            inner = flow.blocks[number]
            if flow.steps[inner.last - 1].instruction.base == "RET":
                inner.back.append((after, callee))


def _always(flow: Flow, entry: int) -> frozenset[int]:
    """Scoreboards that a function waits for on all paths to its returns."""
    everything = frozenset(range(6))
    inside = flow.callees[entry]
    known = dict.fromkeys(inside, everything)
    known[entry] = frozenset()
    result, changed = everything, True
    while changed:
        changed = False
        result = everything
        for number in inside:
            block = flow.blocks[number]
            mask = 0
            for step in flow.steps[block.first : block.last]:
                mask |= step.control.wait
            waits = known[number] | {bit for bit in range(6) if mask >> bit & 1}
            if flow.steps[block.last - 1].instruction.base == "RET":
                result &= waits
            after = [block.over[0], *block.next[1:]] if block.over else block.next
            for other in after:
                if other in known and not known[other] <= waits:
                    known[other] &= waits
                    changed = True
    return result
