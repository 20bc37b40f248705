"""Code of a loaded executable, block by block, as Python functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from emulator.build import Build
from emulator.decode import Instruction
from emulator.errors import Unsupported
from emulator.load import Loaded
from emulator.machine import Step
from emulator.operands import Immediate, Target
from emulator.semantics.convergence import End
from emulator.semantics.table import ENDS, OPCODES
from emulator.wrapping import guarded, stack_watched

# A block ends here at the latest, so that a loop without a jump cannot hide.
_LONGEST = 256


@dataclass(frozen=True)
class CodeBlock:
    """Instructions that run one after the other, and the one that says where to go on.

    `touched` is the highest register plus one.
    """

    steps: tuple[Step, ...]
    end: End
    count: int
    touched: int
    instructions: tuple[Instruction, ...]


class Program:
    """The blocks of one executable, made when they are first reached."""

    # By architecture and encoding: most instructions do the same wherever they are.
    _steps: ClassVar[dict[tuple[str, int], tuple[Step, int]]] = {}

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        loaded.decoder.learn([bytes(loaded.code)])
        self.blocks: dict[int, CodeBlock] = {}

    def block(self, address: int) -> CodeBlock:
        """The block that begins at an address."""
        found = self.blocks.get(address)
        if found is None:
            found = self.blocks[address] = self._make(address)
        return found

    def _make(self, address: int) -> CodeBlock:
        steps: list[Step] = []
        instructions: list[Instruction] = []
        touched = 0
        while True:
            instruction = self.loaded.instruction(address)
            instructions.append(instruction)
            if instruction.opcode in ENDS:
                b = Build(instruction)
                end = ENDS[instruction.opcode](b)
                b.finish()
                touched = max(touched, b.touched)
                break
            step, used = self._step(instruction)
            steps.append(step)
            touched = max(touched, used)
            address += 16
            if len(steps) == _LONGEST:
                end = _fall_through(address)
                break
        return CodeBlock(tuple(steps), end, len(instructions), touched, tuple(instructions))

    def _step(self, instruction: Instruction) -> tuple[Step, int]:
        key = (self.loaded.arch, instruction.key)
        found = self._steps.get(key)
        if found is None:
            found = make_step(instruction)
            if not _is_relative(instruction):
                self._steps[key] = found
        return found


def make_step(instruction: Instruction) -> tuple[Step, int]:
    """The function of an instruction that runs on, and its highest register plus one.

    Unsupported names the instruction if anything of it is not known.
    """
    builder = OPCODES.get(instruction.opcode)
    if builder is None:
        raise Unsupported(f"opcode of '{instruction.text}' ({instruction.encoding:#034x})")
    b = Build(instruction)
    step = builder(b)
    b.finish()
    if b.writes_stack_pointer:
        step = stack_watched(step)
    if instruction.guard is not None:
        step = guarded(instruction.guard, step)
    return step, b.touched


def _is_relative(instruction: Instruction) -> bool:
    return instruction.opcode == "LEPC" or any(
        isinstance(operand, Immediate | Target) and operand.relative
        for operand in instruction.operands
    )


def _fall_through(address: int) -> End:
    return lambda f: address
