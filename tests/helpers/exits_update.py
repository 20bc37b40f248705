"""A naive reference of the rewriting of one release's code as that of another.

Written from docs/older-objects.md, "Code that is brought up to date".
"""

from __future__ import annotations

import struct

from helpers.exits_code import DUMMY_LOAD, NOP, RECORD_SIZES, Code, is_exit, is_membar, stalled
from helpers.exits_reference import Object, rewritten

# Bits of `mode`, one for each kind of change: UPDATE_ of `pylink.facts.kernelmodes`.
GUARD, UNGUARD, ADDS, FENCES, WORDS = 0x100, 0x200, 0x400, 0x800, 0x1000

Slot = tuple[list[bytes], bytes]


def is_function(info: int) -> bool:
    """Return whether st_info is that of a function."""
    return info & 15 == 2


def bits(word: bytes, first: int, last: int) -> int:
    """Return the number in bits `first` to `last` (inclusive) of an instruction."""
    return int.from_bytes(word, "little") >> first & (1 << last - first + 1) - 1


def is_bsync(word: bytes) -> bool:
    """Return whether an instruction is BSYNC.RECONVERGENT or BSYNC.RELIABLE."""
    return bits(word, 0, 11) == 0x941 and bits(word, 72, 73) != 0


def is_dummy(word: bytes) -> bool:
    """Return whether an instruction is a load that loads nothing, as fences have in front."""
    return word.startswith(DUMMY_LOAD)


def control(word: bytes) -> int:
    """Return the bits of an instruction for its schedule."""
    return bits(word, 104, 119)


def with_bits(word: bytes, first: int, last: int, value: int) -> bytes:
    """Return the instruction with another number in bits `first` to `last` (inclusive)."""
    mask = (1 << last - first + 1) - 1 << first
    number = int.from_bytes(word, "little") & ~mask | value << first
    return number.to_bytes(16, "little")


def is_careful(text: bytes) -> bool:
    """Return whether ptxas, up to 13.2, did not schedule a function, as with -O0."""
    words = [text[at : at + 16] for at in range(0, len(text), 16)]
    words = [word for word in words if not is_dummy(word)]
    slow = [
        word
        for word in words
        if bits(word, 105, 108) == 15 and bits(word, 116, 117) == 3 and bits(word, 120, 127) == 0
    ]
    rest = [word for word in words if word not in slow and control(word) not in (0x0FC0, 0x3FC0)]
    return bool(slow) and not rest


def bsync_record(word: bytes) -> bytes:
    """Return the record of a BSYNC in a slot of its own."""
    reliable = bits(word, 72, 72)
    predicate, negated = bits(word, 12, 14), bits(word, 15, 15)
    body = bytearray(16)
    body[:4] = bytes((0x01, 0x09, 4 if reliable else 2, 0x0A))
    body[4] = (0x1F if predicate == 7 else predicate) << 3 | negated
    body[6] = 0 if reliable else 1
    body[10] = 2 * bits(word, 16, 19)
    return struct.pack("<H", 0x51 | 2 << 7) + bytes(body)


def short_add(word: bytes) -> bytes:
    """Return the IADD for an IADD3 of two operands; another instruction is returned unchanged."""
    if bits(word, 0, 8) != 0x10 or bits(word, 64, 71) != 0xFF or bits(word, 75, 75):
        return word
    if bits(word, 77, 80) != 15 or bits(word, 84, 86) != 7:
        return word
    word = with_bits(word, 0, 8, 0x35)
    for first, last in ((64, 71), (77, 80), (84, 86)):
        word = with_bits(word, first, last, 0)
    return word


def add_record(word: bytes) -> bytes:
    """Return the record of an IADD in a slot of its own; empty if it is not known."""
    kinds = {
        (2, 0): "410c4004",
        (2, 1): "420c3014",
        (8, 0): "420c4206",
        (8, 1): "420c3206",
        (12, 0): "410c4404",
    }
    return bytes.fromhex(kinds.get((bits(word, 8, 11) & 14, bits(word, 74, 74)), ""))


def awaited(words: list[bytes], *, careful: bool) -> list[bytes]:
    """Return instructions of a slot, changed so that the MEMBAR waits for the guards before it."""
    words = list(words)
    for at in range(len(words) - 1):
        guard, membar = words[at : at + 2]
        if not is_membar(guard, 0x80) or not is_membar(membar):
            continue
        if control(guard) == 0x0FC0 != control(membar):
            words[at] = with_bits(guard, 104, 119, 0x33DE if careful else 0x03EC)
            if not careful:
                words[at + 1] = with_bits(membar, 117, 117, 1)
    return words


def is_acquire(words: list[bytes], record: bytes) -> bool:
    """Return whether a slot acquires a tensor map in the form of releases up to 13.0."""
    return (
        len(words) == 3
        and record[2:6] == bytes((0x01, 0x49, 0x14, 0x16))
        and bits(words[2], 0, 11) == 0x9B9
    )


def acquired(words: list[bytes], *, careful: bool) -> list[bytes]:
    """Return the instructions of an `is_acquire` slot, and the two that 13.1 and later append."""
    last = words[2]
    if bits(last, 105, 108) == 2:
        words = [*words[:2], stalled(last, 1)]
    flush = with_bits(NOP, 0, 15, 0x09B7 | bits(last, 12, 15) << 12)
    return [
        *words,
        with_bits(flush, 104, 119, 0x33DE if careful else 0x03E4),
        with_bits(NOP, 104, 119, 0x3FDE if careful else 0x2FE2),
    ]


class Updated(Code):
    """One function, changed to the code of another release."""

    def slots(self) -> list[Slot]:
        """Return instructions and record of each slot; the last are the branch and the padding."""
        capsule, text = self.capsule.data, self.text.data
        (count,) = struct.unpack_from("<I", capsule, 8)
        marks, at, offset = capsule[12:], 12 + (count + 31) // 32 * 4, 0
        slots = []
        for slot in range(count):
            start, words = at, 1
            if not marks[slot // 8] >> slot % 8 & 1:
                head = capsule[at]
                if head & 0x70 == 0x50:
                    (prefix,) = struct.unpack_from("<H", capsule, at)
                    words = prefix >> 7
                    at += 2
                    head = capsule[at] if head & 15 else 0
                elif head == 0x31:
                    words = 0
                at += RECORD_SIZES[head] if head else 0
            code = [text[offset + 16 * i :][:16] for i in range(words)]
            slots.append((code, capsule[start:at]))
            offset += 16 * words
        return slots

    def rewrite(self, mode: int) -> bool:
        """Change the code for the bits of `mode`; False if nothing changes."""
        careful = is_careful(self.text.data)
        if not careful:
            mode &= GUARD | UNGUARD | FENCES
        if not mode:
            return False
        code: list[bytes] = []
        sources: list[int] = []
        records: list[bytes] = []
        offset = 0
        *slots, last = self.slots()
        for words, old_record in [*slots, (last[0][:1], b"\x50\0")]:
            new = list(zip(words, range(offset, offset + 16 * len(words), 16), strict=True))
            offset += 16 * len(words)
            record = old_record
            single = len(words) == 1 and not record
            if mode & GUARD and single and is_bsync(words[0]):
                record = bsync_record(words[0])
                control_bits = control(words[0])
                waits = control_bits if control_bits in (0x3FDE, 0x0FC0) else 0x0FE2
                new = [(with_bits(NOP, 104, 119, waits), -1), *new]
            elif (
                mode & UNGUARD
                and len(words) == 2
                and is_bsync(words[1])
                and record == bsync_record(words[1])
                and words[0][:2] == NOP[:2]
            ):
                new, record = new[1:], b""
            elif mode & ADDS and single and short_add(words[0]) != words[0]:
                record = add_record(words[0])
                if record:
                    new = [(short_add(words[0]), new[0][1])]
            elif mode & FENCES and is_acquire(words, record):
                record = struct.pack("<H", 0x51 | 5 << 7) + record[2:]
                changed_words = acquired(words, careful=careful)
                new = list(zip(changed_words, [*(at for _, at in new), -2, -2], strict=True))
            else:
                changed_words = awaited(words, careful=careful) if mode & FENCES else words
                if mode & ADDS and len(words) > 1:
                    changed_words = [short_add(word) for word in changed_words]
                new = list(zip(changed_words, (at for _, at in new), strict=True))
            code += [word for word, _ in new]
            sources += [at for _, at in new]
            records.append(record)
        if mode & WORDS:
            code = [word if is_dummy(word) else with_bits(word, 104, 127, 0x0FC0) for word in code]
        self.begins = self.barriers() if careful and mode & FENCES else {}
        same = b"".join(code) == self.text.data[: 16 * len(code)] and len(code) == offset // 16
        if same and not self.begins:
            return False
        self.finish(code, sources, records, offset)
        return True

    def barriers(self) -> dict[int, int]:
        """Return, by offset of the last instruction of an error barrier, that of its first one."""
        text, first_offsets = self.text.data, {}
        words = [text[at : at + 16] for at in range(0, len(text), 16)]
        for at in range(1, len(words) - 1):
            kinds = [bits(word, 0, 11) for word in words[at - 1 : at + 1]]
            if kinds == [0x9AB, 0x5AB] and is_exit(words[at + 1]):
                first = at - 2 if at > 1 and is_membar(words[at - 2]) else at - 1
                first_offsets[16 * at] = 16 * first
        return first_offsets

    def begin(self, offset: int) -> int:
        """Return the new start of a range of a register that began at `offset`."""
        if offset in self.begins and self.moved_own(self.begins[offset]) >= 16:
            return self.moved_own(self.begins[offset]) - 16
        return self.moved_own(offset)


class UpdatedObject(Object):
    """An object that is changed by the rules of `Updated`, not of `Code`."""

    def rewrite_kernels(self, mode: int) -> None:
        """Change the code of all functions for the bits of `mode`."""
        for index, (name, info, _, shndx, _, _) in enumerate(self.symbols):
            if is_function(info) and shndx:
                text = self.sections[shndx]
                code = Updated(name, text, self.by_name[".nv.capmerc" + text.name])
                if code.rewrite(mode):
                    self.kernels[index] = code

    def range_of(self, code: Code, first: int, last: int) -> tuple[int, int]:
        """Return the new start and end of a range of a register."""
        assert isinstance(code, Updated)
        return code.begin(first), code.moved_own(last)


def update(image: bytes, mode: int) -> bytes:
    """Return the file after its code was changed for the bits of `mode`."""
    return rewritten(UpdatedObject(image), mode)
