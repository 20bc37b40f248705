"""Compares section contents as bytes, with masks, and describes the first difference."""

from __future__ import annotations

import struct

from pylink.inspect.difference import Difference
from pylink.inspect.image import Section

INSTRUCTION = 16
# Bits 110 to 121 of an instruction: write and read scoreboard, wait mask.
SCOREBOARDS = (((1 << 12) - 1) << 110).to_bytes(INSTRUCTION, "little")
KEEP_MASK = bytes(0xFF ^ b for b in SCOREBOARDS)


def bytes_difference(section: Section, first: bytes, second: bytes) -> Difference:
    """Describe the first unequal word of two section contents."""
    shared = min(len(first), len(second))
    index = next((i for i in range(shared) if first[i] != second[i]), shared)
    code = section.name.startswith(".text.")
    step = INSTRUCTION if code else 8
    start = index - index % step
    if code:
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
    return [code[offset : offset + INSTRUCTION] for offset in range(0, len(code), INSTRUCTION)]


def without_first_note(data: bytes) -> bytes:
    """The notes after the first one, which is the linker's own."""
    if len(data) < 12:
        return data
    name_size, size = struct.unpack_from("<II", data)
    return data[12 + -(-name_size // 4) * 4 + -(-size // 4) * 4 :]


def without_scoreboards(text: bytes) -> bytes:
    mask = int.from_bytes(
        KEEP_MASK * (len(text) // INSTRUCTION) + b"\xff" * (len(text) % INSTRUCTION), "little"
    )
    return (int.from_bytes(text, "little") & mask).to_bytes(len(text), "little")
