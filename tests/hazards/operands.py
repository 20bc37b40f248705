"""Which registers and predicates an instruction reads and writes.

The text of nvdisasm names the first register of each operand; how many follow depends on the
instruction. What is said here was compared with the life ranges that nvdisasm prints
(`test_operands` does so again). Registers have numbers of one range: see `register`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hazards.errors import Unfollowed
from hazards.sass import Instruction
from hazards.widths import (
    COMPARES,
    DIMENSIONS,
    PREDICATES_BEFORE,
    PREDICATES_BEHIND,
    READS_ONLY,
    SHAPES,
    TEXTURES,
)

# First numbers of general, uniform, predicate and uniform predicate registers.
FILES = {"R": 0, "UR": 256, "P": 512, "UP": 520}
COUNT = 528
NAME = re.compile(r"(?<![\w.])(UR|UP|R|P)(\d+)((?:\.\w+)*)")
DESTINATION = re.compile(r"^(UR|UP|R|P)(\d+|Z|T)(\.\w+)*$")
PREDICATES = tuple(range(FILES["P"], FILES["P"] + 7))


class UnknownOperands(Unfollowed):
    """An instruction of which is not known how many registers it reads or writes."""


@dataclass(frozen=True)
class Registers:
    """Numbers of what is read and written, the guard among the former; in `guard` it is alone."""

    read: tuple[int, ...]
    written: tuple[int, ...]
    guard: tuple[int, ...]


def register(name: str) -> int:
    """The number of R12, UR4, P0 or UP3."""
    file = name.rstrip("0123456789")
    return FILES[file] + int(name[len(file) :])


def name(number: int) -> str:
    """The name of a number of `register`."""
    for file, first in reversed(FILES.items()):
        if number >= first:
            return f"{file}{number - first}"
    raise ValueError(number)


def registers(instruction: Instruction) -> Registers:
    """What an instruction reads and writes; UnknownOperands if its text is of no known form."""
    try:
        found = _registers(instruction)
    except (ValueError, IndexError) as error:
        raise UnknownOperands(instruction.text) from error
    if any(not 0 <= number < COUNT for number in (*found.read, *found.written)):
        raise UnknownOperands(instruction.text)
    return found


def _registers(instruction: Instruction) -> Registers:
    operands = list(instruction.operands)
    count = _destinations(instruction)
    read: set[int] = set()
    written: set[int] = set()
    guard: tuple[int, ...] = ()
    if instruction.guard:
        file, index, _ = instruction.guard
        guard = (FILES[file] + index,)
        read.update(guard)
    for at, operand in enumerate(operands[:count]):
        for file, digits, _ in NAME.findall(operand):
            first = FILES[file] + int(digits)
            written.update(range(first, first + _written(instruction, file, at)))
    sources = operands[count:]
    for at, operand in enumerate(sources):
        _add_sources(instruction, operand, at, len(sources), read)
    if instruction.base == "R2P":
        written.update(_mask(operands, -1))
    if instruction.base == "P2R":
        read.update(_mask(operands, -1))
    return Registers(tuple(sorted(read)), tuple(sorted(written)), guard)


def _mask(operands: list[str], at: int) -> set[int]:
    """The predicates that the mask of P2R and R2P selects."""
    try:
        mask = int(operands[at], 16)
    except ValueError:
        mask = 0x7F
    return {number for bit, number in enumerate(PREDICATES) if mask >> bit & 1}


def _destinations(instruction: Instruction) -> int:
    """How many of the operands are written."""
    base, mods, operands = instruction.base, instruction.mods, instruction.operands
    if base in READS_ONLY:
        return 0
    before, behind = PREDICATES_BEFORE.get(base, 0), PREDICATES_BEHIND.get(base, 0)
    count = _predicates(operands, 0, before)
    if base in COMPARES:
        return count
    if count < len(operands) and _is(operands[count], "R"):
        count += 1
        two = base in TEXTURES or (base in ("LDG", "LD") and "256" in mods)
        if two and count < len(operands) and _is(operands[count], "R"):
            count += 1
        count = _predicates(operands, count, behind)
    elif base in ("VOTE", "VOTEU", "BMOV"):
        count = _predicates(operands, count, 1)
    return count


def _predicates(operands: tuple[str, ...], start: int, most: int) -> int:
    """Where up to `most` predicates that may be written end."""
    count = start
    while count < min(start + most, len(operands)) and _is(operands[count], "P"):
        count += 1
    return count


def _is(operand: str, file: str) -> bool:
    found = DESTINATION.match(operand)
    return found is not None and found[1].endswith(file)


def _memory_width(mods: tuple[str, ...]) -> int:
    """Registers of the value that a load, store or atomic moves."""
    for mod, width in (("256", 4), ("128", 4), ("64", 2), ("S64", 2), ("U64", 2), ("F64", 2)):
        if mod in mods:
            return width
    return 1


def _product(instruction: Instruction) -> tuple[int, ...] | None:
    """Registers of the operands of a matrix product, or None if this is something else."""
    base, mods = instruction.base, instruction.mods
    if base not in ("HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "OMMA"):
        return None
    for mod in mods:
        if widths := SHAPES.get((base, mod)):
            result, first, second, third = widths
            break
    else:
        raise UnknownOperands(f"shape of {instruction.name}")
    if base in ("HMMA", "QMMA") and "F32" not in mods and result == 4:
        result = third = 2
    if base == "HMMA" and "TF32" in mods and "1688" in mods:
        first, second = 4, 2
    if base == "IMMA" and "16832" in mods and ("S4" in mods or "U4" in mods):
        first, second = 2, 1
    if "SP" in mods:
        first = max(first // 2, 1) if second == first else first
    return result, first, second, third


def _written(instruction: Instruction, file: str, at: int) -> int:
    """How many registers a destination has."""
    base, mods = instruction.base, instruction.mods
    if file.endswith("P"):
        return 1
    if widths := _product(instruction):
        return widths[0]
    if base in ("DADD", "DMUL", "DFMA", "DMNMX"):
        return 2
    if base in ("LDG", "LDS", "LDL", "LD", "LDC", "LDCU", "ULDC", "ATOMG", "ATOM", "ATOMS"):
        if base.startswith("ATOM") and "CAST" in mods:
            return 1
        return _memory_width(mods)
    if base in ("IMAD", "UIMAD"):
        return 2 if "WIDE" in mods else 1
    if base == "LDSM":
        return int(mods[-1]) if mods[-1].isdigit() else 1
    if base in ("CS2R", "CS2UR"):
        return 1 if "32" in mods else 2
    if base in ("I2F", "F2F", "F2I", "FRND", "I2I"):
        return 2 if _converted(instruction)[0] == 64 else 1
    if base in TEXTURES:
        return _fetched(instruction, at)
    if base in ("FADD2", "FMUL2", "FFMA2", "LEPC", "IADD.64", "MOV.64", "UMOV.64"):
        return 2
    if base in ("S2R", "S2UR") and "64" in mods:
        return 2
    if base in ("IMNMX", "VIMNMX", "UIMNMX") and ("S64" in mods or "U64" in mods):
        return 2
    if "64" in mods and base in (
        "IADD",
        "UIADD3",
        "IADD3",
        "MOV",
        "UMOV",
        "SEL",
        "USEL",
        "R2UR",
        "UIADD",
    ):
        return 2
    return 1


def _converted(instruction: Instruction) -> tuple[int, int]:
    """Bits of what a conversion writes and of what it reads."""
    types = [
        mod for mod in instruction.mods if mod[:1] in "FSUB" and mod.lstrip("FSUB")[:2].isdigit()
    ]
    bits = [int(re.sub(r"\D.*", "", mod.lstrip("FSUB"))) for mod in types]
    if instruction.base == "FRND":
        return (bits[0], bits[0]) if bits else (32, 32)
    # I2F and F2I leave out what is of 32 bits.
    if instruction.base == "I2F":
        to = next((b for b, t in zip(bits, types, strict=True) if t[0] in "FB"), 32)
        of = next((b for b, t in zip(bits, types, strict=True) if t[0] in "SU"), 32)
    elif instruction.base == "F2I":
        to = next((b for b, t in zip(bits, types, strict=True) if t[0] in "SU"), 32)
        of = next((b for b, t in zip(bits, types, strict=True) if t[0] in "FB"), 32)
    else:
        to, of = bits[0], bits[1] if len(bits) > 1 else bits[0]
    return to, of


def _add_sources(
    instruction: Instruction, operand: str, at: int, count: int, read: set[int]
) -> None:
    """Add what one source operand, the `at`th of `count`, reads."""
    memory = "[" in operand
    for file, digits, suffix in NAME.findall(operand):
        first = FILES[file] + int(digits)
        width = 1
        if file in ("R", "UR"):
            if memory:
                width = _address(instruction, operand, file, digits, suffix)
            else:
                width = _source(instruction, file, at, count, suffix)
        read.update(range(first, first + width))


def _fetched(instruction: Instruction, at: int) -> int:
    """Registers of either result of a texture fetch: two each, unless a mask says less."""
    last = instruction.operands[-1]
    mask = int(last, 16) if last.startswith("0x") else 15
    count = (mask & 15).bit_count()
    return min(2, count) if at else max(count - 2, 1)


def _coordinates(instruction: Instruction, at: int) -> int:
    """Registers of the sources of a texture fetch.

    Of the layout SCR the first operand has the first two of all values, the second the others;
    where there are two in all, each has one. Else the first has the coordinates.
    """
    mods = instruction.mods
    count = next((DIMENSIONS[word] for word in instruction.operands if word in DIMENSIONS), 2)
    if instruction.base == "TXD":
        return count if at == 0 else 2 * min(count, 2)
    if "SCR" not in mods:
        return count if at == 0 else 1
    count += sum(mod in mods for mod in ("LL", "LB", "DC", "AOFFI"))
    if at == 0:
        return 1 if count <= 2 else 2
    return max(1, count - 2)


def _address(instruction: Instruction, operand: str, file: str, digits: str, suffix: str) -> int:
    """Registers of an address: `[R2.64+UR4]`, `desc[UR4][R2.64]`, `c[0x3][R4]`, `cx[UR4][0x8]`."""
    if ".64" in suffix:
        return 2
    narrow = instruction.base == "LDGSTS"  # [R2] is in shared memory, and sm_75 has none
    if file == "R" and "E" in instruction.mods and not suffix and "UR" not in operand:
        return 1 if narrow else 2  # sm_75 does not print .64
    if file == "UR":
        if f"desc[UR{digits}]" in operand or f"cx[UR{digits}]" in operand:
            return 2
        # Beside a general register of 32 bits stands an address of 64.
        if instruction.base in (
            "LDG",
            "STG",
            "LD",
            "ST",
            "ATOMG",
            "ATOM",
            "RED",
            "REDG",
            "LDGSTS",
            "CCTL",
        ):
            return 2
        if "gdesc[" in operand:
            return 4
    return 1


def _source(instruction: Instruction, file: str, at: int, count: int, suffix: str) -> int:
    """Registers of an operand that is not an address."""
    base, mods = instruction.base, instruction.mods
    if widths := _product(instruction):
        return widths[1 + at] if at < 3 else 1
    if base in TEXTURES:
        return 2 if file == "UR" else _coordinates(instruction, at)
    if ".64" in suffix:
        return 2
    if base in ("DADD", "DMUL", "DFMA", "DMNMX", "DSETP", "FADD2", "FMUL2", "FFMA2"):
        return 2
    if base in ("STG", "STS", "STL", "ST", "ATOMG", "ATOM", "ATOMS", "RED", "REDG"):
        return _memory_width(mods)
    if base in ("IMAD", "UIMAD"):
        wide = "WIDE" in mods or "HI" in mods
        return 2 if wide and at == 2 else 1
    if base in ("I2F", "F2F", "F2I", "FRND", "I2I"):
        return 2 if _converted(instruction)[1] == 64 else 1
    if base in ("RET", "BRX", "JMX", "CALL"):
        return 2
    if base in ("ISETP", "UISETP", "IMNMX", "VIMNMX", "UIMNMX") and (
        "S64" in mods or "U64" in mods
    ):
        return 2
    if "64" in mods and base in ("IADD", "UIADD3", "IADD3", "MOV", "UMOV", "SEL", "USEL", "UIADD"):
        return 2
    return 1
