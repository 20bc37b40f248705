"""A naive reference of the constant offsets that a link writes into records of capsules.

A capsule is the mercury form of a function's code. Written from "Capsule" in
docs/format-notes/family-c-exits.md, and what docs/format-notes/literal-pools.md says of capsules.
"""

from __future__ import annotations

from dataclasses import dataclass

INSTRUCTION = 16  # bytes
HEAD_WORDS = (0xC0000001,)


@dataclass
class Slot:
    """The part of a capsule for one of its bits: `count` instructions, and the body of a record.

    A slot that is `recorded` without a body has a record with the count only.
    """

    count: int = 1
    body: bytearray | None = None
    recorded: bool = False

    @property
    def is_hint(self) -> bool:
        """Whether the slot is a hint, which has a record and no instruction."""
        return self.body is not None and self.body[0] == 0x31

    def record(self) -> bytes:
        """Return bytes of the record: the body, after a count if there are several instructions."""
        if self.is_hint:
            return bytes(self.body or b"")
        if self.body is not None and self.count == 1 and not self.recorded:
            return bytes(self.body)
        word = 0x50 | self.count << 7 | (self.body is not None)
        return word.to_bytes(2, "little") + bytes(self.body or b"")

    @property
    def has_record(self) -> bool:
        return self.recorded or self.body is not None


@dataclass
class Constant:
    """An instruction's reference to a constant: byte offset in the code, bank, and S + A."""

    offset: int
    bank: int
    value: int


def encode(slots: list[Slot]) -> bytes:
    """Return the bytes of a capsule with these slots."""
    bits = sum(1 << number for number, slot in enumerate(slots) if not slot.has_record)
    words = -(-len(slots) // 32)
    head = b"".join(word.to_bytes(4, "little") for word in (7, *HEAD_WORDS, len(slots)))
    records = b"".join(slot.record() for slot in slots if slot.has_record)
    return head + bits.to_bytes(4 * words, "little") + records


def fill(slots: list[Slot], constants: list[Constant]) -> bool:
    """Write each constant into its operand record; False if an instruction has no slot."""
    homes = [slot for slot in slots for _ in range(0 if slot.is_hint else slot.count)]
    for constant in constants:
        number = constant.offset // INSTRUCTION
        if number >= len(homes):
            return False
        body = homes[number].body
        if body is None or len(body) != 32 or body[1] != 0x22:
            continue
        if constant.bank == 2 and body[12:14] == b"\x41\x00" and body[17] == 0x0A:
            body[0x1C:0x1E] = (constant.value % 2**16).to_bytes(2, "little")
        words = {3: b"\x42\x00\x02", 4: b"\x47\x00\x02"}.get(constant.bank)
        if words and body[5] == 0 and body[12:15] == words:
            body[0x1C:0x20] = (constant.value % 2**32).to_bytes(4, "little")
    return True
