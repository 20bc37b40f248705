"""Compares section contents as bytes, with masks, and describes the first difference."""

from __future__ import annotations

import struct

from pylink.facts.elf import round_up
from pylink.facts.records import NOTE_HEADER
from pylink.inspect.difference import Difference
from pylink.inspect.image import Section

INSTRUCTION_SIZE = 16  # in bytes
# Bits 110 to 121 of an instruction: write and read scoreboard, wait mask.
SCOREBOARDS = (((1 << 12) - 1) << 110).to_bytes(INSTRUCTION_SIZE, "little")
KEEP_MASK = bytes(0xFF ^ b for b in SCOREBOARDS)  # the other bits of an instruction


def bytes_difference(section: Section, first: bytes, second: bytes) -> Difference:
    """Describe the first difference between two section contents.

    Its place is the start of the word of 8 bytes, or of the instruction in code, that differs.
    """
    common_size = min(len(first), len(second))
    index = next((i for i in range(common_size) if first[i] != second[i]), common_size)
    is_code = section.name.startswith(".text.")
    step = INSTRUCTION_SIZE if is_code else 8
    start = index - index % step
    if is_code:
        pairs = zip(_instructions(first), _instructions(second), strict=False)
        note = f"{sum(a != b for a, b in pairs)} of {len(first) // step} instructions differ"
        if without_scoreboards(first) == without_scoreboards(second):
            note += ", in their scoreboards alone"
    else:
        count = sum(a != b for a, b in zip(first, second, strict=False))
        note = f"{count} of {len(first):#x} bytes differ"
    if len(first) != len(second):
        note += f"; sizes {len(first):#x}, {len(second):#x}"
    texts = [data[start : start + 16].hex(" ") or "the end" for data in (first, second)]
    return Difference("bytes", section.name, f"+{start:#x}", texts[0], texts[1], note)


def _instructions(code: bytes) -> list[bytes]:
    return [
        code[offset : offset + INSTRUCTION_SIZE] for offset in range(0, len(code), INSTRUCTION_SIZE)
    ]


def without_first_note(data: bytes) -> bytes:
    """Return the notes after the first one of a section, which is the linker's own."""
    if len(data) < NOTE_HEADER.size:
        return data
    name_size, size = struct.unpack_from("<II", data)
    return data[NOTE_HEADER.size + round_up(name_size, 4) + round_up(size, 4) :]


def without_scoreboards(text: bytes) -> bytes:
    """Return instructions with zeros in the bits of SCOREBOARDS; other bytes at the end stay."""
    mask = int.from_bytes(
        KEEP_MASK * (len(text) // INSTRUCTION_SIZE) + b"\xff" * (len(text) % INSTRUCTION_SIZE),
        "little",
    )
    return (int.from_bytes(text, "little") & mask).to_bytes(len(text), "little")
