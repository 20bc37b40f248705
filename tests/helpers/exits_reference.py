"""A naive reference of the rewriting of kernels of sm_100 and later.

`rewrite_exits(image, mode)` follows docs/format-notes/family-c-exits.md step by step. It uses plain
data instead of fast structures: `Code.new_target` or `Code.moved_own` maps each offset into a
function. `mode` is MODE_NO_BARRIERS, MODE_BARRIERS or MODE_LASTING_BARRIERS
(`pylink.facts.kernelmodes`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from helpers.exits_code import Code, Section
from helpers.exits_lines import Lines, skip_leb

# Attributes with offsets of instructions: size of an entry in bytes, which begins with the offset.
OFFSET_LISTS = {
    **dict.fromkeys((0x1C, 0x1D, 0x25, 0x27, 0x28, 0x31, 0x46, 0x57, 0x59, 0x65, 0x6C), 4),
    0x2E: 8,
    0x44: 8,
    0x39: 16,
    0x40: 12,
}


def string_at(data: bytes, at: int) -> str:
    """Return the string at an offset of a string table."""
    return data[at : data.index(0, at)].decode()


def placed_annotations(record: bytes) -> Iterator[int]:
    """Yield the positions of the offsets in a record.

    It has three kinds of entries: {1, offset}, {2, offset, length, text}, {3, length, text}.
    """
    at = 0
    while at + 8 <= len(record) and record[at] in (1, 2, 3) and not any(record[at + 1 : at + 4]):
        kind = record[at]
        at += 4
        if kind != 3:
            yield at
            at += 4
        if kind != 1:
            length = int.from_bytes(record[at : at + 4], "little")
            at += 4 + length + -length % 4
            if at > len(record) or length > len(record):
                return


class Object:
    """A cubin whose functions are rewritten, and then all offsets into their code."""

    def __init__(self, image: bytes) -> None:
        self.image = image
        (at,) = struct.unpack_from("<Q", image, 0x28)
        _, count, names = struct.unpack_from("<HHH", image, 0x3A)
        self.sections = [Section(image, at + 64 * i) for i in range(count)]
        for section in self.sections:
            section.name = string_at(self.sections[names].data, section.name_at)
        self.by_name = {section.name: section for section in self.sections}
        self.symtab = self.by_name[".symtab"]
        strings = self.sections[self.symtab.link].data
        self.symbols = []
        for row in struct.iter_unpack("<IBBHQQ", self.symtab.data):
            self.symbols.append((string_at(strings, row[0]), *row[1:]))
        self.kernels: dict[int, Code] = {}  # by symbol index

    def rewrite_kernels(self, mode: int) -> None:
        """Rewrite the code of all functions for a mode, and collect those that changed."""
        for index, (name, info, other, shndx, _, _) in enumerate(self.symbols):
            if info & 15 != 2 or shndx == 0:
                continue
            text = self.sections[shndx]
            capsule = self.by_name[".nv.capmerc" + text.name]
            code = Code(name, text, capsule)
            kernel = bool(other & 0x10)
            if not kernel and (not mode or not code.exits()):
                continue
            if code.rewrite(mode if kernel else 2):
                self.kernels[index] = code

    def rewrite_symbols(self) -> None:
        """Set the new sizes of functions."""
        data = bytearray(self.symtab.data)
        for index, code in self.kernels.items():
            struct.pack_into("<Q", data, 24 * index + 16, code.size)
        self.symtab.put(bytes(data))

    def rewrite_info(self) -> None:
        """Map offsets in the attribute records of functions."""
        for code in self.kernels.values():
            section = self.by_name[f".nv.info.{code.name}"]
            data = bytearray(section.data)
            at = 0
            while at < len(data):
                length, attribute = 4, data[at + 1]
                if data[at] == 4:
                    length += struct.unpack_from("<H", data, at + 2)[0]
                if attribute == 0x34:
                    item = at + 4
                    while item < at + length:
                        offset, _, targets = struct.unpack_from("<III", data, item)
                        struct.pack_into("<I", data, item, code.moved_own(offset))
                        for i in range(targets):
                            (target,) = struct.unpack_from("<I", data, item + 12 + 4 * i)
                            struct.pack_into("<I", data, item + 12 + 4 * i, code.new_target(target))
                        item += 12 + 4 * targets
                elif attribute == 0x55:
                    for item in placed_annotations(bytes(data[at + 4 : at + length])):
                        (offset,) = struct.unpack_from("<I", data, at + 4 + item)
                        struct.pack_into("<I", data, at + 4 + item, code.moved_own(offset))
                elif attribute in OFFSET_LISTS:
                    for item in range(at + 4, at + length, OFFSET_LISTS[attribute]):
                        (offset,) = struct.unpack_from("<I", data, item)
                        struct.pack_into("<I", data, item, code.moved_own(offset))
                at += length
            section.put(bytes(data))

    def rewrite_tables(self) -> None:
        """Map jump tables in bank 2: words for which the mercury side has a code relocation."""
        for code in self.kernels.values():
            table = self.by_name.get(f".nv.constant2.{code.name}")
            words = self.by_name.get(f".nv.merc.rela.nv.constant.optimizer.{code.name}")
            if table is None or words is None:
                continue
            data = bytearray(table.data)
            for offset, info, _ in struct.iter_unpack("<QQq", words.data):
                if info & 0xFFFFFFFF == 0x10008:
                    (value,) = struct.unpack_from("<I", data, offset)
                    struct.pack_into("<I", data, offset, code.new_target(value))
            table.put(bytes(data))

    def rewrite_lines(self) -> None:
        """Encode the line number programs again."""
        for name in (".debug_line", ".nv_debug_line_sass"):
            section = self.by_name.get(name)
            if section is None:
                continue
            rela = self.by_name.get(".rela" + name)
            starts = {}
            for offset, info, _ in struct.iter_unpack("<QQq", rela.data if rela else b""):
                starts[offset] = info >> 32
            lines = Lines(section.data, starts, self.kernels)
            section.put(bytes(lines.out))
            if rela:
                out = b"".join(
                    struct.pack("<QQq", lines.new_offsets[offset], info, addend)
                    for offset, info, addend in struct.iter_unpack("<QQq", rela.data)
                )
                rela.put(out)
            self.move_addends(self.sections.index(section), lines.units)

    def move_addends(self, section: int, new_offsets: dict[int, int]) -> None:
        """Map the addends of relocations that refer to a section."""
        for rela in self.sections:
            if rela.type != 4:
                continue
            data = bytearray(rela.data)
            for at in range(0, len(data), 24):
                _, info, addend = struct.unpack_from("<QQq", data, at)
                symbol = self.symbols[info >> 32]
                if symbol[1] & 15 == 3 and symbol[3] == section:
                    struct.pack_into("<q", data, at + 16, new_offsets.get(addend, addend))
            rela.put(bytes(data))

    def rewrite_relocations(self) -> None:
        """Map offsets of relocations in code, and addends that refer to code."""
        by_section = {id(code.text): code for code in self.kernels.values()}
        for rela in self.sections:
            if rela.type != 4:
                continue
            home = by_section.get(id(self.sections[rela.info]))
            data = bytearray(rela.data)
            for at in range(0, len(data), 24):
                offset, info, addend = struct.unpack_from("<QQq", data, at)
                target = self.kernels.get(info >> 32)
                if home:
                    offset = home.moved_own(offset)
                if target and addend:
                    addend = target.new_target(addend)
                struct.pack_into("<QQq", data, at, offset, info, addend)
            rela.put(bytes(data))

    def rewrite_frames(self) -> None:
        """Set the sizes of functions in call frame information, and map its offsets."""
        section, rela = self.by_name.get(".debug_frame"), self.by_name.get(".rela.debug_frame")
        if section is None or rela is None:
            return
        data = bytearray(section.data)
        for offset, info, _ in struct.iter_unpack("<QQq", rela.data):
            code = self.kernels.get(info >> 32)
            if code is None or info & 0xFFFFFFFF != 2:
                continue
            (length,) = struct.unpack_from("<Q", data, offset + 8)
            struct.pack_into("<Q", data, offset + 8, code.new_target(length))
            entry = 0
            while True:
                end = entry + 12 + struct.unpack_from("<Q", data, entry + 4)[0]
                if entry < offset < end:
                    break
                entry = end
            at, place, new = offset + 16, 0, 0
            while at < end:
                op = data[at]
                at += 1
                if op == 0x04:
                    place += 4 * struct.unpack_from("<I", data, at)[0]
                    struct.pack_into("<I", data, at, (code.new_target(place) - new) // 4)
                    new = code.new_target(place)
                    at += 4
                elif op in (0x00, 0x0A, 0x0B):
                    pass
                elif op in (0x0C, 0x05, 0x09):
                    at = skip_leb(data, skip_leb(data, at))
                elif op in (0x06, 0x07, 0x08, 0x0D, 0x0E):
                    at = skip_leb(data, at)
                else:
                    raise ValueError(f".debug_frame: call frame instruction {op:#x}")
        section.put(bytes(data))

    def range_of(self, code: Code, first: int, last: int) -> tuple[int, int]:
        """Return the new start and end of a range of a register."""
        return code.new_target(first), code.new_target(last)

    def rewrite_registers(self) -> None:
        """Map the ranges in .nv_debug_info_reg_sass."""
        section = self.by_name.get(".nv_debug_info_reg_sass")
        if section is None:
            return
        data, at = bytearray(section.data), 0
        codes = {code.name: code for code in self.kernels.values()}
        while at < len(data):
            end = data.index(0, at)
            code = codes.get(data[at:end].decode())
            (count,) = struct.unpack_from("<I", data, end + 1)
            at = end + 5
            for _ in range(count):
                at = data.index(0, at + 4) + 1
                if code:
                    first, last = struct.unpack_from("<II", data, at + 4)
                    struct.pack_into("<II", data, at + 4, *self.range_of(code, first, last))
                at += 12
        section.put(bytes(data))

    def file(self) -> bytes:
        """Return the file with changed sections after its old end."""
        out = bytearray(self.image)
        for section in self.sections:
            if section.changed:
                out += bytes(-len(out) % 128)
                struct.pack_into("<QQ", out, section.at + 24, len(out), len(section.data))
                out += section.data
        return bytes(out)


def rewrite_exits(image: bytes, mode: int) -> bytes:
    """Return the file after the rewriting of its kernels for a mode."""
    return rewritten(Object(image), mode)


def rewritten(kernels: Object, mode: int) -> bytes:
    """Return the file of an object after all parts were rewritten; unchanged without kernels."""
    kernels.rewrite_kernels(mode)
    if not kernels.kernels:
        return kernels.image
    kernels.rewrite_symbols()
    kernels.rewrite_info()
    kernels.rewrite_tables()
    kernels.rewrite_registers()
    kernels.rewrite_frames()
    kernels.rewrite_relocations()
    kernels.rewrite_lines()
    return kernels.file()
