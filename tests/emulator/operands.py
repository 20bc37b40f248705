"""Operands of SASS as nvdisasm prints them, parsed into one small type for each form."""

from __future__ import annotations

import re
from dataclasses import dataclass

from emulator.errors import Unsupported

# The register that reads as zero, and the predicate that reads as true.
ZERO = -1


@dataclass(frozen=True, slots=True)
class Register:
    """A register. `file` is R, UR, P, UP, B or SB; `number` is ZERO for RZ, URZ, PT and UPT.

    `signs` are the characters in front of it, in order: '-', '~', '!' and '|' (absolute value).
    `suffixes` are what follows it, such as 64, H0_H0 or X4.
    """

    file: str
    number: int
    signs: str = ""
    suffixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Immediate:
    """An integer; `relative` says that it is a distance from the next instruction."""

    value: int
    relative: bool = False


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point immediate: its text; the bits are in the encoding, from bit 32 on."""

    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    """c[bank][offset]: the bank is a number or, for a handle, a uniform register."""

    bank: int | Register
    index: Register | None
    offset: int
    signs: str = ""
    suffixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """[register + uniform register + offset], with the descriptor in front of it, if any."""

    base: Register | None
    uniform: Register | None
    offset: int
    descriptor: Register | None = None
    suffixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """A register with a distance, as indirect jumps have it; `relative` as in Immediate."""

    register: Register
    offset: int
    relative: bool = False


@dataclass(frozen=True, slots=True)
class Special:
    """A name: a special register such as SR_TID.X, SRZ, or PR for all predicates."""

    name: str


Operand = Register | Immediate | Float | Constant | Address | Target | Special

_REGISTER = re.compile(r"([-~!]*)(\|?)(UR|R|UP|P|B|SB)(Z|T|\d+)((?:\.\w+)*)(\|?)((?:\.\w+)*)$")
_INTEGER = re.compile(r"-?0x[0-9a-f]+$")
_FLOAT = re.compile(r"[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|INF|QNAN|SNAN)$")
_CONSTANT = re.compile(
    r"([-~]*)(\|?)cx?\[(0x[0-9a-f]+|UR\d+|URZ)\]\s*\[([^]]*)\]\|?((?:\.\w+)*)\|?$"
)
_ADDRESS = re.compile(r"(?:g?desc\[(\w+)\])?\[([^]]*)\]((?:\.\w+)*)$")
_TARGET = re.compile(r"(U?R(?:Z|\d+))\s+(-?0x[0-9a-f]+)$")
_SPECIAL = re.compile(r"SR\w*(?:\.\w+)?$|PR$")
_TERM = re.compile(r"([-+]*)([^-+]+)")


def parse(text: str) -> Operand:
    """The operand that nvdisasm prints as `text`; Unsupported when no form fits."""
    text = text.strip()
    if found := _register(text):
        return found
    if _INTEGER.match(text):
        return Immediate(int(text, 16))
    if _FLOAT.match(text):
        return Float(text)
    if match := _CONSTANT.match(text):
        return _constant(match)
    if match := _ADDRESS.match(text):
        return _address(match)
    if match := _TARGET.match(text):
        return Target(_need_register(match[1]), int(match[2], 16))
    if _SPECIAL.match(text):
        return Special(text)
    raise Unsupported(f"operand '{text}'")


def split(text: str) -> list[str]:
    """The operands of one instruction; commas within brackets do not separate."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character in "[{(":
            depth += 1
        elif character in "]})":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    if text[start:].strip():
        parts.append(text[start:])
    return parts


def _register(text: str) -> Register | None:
    match = _REGISTER.match(text)
    if not match:
        return None
    signs, absolute, file, number, inner, _, outer = match.groups()
    suffixes = tuple(part for part in (inner + outer).split(".") if part and part != "reuse")
    return Register(file, ZERO if number in "ZT" else int(number), signs + absolute, suffixes)


def _need_register(text: str) -> Register:
    found = _register(text)
    if found is None:
        raise Unsupported(f"operand '{text}'")
    return found


def _sum(text: str) -> tuple[list[Register], int]:
    """Registers and the sum of the numbers in what stands between brackets."""
    registers, offset = [], 0
    for signs, term in _TERM.findall(text.replace(" ", "")):
        if term[0] in "RU":
            if "-" in signs:
                raise Unsupported(f"address '{text}'")
            registers.append(_need_register(term))
        else:
            offset += int(term, 16) * (-1 if "-" in signs else 1)
    return registers, offset


def _constant(match: re.Match[str]) -> Constant:
    signs, absolute, bank, inner, suffixes = match.groups()
    registers, offset = _sum(inner)
    if len(registers) > 1:
        raise Unsupported(f"operand '{match[0]}'")
    return Constant(
        _need_register(bank) if bank.startswith("U") else int(bank, 16),
        registers[0] if registers else None,
        offset,
        signs + absolute,
        tuple(part for part in suffixes.split(".") if part and part != "reuse"),
    )


def _address(match: re.Match[str]) -> Address:
    descriptor, inner, suffixes = match.groups()
    registers, offset = _sum(inner)
    base = next((register for register in registers if register.file == "R"), None)
    uniform = next((register for register in registers if register.file == "UR"), None)
    if len(registers) != (base is not None) + (uniform is not None):
        raise Unsupported(f"address '{match[0]}'")
    return Address(
        base,
        uniform,
        offset,
        _need_register(descriptor) if descriptor else None,
        tuple(part for part in suffixes.split(".") if part),
    )
