"""A naive reference of the rewriting of one kernel's text and capsule."""

from __future__ import annotations

import struct

MEMBAR = bytes.fromhex("92790000000000000050000000c00f00")
ERRBAR = bytes.fromhex("ab790000000000000000000000c00f00")
CCTL = bytes.fromhex("ab750000000000000000000000ec0f00")
DUMMY_LOAD = bytes.fromhex("84f9ffff000000000008000000")
NOP = bytes.fromhex("18790000000000000000000000c00f00")
BARRIER_RECORD = bytes.fromhex("0111000af8000000000000f800000000")
# Bytes of a record of a capsule, by its kind.
RECORD_SIZES = {0x01: 16, 0x02: 32, 0x31: 16, 0x41: 4, 0x42: 4}
APPENDED = -2  # in lists of old offsets: an instruction that was inserted after another one
HINT = 0x31  # kind of a record whose slot has no instruction
# Low 9 bits of the operations.
CALLS = (0x143, 0x144)
SURFACE_WRITES = (0x19B, 0x19D, 0x19F)
ASYNC_COPIES = (0x1AE,)
MBARRIERS = (0x1A7, 0x1B1, 0x1B2)


class Section:
    """A section of the file; its header is at the offset `at`."""

    def __init__(self, image: bytes, at: int) -> None:
        self.at = at
        self.offset: int
        self.size: int
        self.info: int
        fields = struct.unpack_from("<IIQQQQIIQQ", image, at)
        self.name_at, self.type, self.flags = fields[:3]
        self.offset, self.size, self.link, self.info = fields[4:8]
        self.name = ""
        self.data = b"" if self.type in (8, 0x70000007) else image[self.offset :][: self.size]
        self.changed = False  # whether `put` has changed the contents

    def put(self, data: bytes) -> None:
        """Replace the contents, and record whether they change."""
        if data != self.data:
            self.data, self.changed = bytes(data), True


class Code:
    """One kernel's text and capsule, and the new offset of each instruction."""

    def __init__(self, name: str, text: Section, capsule: Section) -> None:
        self.name, self.text, self.capsule = name, text, capsule
        self.label: list[int] = []  # by old instruction: the new offset to which jumps to it lead
        self.own_offsets: list[int] = []  # by old instruction: its own new offset
        self.size = text.size

    def new_target(self, offset: int) -> int:
        """Return the new offset to which jumps to an old offset lead."""
        return self.place(offset, self.label)

    def moved_own(self, offset: int) -> int:
        """Return the new offset of the instruction at an old offset."""
        return self.place(offset, self.own_offsets)

    def place(self, offset: int, table: list[int]) -> int:
        """Return the new offset for an old one, by a table of instructions, or the new end."""
        if offset == self.text.size:
            return self.size
        if offset // 16 >= len(table) or offset < 0:
            return offset
        return table[offset // 16] + offset % 16

    def uses(self, *opcodes: int) -> bool:
        """Return whether the code contains one of these operations."""
        text = self.text.data
        return any((text[i] | text[i + 1] << 8) & 0x1FF in opcodes for i in range(0, len(text), 16))

    def exits(self) -> bool:
        """Return whether the code contains an EXIT."""
        text = self.text.data
        return any(is_exit(text[i : i + 16]) for i in range(0, len(text), 16))

    def rewrite(self, mode: int) -> bool:
        """Rewrite the code for a mode of `pylink.facts.kernelmodes` below 3; False if unchanged."""
        capsule, text = self.capsule.data, self.text.data
        calls = mode == 2 or self.uses(*CALLS)
        surface = calls or self.uses(*SURFACE_WRITES)
        copies = calls or self.uses(*ASYNC_COPIES)
        barriers = calls or self.uses(*MBARRIERS)
        (slots,) = struct.unpack_from("<I", capsule, 8)
        words = (slots + 31) // 32
        bits = capsule[12 : 12 + 4 * words]
        at, offset = 12 + 4 * words, 0
        records: list[bytes] = []
        code: list[bytes] = []
        sources: list[int] = []  # old offset of each new instruction, -1 for inserted ones
        for slot in range(slots):
            start, count = at, 1
            if not bits[slot // 8] >> slot % 8 & 1:
                head = capsule[at]
                if head & 0x70 == 0x50:
                    count = struct.unpack_from("<H", capsule, at)[0] >> 7
                    at += 2
                    head = capsule[at] if head & 15 else 0
                elif head == HINT:
                    count = 0
                at += RECORD_SIZES[head] if head else 0
            record = capsule[start:at]
            if slot == slots - 1:
                if offset + 16 * count != len(text):
                    raise ValueError(f"{self.capsule.name}: counts do not add up to the text")
                count, record = 1, b"\x50\0"
            old = [(text[i:][:16], i) for i in range(offset, offset + 16 * count, 16)]
            new = old
            if old and is_exit(old[-1][0]):
                if mode and (not record or record[2:6] == BARRIER_RECORD[:4]):
                    predicate = old[-1][0][1] & 0xF0
                    waits = 0
                    while not record and records and records[-1] == b"\xd0\0" and is_nop(code[-1]):
                        waits += stall(code.pop())
                        records.pop()
                        sources.pop()
                    expected_words = [MEMBAR, ERRBAR, CCTL] if surface else [ERRBAR, CCTL]
                    had = {word[0][0:1] + word[0][1:2]: word for word in old}
                    new = []
                    waiting = waits_of(old[-1][0])
                    late = not record and code and waiting & sets_of(code[-1])
                    if late and stall(code[-1]) == 2 and is_known(code, predicate >> 4 & 7):
                        code[-1] = stalled(code[-1], 1)
                        waiting &= ~sets_of(code[-1])
                    if record or predicate == 0x70:
                        waiting = 0
                    for plain in expected_words:
                        word = put_waits(guard(plain, predicate), waiting * (plain != CCTL))
                        new.append(had.get(word[:2], (word, -1)))
                    if not record:
                        waits = max(waits + stall(old[-1][0]) - 7, 5)
                        if waits > 15:
                            records.append(b"\xd0\0")
                            new.append((stalled(NOP, waits - 15), -1))
                        new.append((stalled(old[-1][0], min(waits, 15)), old[-1][1]))
                    else:
                        new.append(old[-1])
                    size = len(expected_words) + 1
                    record = record[2:] or barrier_record(old[-1][0])
                    record = struct.pack("<H", 0x51 | size << 7) + record
            elif count > 1:
                new = [
                    (word, i)
                    for (word, i), (after, _) in zip(old, [*old[1:], (NOP, 0)], strict=True)
                    if (copies or not word.startswith(DUMMY_LOAD))
                    and (barriers or not (is_membar(word, 0x80) and is_membar(after)))
                ]
                if len(new) == 1:
                    record = record[2:]
                elif new != old:
                    (prefix,) = struct.unpack_from("<H", record)
                    record = struct.pack("<H", prefix & 0x7F | len(new) << 7) + record[2:]
            records.append(record)
            code.extend(word for word, _ in new)
            sources.extend(i for _, i in new)
            offset += 16 * count
        if at != len(capsule):
            raise ValueError(f"{self.capsule.name}: bytes after the last record")
        if sources == list(range(0, offset, 16)):
            return False
        self.finish(code, sources, records, offset)
        return True

    def finish(
        self, code: list[bytes], sources: list[int], records: list[bytes], offset: int
    ) -> None:
        """Set the offsets of the new instructions, and build text and capsule from them.

        `sources` are the old offsets of the instructions: -1 for one that was inserted before the
        next one, APPENDED for one that was inserted after those before it. The old code has
        `offset` bytes. The last record is that of the branch at the end of the code.
        """
        capsule = self.capsule.data
        self.own_offsets = [-1] * (offset // 16)
        for index, source in enumerate(sources):
            if source >= 0:
                self.own_offsets[source // 16] = 16 * index
        after = 0  # end of the last old instruction
        for index, place in enumerate(self.own_offsets):
            if place < 0:
                self.own_offsets[index] = after
                self.label.append(after)
            else:
                self.label.append(after)
                after = place + 16
                while after // 16 < len(sources) and sources[after // 16] == APPENDED:
                    after += 16
        self.size = (16 * len(code) + 0x80 + 127) // 128 * 128
        self.nops = self.size // 16 - len(code)
        for index, source in enumerate(sources):
            if source >= 0:
                code[index] = self.branch(code[index], source + 16, 16 * index + 16)
        self.label.append(16 * len(code))
        self.own_offsets.append(16 * len(code))
        self.capsule.put(
            capsule[:8]
            + struct.pack("<I", len(records))
            + bitmap(records)
            + b"".join(records[:-1])
            + struct.pack("<H", 0x50 | self.nops + 1 << 7)
        )
        self.text.put(b"".join(code) + NOP * self.nops)

    def branch(self, word: bytes, old: int, new: int) -> bytes:
        """Return a branch whose target is changed, for its old and its new offset."""
        value = int.from_bytes(word, "little")
        opcode = value & 0x1FF
        if opcode in (0x144, 0x147, 0x148, 0x149, 0x158):
            low, high = value >> 16 & 0xFF, value >> 34 & (1 << 48) - 1
            distance = 4 * (low | high << 8)
            width = 58
        elif opcode == 0x145:
            distance, width = 4 * (value >> 34 & (1 << 30) - 1), 32
        else:
            return word
        if distance >> width - 1:
            distance -= 1 << width
        if not 0 <= old + distance <= self.text.size:
            return word
        distance = self.new_target(old + distance) - new
        if opcode == 0x145:
            value &= ~(((1 << 30) - 1) << 34)
            value |= (distance // 4 & (1 << 30) - 1) << 34
        else:
            value &= ~(0xFF << 16 | ((1 << 48) - 1) << 34)
            value |= (distance // 4 & 0xFF) << 16 | (distance // 4 >> 8 & (1 << 48) - 1) << 34
        return value.to_bytes(16, "little")


def is_exit(word: bytes) -> bool:
    """Return whether an instruction is EXIT."""
    return word[0] == 0x4D and word[1] & 15 == 9


def is_membar(word: bytes, scope: int = -1) -> bool:
    """Return whether an instruction is MEMBAR, of a scope unless that is -1."""
    return word[0] == 0x92 and word[1] & 15 == 9 and scope in (-1, word[9])


def is_nop(word: bytes) -> bool:
    """Return whether an instruction is NOP."""
    return word[0] == 0x18 and word[1] & 15 == 9


def stall(word: bytes) -> int:
    """Return the stall count of an instruction, in cycles."""
    return word[13] >> 1 & 15


def stalled(word: bytes, cycles: int) -> bytes:
    """Return an instruction with another stall count; the bit above is set for counts below 12."""
    control = word[13] & ~0x3E | cycles << 1
    if cycles < 12 and not is_nop(word):
        control |= 0x20
    return word[:13] + bytes([control]) + word[14:]


def is_known(code: list[bytes], predicate: int) -> bool:
    """Return whether a predicate is known after the code: 13 cycles after its last comparison.

    The last instruction counts as one cycle.
    """
    cycles = 1
    for number in range(len(code) - 1, -1, -1):
        word = int.from_bytes(code[number], "little")
        if cycles >= 13 or predicate == 7:
            break
        writes_none = word & 0x1FF in (0x118, 0x28, 0x29, 0x2B)  # NOP, DMUL, DADD, DFMA
        if not writes_none and predicate in (word >> 81 & 7, word >> 84 & 7):
            return False
        cycles += stall(code[number - 1])
    return True


def waits_of(word: bytes) -> int:
    """Return the scoreboards that an instruction waits for, a bit each."""
    return int.from_bytes(word, "little") >> 116 & 0x3F


def put_waits(word: bytes, waiting: int) -> bytes:
    """Return the instruction, changed to wait for these scoreboards, too."""
    return (int.from_bytes(word, "little") | waiting << 116).to_bytes(16, "little")


def sets_of(word: bytes) -> int:
    """Return the scoreboards that an instruction sets, a bit each; the field is 7 for none."""
    bits = int.from_bytes(word, "little")
    return (1 << (bits >> 110 & 7) | 1 << (bits >> 113 & 7)) & 0x3F


def bitmap(records: list[bytes]) -> bytes:
    """Return a bit for each slot, set if it has no record."""
    bits = bytearray((len(records) + 31) // 32 * 4)
    for slot, record in enumerate(records):
        if not record:
            bits[slot // 8] |= 1 << slot % 8
    return bytes(bits)


def guard(word: bytes, predicate: int) -> bytes:
    """Return the instruction under another predicate."""
    return word[:1] + bytes([word[1] & 15 | predicate]) + word[2:]


def barrier_record(exit_: bytes) -> bytes:
    """Return the record of a barrier inserted before an EXIT, with both predicates of the EXIT."""
    word = int.from_bytes(exit_, "little")
    first, second = (
        bytes([(0x1F if word >> at & 7 == 7 else word >> at & 7) << 3 | word >> at + 3 & 1])
        for at in (12, 87)
    )
    return BARRIER_RECORD[:4] + first + BARRIER_RECORD[5:11] + second + BARRIER_RECORD[12:]
