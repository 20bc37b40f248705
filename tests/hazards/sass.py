"""What instructions are: text of nvdisasm, taken apart.

Encodings are disassembled by the decoder of `emulator.decode`, each distinct one once. A branch
keeps the distance to its target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from emulator import decode
from emulator.errors import Unsupported

from hazards.errors import Unfollowed
from hazards.words import SIZE

GUARD = re.compile(r"@(!?)(UP|P)([0-6T]) +")
COMMA = re.compile(r",\s*(?![^\[]*\])")
TARGET = re.compile(r"rel:(-?)0x([0-9a-f]+)")
GLOBAL = re.compile(r"\b(LD|LDG|ST|STG|ATOM|ATOMG|RED|LDGSTS|CCTL)\.\S* .*\[R\d+\.64")
DESCRIPTOR = 91  # the bit that says that there is one
MODELS = {"90": "90a", "100": "100a", "103": "103a", "110": "110a", "120": "120a", "121": "121a"}


@dataclass(frozen=True)
class Instruction:
    """One instruction: its guard (predicate file, number, negated) or None, and what it does."""

    text: str
    guard: tuple[str, int, bool] | None
    base: str  # IMAD
    mods: tuple[str, ...]  # WIDE, U32
    operands: tuple[str, ...]
    distance: int | None  # bytes from this instruction to its target

    @property
    def name(self) -> str:
        return ".".join((self.base, *self.mods))


def with_descriptor(text: str, encoding: int) -> str:
    """Text of sm_80 to 89 that names the descriptor of an access to memory, as of sm_90 on.

    There nvdisasm leaves it out, and prints a life range of these two uniform registers.
    """
    if "desc[" in text or "UR" in text or not encoding >> DESCRIPTOR & 1:
        return text
    if found := GLOBAL.search(text):
        field = 32 if found[1] in ("LD", "LDG") else 64
        return text.replace("[", f"desc[UR{encoding >> field & 63}][", 1)
    return text


def parse(text: str) -> Instruction:
    """Take one line of nvdisasm apart; distances are marked as `emulator.decode` does."""
    rest = text
    guard = None
    if found := GUARD.match(text):
        rest = text[found.end() :]
        if found[3] != "T":
            guard = (found[2], int(found[3]), bool(found[1]))
    name, _, tail = rest.partition(" ")
    base, *mods = name.split(".")
    tail = tail.strip()
    operands = tuple(part.strip() for part in COMMA.split(tail)) if tail else ()
    distance = None
    if operands and (target := TARGET.search(operands[-1])):
        distance = SIZE + int(target[1] + target[2], 16)
    return Instruction(text, guard, base, tuple(mods), operands, distance)


class Decoder:
    """Instructions of one architecture by their encodings."""

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self._source = decode.Decoder.of(MODELS.get(arch, arch))
        self._describes = int(arch.rstrip("af")) < 90
        self._known: dict[int, Instruction] = {}

    def learn(self, codes: Iterable[bytes]) -> None:
        """Disassemble what is new in all of `codes`; Unfollowed if one is not code."""
        try:
            self._source.learn(codes)
        except Unsupported as error:
            raise Unfollowed(str(error)) from error

    def __getitem__(self, encoding: int) -> Instruction:
        key = encoding & ~decode.CONTROL_MASK
        found = self._known.get(key)
        if found is None:
            text = self._source.text(encoding)
            if self._describes:
                text = with_descriptor(text, encoding)
            found = self._known[key] = parse(text)
        return found


@cache
def decoder(arch: str) -> Decoder:
    """The decoder of an architecture, such as "80" or "90"; one for all that a process checks."""
    return Decoder(arch)
