"""Turning one instruction into a Python function: its operands read, its results written.

A table of a module in `semantics` names a builder for each opcode. The builder takes modifiers and
operands from a `Build` until none is left, and returns a function of the fragment that executes it.
What a builder does not take is unknown, and the instruction is refused by name: no modifier and no
operand is ever ignored by oversight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from emulator.decode import Instruction
from emulator.errors import Unsupported
from emulator.lanes import (
    ALL,
    FALSE,
    TRUE,
    ZERO_ROW,
    Double,
    Flags,
    Row,
    Single,
    Wide,
    high_word,
    low_word,
    row,
    wide,
)
from emulator.machine import Fragment
from emulator.operands import ZERO, Constant, Float, Immediate, Operand, Register, Special

Get = Callable[[Fragment], Row]
GetWide = Callable[[Fragment], Wide]
GetSingle = Callable[[Fragment], Single]
GetDouble = Callable[[Fragment], Double]
GetFlags = Callable[[Fragment], Flags]
Put = Callable[[Fragment, Row], None]
PutWide = Callable[[Fragment, Wide], None]
PutFlags = Callable[[Fragment, Flags], None]

_SIGN = np.uint32(1 << 31)
_MAGNITUDE = np.uint32((1 << 31) - 1)
_SIGN64 = np.uint64(1 << 63)
_MAGNITUDE64 = np.uint64((1 << 63) - 1)

T = TypeVar("T")


class Build:
    """The instruction at hand with what of it has not been taken yet."""

    def __init__(self, instruction: Instruction) -> None:
        self.instruction = instruction
        self.modifiers = list(instruction.modifiers)
        self.operands = list(instruction.operands)
        self.touched = 0  # the highest register plus one
        self.writes_stack_pointer = False

    def unsupported(self, what: str) -> Unsupported:
        """The error that names the instruction."""
        instruction = self.instruction
        return Unsupported(f"{what} of '{instruction.text}' ({instruction.encoding:#034x})")

    def finish(self) -> None:
        """Refuse the instruction if anything of it was not taken."""
        if self.modifiers:
            raise self.unsupported(f"modifier '{self.modifiers[0]}'")
        if self.operands:
            raise self.unsupported(f"operand {self.operands[0]}")

    # Modifiers.

    def take(self, *names: str) -> bool:
        """Whether one of the modifiers is there; it is taken."""
        for name in names:
            if name in self.modifiers:
                self.modifiers.remove(name)
                return True
        return False

    def choose(self, choices: Mapping[str, T], default: T) -> T:
        """What the first modifier that is a key stands for."""
        for name in self.modifiers:
            if name in choices:
                self.modifiers.remove(name)
                return choices[name]
        return default

    def need(self, choices: Mapping[str, T]) -> T:
        """As `choose`, where one has to be there."""
        for name in self.modifiers:
            if name in choices:
                self.modifiers.remove(name)
                return choices[name]
        raise self.unsupported("missing modifier")

    # Operands, in order.

    def next(self) -> Operand:
        if not self.operands:
            raise self.unsupported("missing operand")
        return self.operands.pop(0)

    def next_is_predicate(self) -> bool:
        """Whether the next operand is a predicate."""
        return bool(self.operands) and is_predicate(self.operands[0])

    # Destinations.

    def put(self, part: int = 0, operand: Operand | None = None) -> Put:
        """Writes a row to the register that is the next operand, or `part` registers above it."""
        operand = self.next() if operand is None else operand
        if not isinstance(operand, Register) or operand.signs or operand.suffixes:
            raise self.unsupported(f"destination {operand}")
        if operand.number == ZERO:
            return _drop
        number = operand.number + part
        if operand.file == "UR":

            def put_uniform(f: Fragment, value: Row) -> None:
                f.U[number] = value

            return put_uniform
        if operand.file != "R":
            raise self.unsupported(f"destination {operand}")
        self.touched = max(self.touched, number + 1)
        if number == 1:
            self.writes_stack_pointer = True

        def put(f: Fragment, value: Row) -> None:
            f.R[number] = value if f.full else np.where(f.mask, value, f.R[number])

        return put

    def put_wide(self, operand: Operand | None = None) -> PutWide:
        """Writes 64-bit values to a pair of registers."""
        operand = self.next() if operand is None else operand
        low, high = self.put(0, operand), self.put(1, operand)

        def put(f: Fragment, value: Wide) -> None:
            low(f, low_word(value))
            high(f, high_word(value))

        return put

    def put_flags(self, operand: Operand | None = None) -> PutFlags:
        """Writes the predicate that is the next operand."""
        operand = self.next() if operand is None else operand
        if not isinstance(operand, Register) or not is_predicate(operand) or operand.signs:
            raise self.unsupported(f"destination {operand}")
        number = operand.number
        if number == ZERO:
            return _drop_flags
        if operand.file == "UP":

            def put_uniform(f: Fragment, value: Flags) -> None:
                f.UP[number] = value

            return put_uniform

        def put(f: Fragment, value: Flags) -> None:
            f.P[number] = value if f.full else np.where(f.mask, value, f.P[number])

        return put

    # Sources.

    def plain(self, operand: Register, part: int = 0) -> Get:
        """The row of a register, without regard to signs and suffixes."""
        if operand.number == ZERO:
            return _zero
        number = operand.number + part
        if operand.file == "UR":
            return lambda f: f.U[number]
        if operand.file != "R":
            raise self.unsupported(f"operand {operand}")
        self.touched = max(self.touched, number + 1)
        return lambda f: f.R[number]

    def bits(self, operand: Operand | None = None, part: int = 0, *, fill: bool = True) -> Get:
        """The 32 bits of an operand, `part` words above its first; signs are left to the caller.

        An integer immediate is extended by its sign where `fill`, else by zeros.
        """
        operand = self.next() if operand is None else operand
        if isinstance(operand, Register):
            return self.plain(operand, part)
        if isinstance(operand, Immediate) and not operand.relative:
            value = operand.value >> 32 * part if fill or not part else 0
            return _constant(row(value))
        if isinstance(operand, Float) and not part:
            return _constant(row(self.instruction.encoding >> 32))
        if isinstance(operand, Constant):
            return self.constant(operand, part)
        raise self.unsupported(f"operand {operand}")

    def constant(self, operand: Constant, part: int = 0) -> Get:
        """One word of a constant bank, which is read when the instruction runs."""
        bank, offset = operand.bank, operand.offset + 4 * part
        if not isinstance(bank, int):
            raise self.unsupported(f"operand {operand}")
        if operand.index is None:
            offset &= 0xFFFF  # nvdisasm writes those of the upper half of a bank as negative
            if offset % 4:
                raise self.unsupported(f"operand {operand}")
            word = offset // 4
            return lambda f: f.warp.block.grid.constant(bank, word)
        index = self.plain(operand.index)

        def get(f: Fragment) -> Row:
            return f.warp.block.grid.gather(bank, index(f) + np.uint32(offset & ALL), f)

        return get

    def integer(self, operand: Operand | None = None) -> Get:
        """A 32-bit integer with its sign: -x is the two's complement, ~x the inverse."""
        operand = self.next() if operand is None else operand
        get, signs = self.bits(operand), signs_of(operand)
        self._no_suffixes(operand)
        if not signs:
            return get
        if signs == "-":
            return lambda f: np.negative(get(f))
        if signs == "~":
            return lambda f: np.invert(get(f))
        if signs == "|":
            return lambda f: np.abs(get(f).view(np.int32)).view(np.uint32)
        raise self.unsupported(f"operand {operand}")

    def integer_wide(self, operand: Operand | None = None) -> GetWide:
        """A 64-bit integer: a pair of registers, two words of a bank, or an extended immediate."""
        operand = self.next() if operand is None else operand
        low, high, signs = self.bits(operand), self.bits(operand, 1), signs_of(operand)
        self._no_suffixes(operand, "64")
        if not signs:
            return lambda f: wide(low(f), high(f))
        if signs == "-":
            return lambda f: np.negative(wide(low(f), high(f)))
        if signs == "~":
            return lambda f: np.invert(wide(low(f), high(f)))
        raise self.unsupported(f"operand {operand}")

    def single(self, operand: Operand | None = None) -> GetSingle:
        """A float with its signs: absolute value first, then the negative."""
        operand = self.next() if operand is None else operand
        get, signs = self.bits(operand), signs_of(operand)
        self._no_suffixes(operand)
        if isinstance(operand, Float | Immediate) or not signs:
            return lambda f: get(f).view(np.float32)
        if signs == "-":
            return lambda f: (get(f) ^ _SIGN).view(np.float32)
        if signs == "|":
            return lambda f: (get(f) & _MAGNITUDE).view(np.float32)
        if signs == "-|":
            return lambda f: (get(f) | _SIGN).view(np.float32)
        raise self.unsupported(f"operand {operand}")

    def double(self, operand: Operand | None = None) -> GetDouble:
        """A double with its signs; an immediate is the upper half of one."""
        operand = self.next() if operand is None else operand
        if isinstance(operand, Float):
            value = np.array([self.instruction.encoding >> 32 & ALL], np.uint64) << np.uint64(32)
            return lambda f: value.view(np.float64)
        self._no_suffixes(operand, "64")
        low, high, signs = self.bits(operand), self.bits(operand, 1), signs_of(operand)
        if not signs:
            return lambda f: wide(low(f), high(f)).view(np.float64)
        if signs == "-":
            return lambda f: (wide(low(f), high(f)) ^ _SIGN64).view(np.float64)
        if signs == "|":
            return lambda f: (wide(low(f), high(f)) & _MAGNITUDE64).view(np.float64)
        if signs == "-|":
            return lambda f: (wide(low(f), high(f)) | _SIGN64).view(np.float64)
        raise self.unsupported(f"operand {operand}")

    def flags(self, operand: Operand | None = None) -> GetFlags:
        """A predicate, inverted where it has a '!'."""
        operand = self.next() if operand is None else operand
        if not isinstance(operand, Register) or not is_predicate(operand):
            raise self.unsupported(f"operand {operand}")
        return flags_of(operand)

    def number(self, operand: Operand | None = None) -> int:
        """An integer immediate."""
        operand = self.next() if operand is None else operand
        if not isinstance(operand, Immediate) or operand.relative:
            raise self.unsupported(f"operand {operand}")
        return operand.value

    def special(self) -> str:
        """The name of a special register."""
        operand = self.next()
        if not isinstance(operand, Special):
            raise self.unsupported(f"operand {operand}")
        return operand.name

    def _no_suffixes(self, operand: Operand, *allowed: str) -> None:
        if isinstance(operand, Register | Constant) and not set(operand.suffixes) <= set(allowed):
            raise self.unsupported(f"operand {operand}")


def is_predicate(operand: Operand) -> bool:
    return isinstance(operand, Register) and operand.file in ("P", "UP")


def signs_of(operand: Operand) -> str:
    return operand.signs if isinstance(operand, Register | Constant) else ""


def flags_of(operand: Register) -> GetFlags:
    """What a predicate is, with its '!'."""
    number, inverted = operand.number, operand.signs == "!"
    if number == ZERO:
        value = FALSE if inverted else TRUE
        return lambda f: value
    if operand.file == "UP":
        if inverted:
            return lambda f: ~f.UP[number]
        return lambda f: f.UP[number]
    if inverted:
        return lambda f: ~f.P[number]
    return lambda f: f.P[number]


def _constant(value: Row) -> Get:
    return lambda f: value


def _zero(_f: Fragment) -> Row:
    return ZERO_ROW


def _drop(_f: Fragment, _value: Row) -> None:
    pass


def _drop_flags(_f: Fragment, _value: Flags) -> None:
    pass
