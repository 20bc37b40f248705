"""Builds relocatable cubins of kernels, as small as the rewriting of kernels needs them.

Each kernel is a list of slots, i.e. groups of instructions for which its capsule has one bit. The
builder adds the branch to itself and the padding at the end of every function, the capsule (the
mercury form of the code), and sections that contain offsets into the code.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from helpers.exits_code import CCTL, DUMMY_LOAD, ERRBAR, MEMBAR, NOP
from helpers.line_program import sleb

# Instructions of sm_100, 16 bytes each.
LOAD = bytes.fromhex("827b01ff00df00000008000000e20f00")
EXIT = bytes.fromhex("4d790000000000000000800300ea0f00")
MOVE = bytes.fromhex("02720400030000000000000f00e20f00")
CALL = bytes.fromhex("4379000000000000000000c00300ea0f00")[:16]
LDGSTS = bytes.fromhex("ae7f0d020000000008109a0b00e20300")
SYNCS = bytes.fromhex("a775ff04ff0000000000100800e60f00")
SURFACE_STORE = bytes.fromhex("9d7f0008040400ff7000ad1008f61100")
SPIN = bytes.fromhex("4779fc00fcffffffffff830300c00f00")
DUMMY = DUMMY_LOAD + bytes.fromhex("e20f00")
MEMBAR_GUARD = bytes.fromhex("92790000000000000080000000c00f00")
MEMBAR_GPU = bytes.fromhex("92790000000000000020000000ec0f00")
# Contents of records in capsules.
BODY16 = b"\x01\x0b" + bytes(14)
BODIES = [BODY16, b"\x02\x22" + bytes(30), b"\x41\x0b\x20\x0a", b"\x42\x33\0\x0e"]
HINT = bytes.fromhex("31020058000401000000000000000000")  # of an optimizing compiler, for no code
FENCE_BODY = bytes.fromhex("0149100af8000c00000000000000000000")[:16]


TEXT_FLAGS, MERCURY = 6, 0x10000000
ENTRY_SIZES = {2: 24, 4: 24}  # by type of section


@dataclass
class Slot:
    """The instructions that belong to one slot of the capsule, and its record, empty for none."""

    words: list[bytes]
    record: bytes = b""


@dataclass
class Kernel:
    """A kernel or function, and offsets into its code that other sections contain.

    `lists` are attributes with the offsets in each. `addends` are those of relocations against its
    symbol, `rows` the offset and line of each row of the line program, and `places` the offsets of
    call frame rows.
    """

    name: str
    slots: list[Slot]
    lists: list[tuple[int, list[int]]] = field(default_factory=list)
    addends: list[int] = field(default_factory=list)
    rows: list[tuple[int, int]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    entry: bool = True  # a kernel, not a function


def plain_slot(word: bytes = MOVE) -> Slot:
    """Return a slot of one instruction without a record."""
    return Slot([word])


def recorded_slot(word: bytes = LOAD, body: bytes = BODY16) -> Slot:
    """Return a slot of one instruction with a record."""
    return Slot([word], body)


def expanded_slot(words: list[bytes], body: bytes) -> Slot:
    """Return a slot whose one record expands to several instructions."""
    return Slot(words, struct.pack("<H", 0x51 | len(words) << 7) + body)


def hint() -> Slot:
    """Return a slot without an instruction, for a hint of the compiler."""
    return Slot([], HINT)


def fence() -> Slot:
    """Return the slot of a fence: loads that wait, MEMBAR and its companions."""
    return expanded_slot([DUMMY] * 4 + [MEMBAR_GUARD, MEMBAR_GPU, ERRBAR, CCTL], FENCE_BODY)


def wait(cycles: int) -> Slot:
    """Return a slot of a NOP that waits for some cycles."""
    return Slot([NOP[:13] + bytes([0xC0 | cycles << 1]) + NOP[14:]], b"\xd0\0")


def exit_(predicate: int = 7) -> Slot:
    """Return a slot of an EXIT under a predicate (7: always)."""
    return plain_slot(bytes([EXIT[0], 9 | predicate << 4]) + EXIT[2:])


def guarded_exit() -> Slot:
    """Return the slot of an EXIT with a barrier in front, as the rewriting makes it."""
    body = bytes.fromhex("0111000af8000000000000f800000000")
    return expanded_slot([MEMBAR, ERRBAR, CCTL, EXIT], body)


def branch(distance: int) -> Slot:
    """Return a branch by `distance` bytes, counted from the instruction after it."""
    value = int.from_bytes(bytes.fromhex("47790000000000000000800300ea0f00"), "little")
    quarter = distance // 4
    value |= (quarter & 0xFF) << 16 | (quarter >> 8 & (1 << 48) - 1) << 34
    return plain_slot(value.to_bytes(16, "little"))


def text_of(kernel: Kernel) -> bytes:
    """Return the code of a kernel, with the branch to itself and the padding at its end."""
    code = b"".join(word for slot in kernel.slots for word in slot.words) + SPIN
    size = (len(code) + 0x80 + 127) // 128 * 128
    return code + NOP * ((size - len(code)) // 16)


def capsule_of(kernel: Kernel, section: int) -> bytes:
    """Return the capsule of a kernel, whose text is section `section`."""
    slots = [*kernel.slots, Slot([SPIN])]
    code = 16 * sum(len(slot.words) for slot in slots)
    nops = (len(text_of(kernel)) - code) // 16
    slots[-1].record = struct.pack("<H", 0x50 | (nops + 1) << 7)
    bits = sum(1 << i for i, slot in enumerate(slots) if not slot.record)
    words = (len(slots) + 31) // 32
    header = struct.pack("<III", section, 0xC0000001, len(slots)) + bits.to_bytes(
        4 * words, "little"
    )
    return header + b"".join(slot.record for slot in slots)


def line_program(kernels: list[Kernel]) -> tuple[bytes, list[int]]:
    """Return a unit with a sequence for each kernel, and the offsets of their addresses."""
    lengths = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1])
    header = struct.pack("<BBbBB", 1, 1, -5, 14, 10) + lengths + b"\0a.cu\0\0\0\0\0"
    out = bytearray(struct.pack("<IHI", 0, 2, len(header)) + header)
    addresses = []
    for kernel in kernels:
        addresses.append(len(out) + 3)
        out += b"\0\x09\x02" + bytes(8) + b"\x04\x01"
        place, line = 0, 1
        for offset, number in kernel.rows:
            out += b"\x03" + sleb(number - line) + b"\x02" + sleb(offset - place) + b"\x01"
            place, line = offset, number
        out += b"\x02" + sleb(len(text_of(kernel)) - place) + b"\0\x01\x01"
    struct.pack_into("<I", out, 0, len(out) - 4)
    return bytes(out), addresses


def frames(kernels: list[Kernel]) -> tuple[bytes, list[int]]:
    """Return a CIE and an FDE for each kernel, and the offsets of the FDEs' addresses."""
    out = bytearray(struct.pack("<IQQ", 0xFFFFFFFF, 16, 0xFFFFFFFFFFFFFFFF) + bytes(8))
    addresses = []
    for kernel in kernels:
        place, program = 0, b"\x0c\x81\x80\x80\x28\0"
        for offset in kernel.places:
            program += b"\x04" + struct.pack("<I", (offset - place) // 4)
            place = offset
        addresses.append(len(out) + 20)
        size = len(text_of(kernel))
        out += struct.pack("<IQQQQ", 0xFFFFFFFF, 24 + len(program), 0, 0, size) + program
    return bytes(out), addresses


def info_of(kernel: Kernel) -> bytes:
    """Return the attribute records of a kernel: its lists of offsets."""
    return b"".join(
        struct.pack(f"<BBH{len(offsets)}I", 4, attribute, 4 * len(offsets), *offsets)
        for attribute, offsets in kernel.lists
    )


def registers(kernels: list[Kernel]) -> bytes:
    """Return the contents of .nv_debug_info_reg_sass for these kernels."""
    out = b""
    for kernel in kernels:
        out += kernel.name.encode() + b"\0" + struct.pack("<I", 1)
        out += struct.pack("<I", 7) + b"R0\0" + struct.pack("<III", 4, 16, len(text_of(kernel)))
    return out


def build(kernels: list[Kernel]) -> bytes:
    """Return bytes of the file: strings, symbols, four sections for each kernel, debug sections."""
    # Name, type, flags, link, info, contents.
    sections: list[tuple[str, int, int, int, int, bytes]] = []

    def add(name: str, kind: int, link: int, info: int, data: bytes, flags: int = 0) -> int:
        """Add a section and return its number."""
        sections.append((name, kind, flags, link, info, data))
        return len(sections)

    names = b"\0" + b"".join(kernel.name.encode() + b"\0" for kernel in kernels)
    symtab = bytearray(24)
    add(".strtab", 3, 0, 0, names)
    for i, kernel in enumerate(kernels):
        place = names.index(b"\0" + kernel.name.encode() + b"\0") + 1
        symtab += struct.pack(
            "<IBBHQQ", place, 0x12, 0x10 * kernel.entry, 3 + 4 * i, 0, len(text_of(kernel))
        )
    add(".symtab", 2, 1, 1, bytes(symtab))
    for i, kernel in enumerate(kernels):
        text = add(f".text.{kernel.name}", 1, 2, 1 + i, text_of(kernel), TEXT_FLAGS)
        add(
            f".nv.capmerc.text.{kernel.name}",
            0x70000016,
            0,
            1 + i,
            capsule_of(kernel, text),
            MERCURY,
        )
        add(f".nv.info.{kernel.name}", 0x70000000, 2, text, info_of(kernel))
        rows = [struct.pack("<QIIq", 0, 57, 1 + i, addend) for addend in kernel.addends]
        add(f".rela.text.{kernel.name}", 4, 2, text, b"".join(rows))
    for name, (data, addresses) in {
        ".debug_line": line_program(kernels),
        ".debug_frame": frames(kernels),
    }.items():
        home = add(name, 1, 0, 0, data)
        rows = [struct.pack("<QIIq", place, 2, 1 + i, 0) for i, place in enumerate(addresses)]
        add(f".rela{name}", 4, 2, home, b"".join(rows))
    add(".nv_debug_info_reg_sass", 1, 0, 0, registers(kernels))
    shstrtab = b"\0" + b"".join(row[0].encode() + b"\0" for row in sections) + b".shstrtab\0"
    add(".shstrtab", 3, 0, 0, shstrtab)
    out, table = bytearray(64), bytes(64)
    for name, kind, flags, link, info, data in sections:
        out += bytes(-len(out) % 16)
        place = shstrtab.index(b"\0" + name.encode() + b"\0") + 1
        table += struct.pack(
            "<IIQQQQIIQQ",
            place,
            kind,
            flags,
            0,
            len(out),
            len(data),
            link,
            info,
            1,
            ENTRY_SIZES.get(kind, 0),
        )
        out += data
    out += bytes(-len(out) % 8)
    ident = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7)
    out[:64] = ident + struct.pack(
        "<HHIQQQIHHHHHH",
        *(1, 190, 1, 0, 0, len(out), 0x06006402, 64, 0, 0, 64, len(sections) + 1, len(sections)),
    )
    return bytes(out) + table


def random_kernel(rng: random.Random, name: str, more: Sequence[Slot] = ()) -> Kernel:
    """Return a kernel of random slots and `more`, with offsets of and branches to all of them."""
    special = rng.choice([MOVE, MOVE, CALL, LDGSTS, SYNCS, SURFACE_STORE])
    slots: list[Slot] = []
    for _ in range(rng.randrange(1, 50)):
        if more and rng.random() < 0.1:
            slots.append(rng.choice(more))
        kind = rng.randrange(10)
        if kind < 3:
            slots.append(plain_slot(rng.choice([MOVE, NOP, special])))
        elif kind < 5:
            slots.append(recorded_slot(body=rng.choice(BODIES)))
        elif kind == 5:
            slots.append(fence())
        elif kind == 6:
            slots.append(guarded_exit())
        elif kind == 7:
            slots += [wait(rng.randrange(1, 16))] * rng.randrange(2)
            slots.append(exit_(rng.randrange(16)))
        elif kind == 8:
            slots += [hint()] * rng.randrange(1, 3)
        else:
            slots.append(branch(0))
    kernel = Kernel(name, slots, entry=rng.random() < 0.8)
    count = sum(len(slot.words) for slot in slots)
    size = len(text_of(kernel))
    offsets = [16 * i for i in range(count + 1)]
    place = 0
    for i, slot in enumerate(slots):
        place += 16 * len(slot.words)
        if slot.words and slot.words[0][:2] == b"\x47\x79":
            slots[i] = branch(rng.choice(offsets) - place)
    attributes = (0x1C, 0x28, 0x2E, 0x39, 0x19, 0x44, 0x55)
    kernel.lists = [(attribute, rng.choices(offsets, k=4)) for attribute in attributes]
    kernel.addends = [*rng.choices(offsets, k=3), size]
    kernel.places = sorted(rng.choices(offsets, k=3))
    kernel.rows = sorted((rng.choice(offsets), rng.randrange(1, 40)) for _ in range(12))
    return kernel
